package main

import (
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/terminal"
)

// maxCell cuts a cell on a terminal, with a mark; in a pipe nothing is cut.
const maxCell = 200

// table prints rows: aligned under a header and cut to the width on a
// terminal, tab-separated and whole in a pipe. Cells may hold foreign text.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = terminal.Line(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(a *app) error {
	if !a.outTTY {
		var b strings.Builder
		for _, row := range t.rows {
			b.WriteString(strings.Join(row, "\t") + "\n")
		}
		_, err := io.WriteString(a.out, b.String())
		return err
	}
	_, err := io.WriteString(a.out, t.aligned(terminalWidth(a)))
	return err
}

// aligned lays the table out; the last column takes what is left of the width.
func (t *table) aligned(width int) string {
	widths := make([]int, len(t.header))
	all := append([][]string{t.header}, t.rows...)
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], min(terminal.Width(c), maxCell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		used := 0
		for i, c := range row {
			limit := widths[i]
			if i == len(row)-1 {
				limit = max(width-used, 10)
			}
			c = terminal.Cut(c, min(limit, maxCell))
			b.WriteString(c)
			if i < len(row)-1 {
				pad := widths[i] - terminal.Width(c) + 2
				b.WriteString(strings.Repeat(" ", pad))
				used += widths[i] + 2
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// terminalWidth is the width of the terminal on stdout, 80 where it does not
// tell.
func terminalWidth(a *app) int {
	if f, ok := a.stdout.(interface{ Fd() uintptr }); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}
