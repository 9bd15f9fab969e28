package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/screen"
	"github.com/toolreg/toolreg/internal/terminal"
)

// Color decides on colours for an output that is a terminal or not.
func (e *Env) Color(isTTY bool) bool {
	switch e.Globals.Color {
	case "always":
		return true
	case "never":
		return false
	}
	if force := e.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return e.Getenv("NO_COLOR") == ""
	}
	return isTTY && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}

// fullScreen reports whether a person is at a terminal on which we may draw.
func (e *Env) fullScreen() bool {
	name := e.Getenv("TERM")
	return terminal.HasFull && e.InTTY && e.OutTTY && e.ErrTTY && name != "" && name != "dumb" && !e.Globals.JSON && e.asker.nobody() == ""
}

// minWidth is the narrowest screen that is laid out for.
const minWidth = 20

// Width is the width to lay out for: COLUMNS where it is set, as for other
// programs, else that of the terminal on stdout, 80 where it does not tell.
func (e *Env) Width() int {
	if n, err := strconv.Atoi(e.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(min(n, 10_000), minWidth)
	}
	width, _ := e.size()
	return max(width, minWidth)
}

// size is that of the terminal on stdout in columns and rows, 80 by 24 where it
// does not tell.
func (e *Env) size() (columns, rows int) { return screen.SizeOf(e.Stdout())() }

// pipeWidth is so wide that nothing is broken in a pipe.
const pipeWidth = 1 << 20

// WrapWidth is where long text on stdout is broken.
func (e *Env) WrapWidth() int {
	if e.OutTTY {
		return e.Width()
	}
	return pipeWidth
}

// Counted says a number with its noun.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// WithFailed says how many there are and how many of them failed.
func WithFailed(n int, noun string, failed int) string {
	if failed == 0 {
		return Counted(n, noun)
	}
	return Counted(n, noun) + ", " + strconv.Itoa(failed) + " failed"
}

// Block indents a foreign text of several lines.
func Block(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(terminal.Visible(s), "\n"), "\n", "\n  ") + "\n"
}

// EndLine ends the last line of a text, if there is any.
func EndLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// OrEmpty makes nil a list of none, which JSON tells apart.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clip(s)
}
