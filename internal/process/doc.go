// Package process starts child programs and ends them: the words of a command
// line, the executable in the child's own PATH, a session and process group for
// each child, deadlines, and limits on output.
//
// Everything that toolreg starts goes through [Run] (discovery and call
// commands, plugins, the shell tool) or [Start] (MCP servers). A child has no
// controlling terminal, inherits no descriptor beyond its three streams, and
// sees exactly the environment it is given.
//
// What ends with toolreg: a call that returns leaves nothing of the child's
// process group behind, grandchildren included. When toolreg itself is killed
// with SIGKILL, Linux kills each direct child (PR_SET_PDEATHSIG) and Windows
// the whole job; grandchildren on Linux, and every child elsewhere, see the end
// of their stdin. A program that leaves its group on purpose (setsid, a daemon)
// is ended with [Spec.Contain] on Linux and out of reach elsewhere; none of its
// pipes can hold a call up.
//
// The package imports no other package of this module and is the only one that
// imports os/exec and google/shlex.
package process
