// Package process starts and stops child programs: it splits command lines,
// finds executables in the child's own PATH, and manages sessions, process
// groups, deadlines and limits on output.
//
// Everything that toolreg starts goes through [Run] (discovery and call
// commands, plugins, the shell tool) or [Start] (MCP servers). A child has no
// controlling terminal, inherits no descriptor except its three streams, and
// has exactly the environment that it is given.
//
// A call that returns leaves nothing of the child's process group behind,
// including grandchildren. If toolreg itself is killed with SIGKILL, Linux
// kills each direct child (PR_SET_PDEATHSIG) and Windows the whole job;
// grandchildren on Linux, and every child on other systems, see the end of
// their stdin. A program that leaves its group on purpose (setsid, a daemon) is
// found by [MarkVariable] on Linux and out of reach on other systems, but its
// pipes cannot block a call.
//
// A child with [Spec.Confine] runs in a sandbox. The package is the only one that
// imports os/exec and google/shlex.
package process
