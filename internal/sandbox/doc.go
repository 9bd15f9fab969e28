// Package sandbox describes how the kernel restricts a program that toolreg starts: what
// the program can access ([Profile]), what the system supports ([Probe]) and how the start
// is prepared ([Prepare]).
//
// On Linux the program gets its own user, mount, pid, ipc and net namespaces, a Landlock
// domain and a seccomp filter; package launcher sets them up in the new process before the
// program runs. On macOS sandbox-exec applies a Seatbelt profile. Other systems have no
// sandbox.
//
// Everything fails closed: if a step fails, the program does not run, and an [Error] names
// the step.
//
// Callers do not use [Prepare] directly; they set Spec.Confine of package process.
package sandbox
