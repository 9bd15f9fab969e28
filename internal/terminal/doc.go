// Package terminal asks the person questions at the terminal and makes foreign
// text safe to show.
//
// Questions use /dev/tty (CONIN$ and CONOUT$ on Windows) instead of the
// standard streams, so that stdin remains free for params and stdout for
// results. All text from a project, a server, a plugin or a model passes
// [Visible], [Line] or [EscapeJSON] before it is shown.
package terminal
