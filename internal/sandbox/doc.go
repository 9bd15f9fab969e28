// Package sandbox describes how a program that toolreg starts is confined by the
// kernel: which paths it sees ([Profile]), what the system can do ([Probe]) and
// how the start is prepared ([Prepare]).
//
// On Linux the program gets user, mount, pid, ipc and net namespaces of its own,
// a Landlock domain and a seccomp filter; see the package launcher, which sets
// them up in the new process before the program runs. On macOS sandbox-exec
// applies a Seatbelt profile. Other systems have no sandbox.
//
// Everything fails closed: if a step cannot be done, the program does not run,
// and an [Error] names the step.
//
// Callers do not use [Prepare]: they set Spec.Confine of the package process.
package sandbox
