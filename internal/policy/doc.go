// Package policy decides whether to allow, ask about or deny a call, and
// remembers "always" (spec sections 8.3 to 8.5).
//
// The executor asks [Policy.Decide] between validation and the run. Rules come
// first, in the order given; then remembered approvals; then defaults by
// category. What a shell line would run is read by internal/policy/shell, so
// that rules match simple commands rather than text.
//
// Everything here fails closed: a gap, an error or a doubt asks or denies. The
// analysis of shell commands is a convenience against accidents and simple
// tricks; it is not a sandbox.
package policy
