// Package terminal talks to the person at the terminal, and makes foreign text
// safe to show.
//
// Questions go to /dev/tty (CONIN$ and CONOUT$ on Windows) and not to the
// standard streams, so that stdin stays params and stdout stays results. Every
// text that came from a project, a server, a plugin or a model passes
// [Visible], [Line] or [EscapeJSON] on its way to a screen.
package terminal
