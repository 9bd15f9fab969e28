// Package ui shows a run to the person at the terminal and asks them questions.
//
// Questions use /dev/tty (CONIN$ and CONOUT$ on Windows) instead of the standard
// streams, so that stdin remains free for params and stdout for results. While a
// question is on the terminal, everything else waits in the [Screen], results included,
// so that nobody answers a question that has scrolled away. A [Table] fits the width of
// a terminal, and is separated by tabs in a pipe.
//
// All text from a project, a server, a plugin or a model passes [Visible], [Line] or
// [EscapeJSON] before it is shown.
package ui
