package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/toolreg/toolreg/internal/terminal"
)

const (
	maxColumns = 64 // of a table that is laid out
	minCell    = 4  // columns of the screen that a cell is shrunk to
	between    = " │ "
)

// tableBlock is a table. Its children are the cells, row by row, the head first;
// every row has as many as the head.
type tableBlock struct {
	ast.CodeBlock
	align []string // of each column, as written: --- or :-: and the like
}

// readTable makes the lines of a paragraph a table, from a head with bars above
// a line of dashes to the end.
func (d *document) readTable(node *ast.Paragraph) {
	all := node.Lines()
	for i := range all.Len() - 1 {
		head, under := d.cells(all.At(i)), d.cells(all.At(i+1))
		if len(head) != len(under) || len(head) > maxColumns || !d.isDelimiter(all.At(i+1), under) || !bytes.Contains(d.value(all, i), []byte("|")) {
			continue
		}
		t := &tableBlock{}
		for _, c := range under {
			t.align = append(t.align, string(c.Value(d.source)))
		}
		for n, line := range all.Sliced(i, all.Len()) {
			t.Lines().Append(line)
			if n != 1 {
				d.readRow(t, line)
			}
		}
		t.SetBlankPreviousLines(i == 0 && node.HasBlankPreviousLines())
		t.SetPos(all.At(i).Start)
		node.Parent().InsertAfter(node.Parent(), node, t)
		if all.SetSliced(0, i); i == 0 {
			node.Parent().RemoveChild(node.Parent(), node)
		}
		return
	}
}

func (d *document) value(lines *text.Segments, i int) []byte {
	line := lines.At(i)
	return line.Value(d.source)
}

// readRow adds the cells of one row. What is too much is in the last one:
// nothing that was written is left out.
func (d *document) readRow(t *tableBlock, line text.Segment) {
	row := d.cells(line)
	if n := len(t.align); len(row) > n {
		row[n-1] = row[n-1].WithStop(row[len(row)-1].Stop)
		row = row[:n]
	}
	for i := range t.align {
		var cell ast.Node = ast.NewTextBlock()
		if i < len(row) && row[i].Len() > maxInline {
			cell = &verbatim{}
		}
		if i < len(row) && row[i].Len() > 0 {
			cell.Lines().Append(row[i])
		}
		t.AppendChild(t, cell)
	}
}

// isDelimiter reports whether a line is like | --- | :-: |.
func (d *document) isDelimiter(line text.Segment, cells []text.Segment) bool {
	if !bytes.Contains(line.Value(d.source), []byte("|")) {
		return false
	}
	for _, c := range cells {
		dashes := strings.TrimSuffix(strings.TrimPrefix(string(c.Value(d.source)), ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return false
		}
	}
	return true
}

// cells splits a row at the bars that are not escaped.
func (d *document) cells(line text.Segment) []text.Segment {
	line = line.TrimLeftSpace(d.source)
	line = line.TrimRightSpace(d.source)
	value := line.Value(d.source)
	start, end := 0, len(value)
	if bytes.HasPrefix(value, []byte("|")) {
		start = 1
	}
	if end > start && value[end-1] == '|' && !bytes.HasSuffix(value, []byte(`\|`)) {
		end--
	}
	var out []text.Segment
	for i := start; i <= end; i++ {
		switch {
		case i == end || value[i] == '|':
			cell := text.NewSegment(line.Start+start, line.Start+i)
			cell = cell.TrimLeftSpace(d.source)
			out = append(out, cell.TrimRightSpace(d.source))
			start = i + 1
		case value[i] == '\\':
			i++
		}
	}
	return out
}

// table aligns cells under their heads and breaks within cells where the screen
// is too narrow. Where even that does not help, the lines stay as they are.
func (r *renderer) table(t *tableBlock, f frame) {
	var rows [][][]terminal.Span
	for cell := t.FirstChild(); cell != nil; {
		row := make([][]terminal.Span, len(t.align))
		for i := range row {
			p := painter{document: r.document, color: r.color, joined: true, cell: true}
			p.children(cell, 0)
			for n := range p.out {
				p.out[n].Text = oneLine(p.out[n].Text)
			}
			row[i], cell = p.out, cell.NextSibling()
		}
		rows = append(rows, row)
	}
	widths, ok := columnWidths(rows, f.width-len([]rune(between))*(len(t.align)-1))
	if !ok {
		r.lines(t, f)
		return
	}
	for i, row := range rows {
		if i == 0 {
			for n := range row {
				row[n] = restyled(row[n], terminal.Bold)
			}
		}
		f = r.tableRow(f, row, widths, t.align)
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
