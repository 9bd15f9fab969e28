package cli

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/terminal"
)

// maxCell cuts a cell on a terminal, with a mark; in a pipe nothing is cut.
const maxCell = 200

// Table prints rows: aligned under a header and cut to the width on a
// terminal, tab-separated and whole in a pipe. Cells may hold foreign text.
type Table struct {
	Header []string
	Rows   [][]string
	Spare  []string // columns that a narrow terminal does without, the least needed first
}

// Add adds a row.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = terminal.Line(c)
	}
	t.Rows = append(t.Rows, row)
}

// Print prints the rows on stdout.
func (t *Table) Print(e *Env) error {
	if !e.OutTTY {
		var b strings.Builder
		for _, row := range t.Rows {
			b.WriteString(strings.Join(row, "\t") + "\n")
		}
		_, err := io.WriteString(e.Out, b.String())
		return err
	}
	width := e.Width()
	t.fit(width)
	_, err := io.WriteString(e.Out, t.aligned(width))
	return err
}

// fit leaves spare columns out until the rest has room in the width, the last
// column at a third of it: what is left can be read, nothing is a stump.
func (t *Table) fit(width int) {
	for _, column := range t.Spare {
		if t.needs(width) <= width {
			return
		}
		i := slices.Index(t.Header, column)
		if i < 0 {
			continue
		}
		t.Header = slices.Delete(slices.Clone(t.Header), i, i+1)
		for r, row := range t.Rows {
			t.Rows[r] = slices.Delete(row, i, i+1)
		}
	}
}

// needs is the width that the table takes when only its last column is cut.
func (t *Table) needs(width int) int {
	total := -len(gutter)
	for i, title := range t.Header {
		widest := terminal.Width(title)
		for _, row := range t.Rows {
			widest = max(widest, terminal.Width(row[i]))
		}
		if i == len(t.Header)-1 {
			widest = min(widest, max(width/3, 10))
		}
		total += widest + len(gutter)
	}
	return total
}

// aligned lays the table out in the width; what has no room is cut.
func (t *Table) aligned(width int) string {
	all := append([][]string{t.Header}, t.Rows...)
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

// AgedTable is a table of sources, of which some were not asked. For those the
// age of what the cache holds is the last cell in a pipe; on a terminal it has a
// column before the last, where there is any.
type AgedTable struct {
	Table
	ages []string
}

// AddAged adds a row; cachedAt is nil for what was asked.
func (t *AgedTable) AddAged(cachedAt *time.Time, ms int64, cells ...string) {
	age := ""
	if cachedAt != nil {
		age = AgeText(ms)
	}
	t.ages = append(t.ages, age)
	t.Add(cells...)
}

// Print prints the rows on stdout.
func (t *AgedTable) Print(e *Env) error {
	any := false
	for i, age := range t.ages {
		if age == "" {
			continue
		}
		any = true
		if !e.OutTTY {
			t.Rows[i] = append(t.Rows[i], age)
		}
	}
	if any && e.OutTTY {
		t.Header = beforeLast(t.Header, "AGE")
		for i := range t.Rows {
			t.Rows[i] = beforeLast(t.Rows[i], t.ages[i])
		}
	}
	return t.Table.Print(e)
}

func beforeLast(cells []string, cell string) []string {
	last := len(cells) - 1
	return append(append(cells[:last:last], cell), cells[last])
}

// AgeText says how old something is, in a form that time.ParseDuration reads.
func AgeText(ms int64) string {
	age := time.Duration(ms) * time.Millisecond
	if age > 10*time.Second {
		return age.Truncate(time.Second).String()
	}
	return age.String()
}
