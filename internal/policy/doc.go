// Package policy decides whether a call is allowed, denied or needs confirmation,
// and remembers "always" answers.
//
// The executor calls [Policy.Decide] after validation and before the run. Rules
// are tried first, in the given order, then remembered approvals, then defaults by
// category. The package internal/policy/shell finds the commands in a shell
// command line, so that rules match commands rather than text.
//
// Everything here fails closed: if something is missing, fails or is in doubt, the
// call is denied or needs confirmation. The analysis of shell commands protects
// against accidents and simple tricks; it is not a sandbox.
package policy
