package main

import (
	"io"
	"slices"
	"strconv"
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
	spare  []string // columns that a narrow terminal does without, the least needed first
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
	width := terminalWidth(a)
	t.fit(width)
	_, err := io.WriteString(a.out, t.aligned(width))
	return err
}

// fit leaves spare columns out until the rest has room in the width, the last
// column at a third of it: what is left can be read, nothing is a stump.
func (t *table) fit(width int) {
	for _, column := range t.spare {
		if t.needs(width) <= width {
			return
		}
		i := slices.Index(t.header, column)
		if i < 0 {
			continue
		}
		t.header = slices.Delete(slices.Clone(t.header), i, i+1)
		for r, row := range t.rows {
			t.rows[r] = slices.Delete(row, i, i+1)
		}
	}
}

// needs is the width that the table takes when only its last column is cut.
func (t *table) needs(width int) int {
	total := -len(gutter)
	for i, title := range t.header {
		widest := terminal.Width(title)
		for _, row := range t.rows {
			widest = max(widest, terminal.Width(row[i]))
		}
		if i == len(t.header)-1 {
			widest = min(widest, max(width/3, 10))
		}
		total += widest + len(gutter)
	}
	return total
}

// aligned lays the table out in the width; what has no room is cut.
func (t *table) aligned(width int) string {
	all := append([][]string{t.header}, t.rows...)
	widths := columnWidths(all, width)
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, c := range row {
			c = terminal.Cut(c, widths[i])
			line.WriteString(c + strings.Repeat(" ", widths[i]-terminal.Width(c)+len(gutter)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

const (
	gutter  = "  " // between columns
	minCell = 6    // what a column between the first and the last is shrunk to at most
)

// columnWidths gives every column what its widest cell takes. Where that is too
// much it takes from the last column, then from the widest of those between, then
// from the first, which names the row, down to half the screen; if all that is not
// enough the last columns are left out.
func columnWidths(rows [][]string, width int) []int {
	widths := make([]int, len(rows[0]))
	total := -len(gutter)
	for i := range widths {
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], min(terminal.Width(row[i]), maxCell))
			}
		}
		total += widths[i] + len(gutter)
	}
	shrink := func(i, least int) {
		if less := min(total-width, widths[i]-least); less > 0 {
			widths[i] -= less
			total -= less
		}
	}
	last := len(widths) - 1
	shrink(last, max(width/3, 10))
	for last > 1 {
		widest := 1
		for i := 1; i < last; i++ {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= minCell {
			break
		}
		shrink(widest, widths[widest]-1)
	}
	shrink(0, width/2)
	for i := last; i > 0 && total > width; i-- {
		total -= widths[i] + len(gutter)
		widths[i] = 0
	}
	shrink(0, 1)
	return widths
}

// minWidth is the narrowest screen that is laid out for.
const minWidth = 20

// terminalWidth is the width to lay out for: COLUMNS where it is set, as for
// other programs, else that of the terminal on stdout, 80 where it does not tell.
func terminalWidth(a *app) int {
	if v, _ := lookupEnv(a.environ, "COLUMNS"); v != "" {
		if n, err := strconv.Atoi(v); err == nil && n > 0 {
			return max(min(n, 10_000), minWidth)
		}
	}
	if f, ok := a.stdout.(interface{ Fd() uintptr }); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, minWidth)
		}
	}
	return 80
}
