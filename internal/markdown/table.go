package markdown

import (
	"strings"

	"github.com/toolreg/toolreg/internal/terminal"
)

const (
	maxColumns = 64 // of a table that is laid out
	minCell    = 4  // columns of the screen that a cell is shrunk to
	between    = " │ "
)

// tableLength returns how many of the lines are one table that begins with the
// first of them: a head, a line of dashes, and rows.
func tableLength(text []string) int {
	if len(text) < 2 || !strings.Contains(text[0], "|") || !isDelimiter(text[1]) {
		return 0
	}
	if n := len(cells(text[0])); n != len(cells(text[1])) || n > maxColumns {
		return 0
	}
	n := 2
	for n < len(text) && strings.Contains(text[n], "|") {
		n++
	}
	return n
}

// isDelimiter reports whether a line is like | --- | :-: |.
func isDelimiter(line string) bool {
	if strings.Trim(line, "|-: ") != "" || !strings.Contains(line, "|") {
		return false
	}
	for _, c := range cells(line) {
		if strings.Trim(strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":"), "-") != "" || !strings.Contains(c, "-") {
			return false
		}
	}
	return true
}

// cells splits a row at the bars that are not escaped.
func cells(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var out []string
	start := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			out = append(out, line[start:i])
			start = i + 1
		}
	}
	out = append(out, line[min(start, len(line)):])
	for i, c := range out {
		out[i] = strings.ReplaceAll(strings.TrimSpace(c), `\|`, "|")
	}
	return out
}

// table aligns cells under their heads and breaks within cells where the screen
// is too narrow. Where even that does not help, the lines stay as they are.
func (r *renderer) table(b *block, f frame) {
	head, align := cells(b.lines[0]), cells(b.lines[1])
	rows := [][][]terminal.Span{}
	for i, l := range b.lines {
		if i == 1 {
			continue
		}
		row := make([][]terminal.Span, len(head))
		for n, c := range cells(l) {
			if n < len(head) {
				row[n] = oneLine(c, r.color)
			}
		}
		if extra := cells(l); len(extra) > len(head) { // nothing that was written is left out
			last := len(head) - 1
			row[last] = oneLine(strings.Join(extra[last:], " | "), r.color)
		}
		rows = append(rows, row)
	}
	widths, ok := columnWidths(rows, f.width-len([]rune(between))*(len(head)-1))
	if !ok {
		for _, l := range b.lines {
			r.row(f, []terminal.Span{{Text: l}})
			f = f.next()
		}
		return
	}
	for i, row := range rows {
		if i == 0 {
			for n := range row {
				row[n] = restyled(row[n], terminal.Bold)
			}
		}
		f = r.tableRow(f, row, widths, align)
		if i == 0 {
			r.row(f, []terminal.Span{{Text: underHead(widths), Style: terminal.Dim}})
		}
	}
}

func underHead(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.Join(parts, "─┼─")
}

// columnWidths shrinks the widest columns until all fit into room.
func columnWidths(rows [][][]terminal.Span, room int) ([]int, bool) {
	widths := make([]int, len(rows[0]))
	total := 0
	for i := range widths {
		widths[i] = 1
		for _, row := range rows {
			widths[i] = max(widths[i], terminal.SpansWidth(row[i]))
		}
		total += widths[i]
	}
	for total > room {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minCell {
			return nil, false
		}
		// As many at once as cannot change which column is widest for long.
		less := max(1, min(total-room, widths[widest]-max(minCell, room/len(widths)))/2)
		widths[widest] -= less
		total -= less
	}
	return widths, true
}

// tableRow writes one row in as many lines as its fullest cell takes, and
// returns the frame of what follows.
func (r *renderer) tableRow(f frame, row [][]terminal.Span, widths []int, align []string) frame {
	broken := make([][][]terminal.Span, len(row))
	tallest := 1
	for i, c := range row {
		broken[i] = brokenCell(c, widths[i])
		tallest = max(tallest, len(broken[i]))
	}
	for n := range tallest {
		var line []terminal.Span
		for i := range row {
			if i > 0 {
				line = append(line, terminal.Span{Text: between, Style: terminal.Dim})
			}
			var part []terminal.Span
			if n < len(broken[i]) {
				part = broken[i][n]
			}
			line = append(line, aligned(part, widths[i], align[i])...)
		}
		r.row(f, line)
		f = f.next()
	}
	return f
}

// brokenCell breaks between words, and within those that are too long.
func brokenCell(c []terminal.Span, width int) [][]terminal.Span {
	var out [][]terminal.Span
	for _, row := range terminal.WrapSpans(c, width) {
		for rest := row; ; {
			var head []terminal.Span
			head, rest = terminal.SplitSpans(rest, width)
			out = append(out, head)
			if len(rest) == 0 {
				break
			}
		}
	}
	return out
}

func aligned(c []terminal.Span, width int, align string) []terminal.Span {
	pad := max(width-terminal.SpansWidth(c), 0)
	left := 0
	switch right, centre := strings.HasSuffix(align, ":"), strings.HasPrefix(align, ":"); {
	case right && centre:
		left = pad / 2
	case right:
		left = pad
	}
	out := append([]terminal.Span{{Text: strings.Repeat(" ", left)}}, c...)
	return append(out, terminal.Span{Text: strings.Repeat(" ", pad-left)})
}
