// Package ui draws: it shows the progress and results of a run, and reads what the person at the
// terminal types. It knows nothing of calls and rules; what is asked about them is in ui/asking.
//
// Questions use /dev/tty (CONIN$ and CONOUT$ on Windows) instead of the standard
// streams, so that stdin remains free for params and stdout for results. While a
// question is on the terminal, all other output, including results, waits in the
// [Screen], so that nobody answers a question that has scrolled away. A [Table] fits
// the width of a terminal; in a pipe its cells are separated by tabs.
//
// All text from a project, a server, a plugin or a model passes [Visible], [Line] or
// [text.EscapeJSON] before it is shown.
package ui
