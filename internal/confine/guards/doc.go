// Package guards protects the files of a workspace from which other programs run commands.
// The sandbox keeps a program from changing those that exist before it starts, and
// [Guards.Clean] removes those that it has added.
package guards
