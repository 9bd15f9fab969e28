package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/ui"
)

// Color reports whether to use colors for an output that may be a terminal.
func (o *IO) Color(isTTY bool) bool {
	switch o.color {
	case "always":
		return true
	case "never":
		return false
	}
	if force := o.getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return o.getenv("NO_COLOR") == ""
	}
	return isTTY && o.getenv("NO_COLOR") == "" && o.getenv("TERM") != "dumb"
}

// minWidth is the minimum width for formatting.
const minWidth = 20

// Width returns the width for formatting: COLUMNS if it is set, as in other
// programs, or else that of the terminal on stdout, or 80 if it is unknown.
func (o *IO) Width() int {
	if n, err := strconv.Atoi(o.getenv("COLUMNS")); err == nil && n > 0 {
		return max(min(n, 10_000), minWidth)
	}
	width, _ := o.size()
	return max(width, minWidth)
}

// size returns the columns and rows of the terminal on stdout, or 80 by 24 if
// unknown.
func (o *IO) size() (columns, rows int) { return ui.SizeOf(o.Stdout())() }

// pipeWidth is the width of a pipe, large enough that nothing is wrapped.
const pipeWidth = 1 << 20

// WrapWidth returns the width at which long text on stdout is wrapped.
func (o *IO) WrapWidth() int {
	if o.OutTTY {
		return o.Width()
	}
	return pipeWidth
}

// Counted returns a number with its noun.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// WithFailed returns a number with its noun and, if any failed, how many.
func WithFailed(n int, noun string, failed int) string {
	if failed == 0 {
		return Counted(n, noun)
	}
	return Counted(n, noun) + ", " + strconv.Itoa(failed) + " failed"
}

// Block indents foreign text of several lines.
func Block(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(ui.Visible(s), "\n"), "\n", "\n  ") + "\n"
}

// LockChange describes a change of a tool's definition in one line, followed by its diff if
// diffs is set.
func LockChange(c lock.Change, diffs bool) string {
	mark := map[string]string{lock.Added: "+", lock.Removed: "-", lock.Changed: "~"}[c.Kind]
	name := c.Name
	if c.Version != "" {
		name += "@" + c.Version
	}
	line := mark + " " + ui.Line(c.Source) + " " + ui.Line(name)
	if len(c.Parts) > 0 {
		line += ": " + lock.PartNames(c.Parts) + " changed"
	}
	line += "\n"
	if c.Diff != "" && diffs {
		line += Block(c.Diff)
	}
	return line
}

// EndLine ends the last line of a text unless it is empty.
func EndLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// OrEmpty returns an empty slice for nil, so that JSON has [] instead of null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clip(s)
}
