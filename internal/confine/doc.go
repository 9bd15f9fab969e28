// Package confine says how the programs that toolreg starts are confined: it reads
// the settings of the sandbox, makes the profile of each kind of program, removes
// what a confined program left for others to act upon, and explains what was denied
// (spec section 14).
//
// Package policy decides whether a call is confined, by [Confiner.Means]; programs
// that run outside of calls are confined as their settings say, by
// [Confiner.Programs]. Package sandbox has the means of the system, and package
// process applies a profile to a child.
package confine
