// Package confine determines how the programs that toolreg starts are confined: it
// reads the sandbox settings, creates the profile of each kind of program, removes
// files of a confined program that other programs would act upon, and explains what
// was denied.
//
// Package policy decides with [Confiner.Means] whether a call is confined;
// programs that run outside of calls are confined by [Confiner.Programs] according
// to their settings. Package sandbox implements the restrictions, and package
// process applies a profile to a child.
package confine
