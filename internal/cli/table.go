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
// terminal, tab-separated and whole in a pipe. Cells may hold foreign text. The
// first column names the row and, like every column of names, is never cut.
type Table struct {
	Header []string
	Rows   [][]string
	// Whole are columns whose text is always there whole, such as errors: what has
	// no room in the table is printed under it. The first of them goes first.
	Whole []string
	Spare []string // columns that a narrow terminal does without, the least needed first
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
	if e.OutTTY {
		return e.Out.WriteStyled(t.Text(e.Width(), e.Color(true)))
	}
	var b strings.Builder
	for _, row := range t.Rows {
		b.WriteString(strings.Join(row, "\t") + "\n")
	}
	_, err := io.WriteString(e.Out, b.String())
	return err
}

// Text lays the table out in a width, whatever stdout is; "" where it has no rows.
func (t *Table) Text(width int, color bool) string {
	if len(t.Rows) == 0 {
		return ""
	}
	fitted := *t
	under := fitted.fit(width)
	return fitted.aligned(width, color) + underTable(t.Rows, under, width, color)
}

// remark is a column that is printed under the table.
type remark struct {
	title string
	cells []string
}

// fit takes columns out of the table until the rest has room in the width, the
// last column at a third of it: what is left can be read, nothing is a stump. It
// returns those that must be shown all the same.
func (t *Table) fit(width int) []remark {
	var under []remark
	for _, title := range t.Whole {
		i := slices.Index(t.Header, title)
		if i < 0 || t.needs(width) <= width {
			continue
		}
		if cells := t.cutCells(i, width-t.needs(width)+t.widest()[i]); cells != nil {
			under = append(under, remark{title, cells})
		}
	}
	for _, title := range t.Spare {
		if t.needs(width) <= width {
			break
		}
		t.take(title)
	}
	return under
}

// cutCells cuts the cells of a column to the room there is, and returns what was
// cut. Where that is most of them, or there is hardly any room, the column is taken
// out instead.
func (t *Table) cutCells(column, room int) []string {
	cells := make([]string, len(t.Rows))
	long, filled := 0, 0
	for r, row := range t.Rows {
		if row[column] != "" {
			filled++
		}
		if terminal.Width(row[column]) > room {
			cells[r] = row[column]
			long++
		}
	}
	if room < minWhole || 2*long > filled {
		return t.take(t.Header[column])
	}
	rows := make([][]string, len(t.Rows))
	for r, row := range t.Rows {
		rows[r] = slices.Clone(row)
		rows[r][column] = terminal.Cut(row[column], room)
	}
	t.Rows = rows
	return cells
}

// take takes a column out and returns its cells, nil where there is none.
func (t *Table) take(title string) []string {
	i := slices.Index(t.Header, title)
	if i < 0 {
		return nil
	}
	cells := make([]string, len(t.Rows))
	rows := make([][]string, len(t.Rows))
	for r, row := range t.Rows {
		cells[r] = row[i]
		rows[r] = slices.Delete(slices.Clone(row), i, i+1)
	}
	t.Header, t.Rows = slices.Delete(slices.Clone(t.Header), i, i+1), rows
	return cells
}

// dropEmpty takes out those of the columns that have nothing in them.
func (t *Table) dropEmpty(titles ...string) {
	for _, title := range titles {
		without := *t
		if strings.Join(without.take(title), "") == "" {
			*t = without
		}
	}
}

// uncut reports whether the cells of a column are never cut.
func (t *Table) uncut(column int) bool {
	switch t.Header[column] {
	case "NAME", "TOOL", "SERVER", "PLUGIN", "PROMPT", "SOURCE", "URI", "ID", "KEY":
		return true
	}
	return column == 0 || slices.Contains(t.Whole, t.Header[column])
}

// needs is the width that the table takes when only its last column is cut.
func (t *Table) needs(width int) int {
	total := -len(gutter)
	for i, widest := range t.widest() {
		if i == len(t.Header)-1 && !t.uncut(i) {
			widest = min(widest, max(width/3, 10))
		}
		total += widest + len(gutter)
	}
	return total
}

// widest returns the width of the widest cell of each column.
func (t *Table) widest() []int {
	widths := make([]int, len(t.Header))
	for i, title := range t.Header {
		widths[i] = terminal.Width(title)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], terminal.Width(row[i]))
		}
	}
	return widths
}

// aligned lays the table out in the width; what has no room is cut.
func (t *Table) aligned(width int, color bool) string {
	widths := t.columnWidths(width)
	var b strings.Builder
	for r, row := range append([][]string{t.Header}, t.Rows...) {
		var line []terminal.Span
		pad := 0
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if !t.uncut(i) {
				cell = terminal.Cut(cell, widths[i])
			}
			style := styleOf(t.Header[i], cell, i == 0)
			if r == 0 {
				style = terminal.Dim
			}
			line = append(line, terminal.Span{Text: strings.Repeat(" ", pad)}, terminal.Span{Text: cell, Style: style})
			pad = widths[i] - terminal.Width(cell) + len(gutter)
			if pad < len(gutter) { // a name that is wider than its column has a line of its own
				b.WriteString(terminal.Paint(line, color) + "\n")
				line, pad = nil, widths[i]+len(gutter)
			}
		}
		for len(line) > 0 && strings.TrimSpace(line[len(line)-1].Text) == "" {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			b.WriteString(terminal.Paint(line, color) + "\n")
		}
	}
	return b.String()
}

// underTable lays out what had no room, by the name of each row.
func underTable(rows [][]string, under []remark, width int, color bool) string {
	var b strings.Builder
	for r, row := range rows {
		under := slices.DeleteFunc(slices.Clone(under), func(m remark) bool { return m.cells[r] == "" })
		line := []terminal.Span{{Text: row[0], Style: terminal.Bold}, {Text: ":"}}
		if len(under) > 1 {
			b.WriteString(terminal.Paint(line, color) + "\n")
		}
		line = append(line, terminal.Span{Text: " "})
		for _, m := range under {
			if len(under) > 1 {
				line = []terminal.Span{{Text: "  " + strings.ToLower(m.title) + ": ", Style: terminal.Dim}}
			}
			line = append(line, terminal.Span{Text: m.cells[r], Style: styleOf(m.title, m.cells[r], false)})
			for i, part := range terminal.WrapSpans(line, max(width-4, 16)) {
				if i > 0 {
					b.WriteString("    ")
				}
				b.WriteString(terminal.Paint(part, color) + "\n")
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

const (
	gutter  = "  " // between columns
	minCell = 6    // what a column between the first and the last is shrunk to at most
	// minWhole is the least room for a column of cells that are never cut.
	minWhole = 12
)

// columnWidths gives every column what its widest cell takes. Where that is too
// much it takes from the last column, then from the widest of those between, then
// from the first, down to half the screen, where longer names have lines of their
// own; if all that is not enough the last columns are left out. What is never cut
// is not shrunk.
func (t *Table) columnWidths(width int) []int {
	widths := t.widest()
	total := -len(gutter)
	for i := range widths {
		if !t.uncut(i) {
			widths[i] = min(widths[i], maxCell)
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
	if !t.uncut(last) {
		shrink(last, max(width/3, 10))
	}
	for total > width {
		widest := -1
		for i := 1; i < last; i++ {
			if !t.uncut(i) && widths[i] > minCell && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		shrink(widest, widths[widest]-1)
	}
	shrink(0, width/2)
	for i := last; i > 0 && total > width; i-- {
		total -= widths[i] + len(gutter)
		widths[i] = 0
	}
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
