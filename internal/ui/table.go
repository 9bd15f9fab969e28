package ui

import (
	"slices"
	"strings"
	"time"
)

// maxCell is the maximum length of a cell on a terminal; in a pipe nothing is
// cut.
const maxCell = 200

// Table formats rows: aligned under a header and cut to the width on a terminal,
// tab-separated and uncut in a pipe. Cells may have foreign text. The first
// column names the row and, like every column of names, is never cut.
type Table struct {
	Header []string
	Rows   [][]string
	// Whole are columns whose text is never cut, such as errors: text that does
	// not fit in the table is printed below it. Columns are moved in this order.
	Whole []string
	Spare []string // columns that may be omitted on a narrow terminal, least important first
}

// Add adds a row.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Line(c)
	}
	t.Rows = append(t.Rows, row)
}

// Tabbed returns the rows as lines with tabs between the cells.
func (t *Table) Tabbed(color bool) string {
	var b strings.Builder
	for _, row := range t.Rows {
		line := make([]Span, 0, 2*len(row))
		for i, cell := range row {
			if i > 0 {
				line = append(line, Span{Text: "\t"})
			}
			title := "" // rows may have cells beyond the header, such as an age
			if i < len(t.Header) {
				title = t.Header[i]
			}
			line = append(line, Span{Text: cell, Style: styleOf(title, cell, i == 0)})
		}
		b.WriteString(Paint(line, color) + "\n")
	}
	return b.String()
}

// Text returns the table for a terminal with width columns; "" if it has no rows.
func (t *Table) Text(width int, color bool) string {
	if len(t.Rows) == 0 {
		return ""
	}
	fitted := *t
	under := fitted.fit(width)
	return fitted.aligned(width, color) + underTable(t.Rows, under, width, color)
}

// remark is a column that is printed below the table.
type remark struct {
	title string
	cells []string
}

// fit removes columns from the table until the rest fits in the width, with at least
// a third of it for the last column, so that it stays readable. It returns the
// columns that must be shown below the table.
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

// cutCells cuts the cells of a column to the available room, and returns the cells
// that were cut. If most of them would be cut, or there is hardly any room, it removes
// the column instead.
func (t *Table) cutCells(column, room int) []string {
	cells := make([]string, len(t.Rows))
	long, filled := 0, 0
	for r, row := range t.Rows {
		if row[column] != "" {
			filled++
		}
		if Width(row[column]) > room {
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
		rows[r][column] = Cut(row[column], room)
	}
	t.Rows = rows
	return cells
}

// take removes a column and returns its cells; nil if there is none.
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

// DropEmpty removes the given columns if they are empty.
func (t *Table) DropEmpty(titles ...string) {
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

// needs returns the width that the table needs if only its last column is cut.
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

func (t *Table) widest() []int {
	widths := make([]int, len(t.Header))
	for i, title := range t.Header {
		widths[i] = Width(title)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	return widths
}

// aligned formats the table for the width and cuts cells that do not fit.
func (t *Table) aligned(width int, color bool) string {
	widths := t.columnWidths(width)
	var b strings.Builder
	for r, row := range append([][]string{t.Header}, t.Rows...) {
		var line []Span
		pad := 0
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if !t.uncut(i) {
				cell = Cut(cell, widths[i])
			}
			style := styleOf(t.Header[i], cell, i == 0)
			if r == 0 {
				style = Dim
			}
			line = append(line, Span{Text: strings.Repeat(" ", pad)}, Span{Text: cell, Style: style})
			pad = widths[i] - Width(cell) + len(gutter)
			if pad < len(gutter) { // a name that is wider than its column gets its own line
				b.WriteString(Paint(line, color) + "\n")
				line, pad = nil, widths[i]+len(gutter)
			}
		}
		if line = trimBlanks(line); len(line) > 0 {
			b.WriteString(Paint(line, color) + "\n")
		}
	}
	return b.String()
}

// underTable formats the cells that did not fit, under the name of each row.
func underTable(rows [][]string, under []remark, width int, color bool) string {
	var b strings.Builder
	for r, row := range rows {
		under := slices.DeleteFunc(slices.Clone(under), func(m remark) bool { return m.cells[r] == "" })
		line := []Span{{Text: row[0], Style: Bold}, {Text: ":"}}
		if len(under) > 1 {
			b.WriteString(Paint(line, color) + "\n")
		}
		line = append(line, Span{Text: " "})
		for _, m := range under {
			if len(under) > 1 {
				line = []Span{{Text: "  " + strings.ToLower(m.title) + ": ", Style: Dim}}
			}
			line = append(line, Span{Text: m.cells[r], Style: styleOf(m.title, m.cells[r], false)})
			for i, part := range WrapSpans(line, max(width-4, 16)) {
				if i > 0 {
					b.WriteString("    ")
				}
				b.WriteString(Paint(part, color) + "\n")
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
	minCell = 6    // minimum width of a column between the first and the last
	// minWhole is the minimum width of a column of cells that are never cut.
	minWhole = 12
)

// columnWidths gives every column the width of its widest cell. If that is too
// much, it shrinks the last column, then the widest ones between, then the first,
// down to half the screen; longer names get their own lines. If that is not enough,
// it omits the last columns. It does not shrink columns whose cells are never cut.
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

// Aged is a table of sources, some of which came from the cache. The
// age of a cached list is the last cell in a pipe; on a terminal it is in the column
// before the last, which is omitted if nothing came from the cache.
type Aged struct {
	Table
	ages []string
}

// AddAged adds a row; cachedAt is nil if the source was queried.
func (t *Aged) AddAged(cachedAt *time.Time, ms int64, cells ...string) {
	age := ""
	if cachedAt != nil {
		age = AgeText(ms)
	}
	t.ages = append(t.ages, age)
	t.Add(cells...)
}

// For returns the table with the ages, for a terminal or a pipe.
func (t *Aged) For(terminal bool) *Table {
	any := false
	for i, age := range t.ages {
		if age == "" {
			continue
		}
		any = true
		if !terminal {
			t.Rows[i] = append(t.Rows[i], age)
		}
	}
	if any && terminal {
		t.Header = beforeLast(t.Header, "AGE")
		for i := range t.Rows {
			t.Rows[i] = beforeLast(t.Rows[i], t.ages[i])
		}
	}
	return &t.Table
}

func beforeLast(cells []string, cell string) []string {
	last := len(cells) - 1
	return append(append(cells[:last:last], cell), cells[last])
}

// AgeText formats an age so that time.ParseDuration can parse it.
func AgeText(ms int64) string {
	age := time.Duration(ms) * time.Millisecond
	if age <= 10*time.Second {
		return age.String()
	}
	shown := age.Truncate(time.Second).String()
	for _, none := range []string{"m0s", "h0m"} { // 24h0m0s is 24h
		if strings.HasSuffix(shown, none) {
			shown = shown[:len(shown)-2]
		}
	}
	return shown
}

// styleOf returns the style of a cell in a column: names, states and errors are
// highlighted.
func styleOf(title, cell string, name bool) Style {
	switch title {
	case "ERROR":
		return Red
	case "STATE", "DECISION", "OUTCOME", "RESULT":
		return StateStyle(cell)
	}
	if name {
		return Bold
	}
	return 0
}

// StateStyle returns the style of a state or a decision: green for success, red
// for failures and refusals, yellow for what needs attention.
func StateStyle(word string) Style {
	switch strings.ToLower(word) {
	case "ok", "connected", "loaded", "allow", "allowed", "granted", "trusted", "read", "yes":
		return Green
	case "failed", "error", "deny", "denied", "refused", "invalid", "limited", "timeout", "cancelled":
		return Red
	case "ask", "asked", "warning", "changed", "cached", "not trusted", "needs login", "untrusted", "ignored":
		return Yellow
	case "skipped", "disabled", "absent", "off", "info":
		return Dim
	}
	return 0
}
