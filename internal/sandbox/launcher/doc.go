// Package launcher is what toolreg becomes in a new process that is to be
// confined: process 1 of its own namespaces. It reads a [Plan] from a
// descriptor, builds the file system that the program sees, confines itself,
// starts the program, reaps, and reports how the program ended. Package sandbox
// creates plans and starts the launcher.
//
// It has the only init function of toolreg. The other packages of toolreg take
// longer to initialize than the sandbox takes to set up, and Go initializes a
// package that imports only syscall and unsafe before them. So this package
// must import nothing else, and its init must return at once in every process
// that is not a launcher.
//
// The plan is read from a descriptor, since other processes of the user can read
// arguments and the environment. A program that calls toolreg with this name and
// its own plan gains nothing: the launcher has only the rights of its caller,
// and only gives them up.
package launcher
