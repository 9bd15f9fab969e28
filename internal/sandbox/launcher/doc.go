// Package launcher is what toolreg becomes in a new process that is to be
// confined: process 1 of namespaces of its own. It reads a [Plan] from a
// descriptor, builds the file system that the program sees, confines itself,
// starts the program, reaps, and reports how the program ended. The package
// sandbox makes plans and starts the launcher.
//
// It has the only init function of toolreg. The program's other packages take
// longer to initialize than the sandbox takes to set up, and Go initializes a
// package that imports nothing but syscall and unsafe before them. So this
// package must import nothing else, and its init must return at once in every
// process that is not a launcher.
//
// The plan comes by a descriptor and not by arguments or the environment, which
// other processes of the user can read. A program that calls toolreg with the
// name and a plan of its own gains nothing: the launcher has no rights but those
// of its caller, and only gives them up.
package launcher
