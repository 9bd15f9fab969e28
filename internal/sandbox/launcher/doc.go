// Package launcher is what toolreg becomes in a new process that is to be
// confined: it sets up the sandbox, starts the program in it and waits for it.
package launcher
