package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// maxColumns is the maximum number of columns of a table.
const maxColumns = 64

// readTable converts the lines of a paragraph to a table, if it has a head with
// bars above a line of dashes.
func readTable(source []byte, node *ast.Paragraph) {
	all := node.Lines()
	for i := range all.Len() - 1 {
		head, under := cells(source, all.At(i)), cells(source, all.At(i+1))
		if len(head) != len(under) || len(head) > maxColumns || !hasBar(source, all.At(i)) || !isDelimiter(source, all.At(i+1), under) {
			continue
		}
		for _, line := range all.Sliced(i, all.Len()) {
			if line.Len() > maxInline {
				return
			}
		}
		t := &tableBlock{}
		for _, c := range under {
			t.align = append(t.align, string(c.Value(source)))
		}
		for n, line := range all.Sliced(i, all.Len()) {
			t.Lines().Append(line)
			if n != 1 {
				readRow(source, t, line)
			}
		}
		t.SetPos(all.At(i).Start)
		node.Parent().InsertAfter(node.Parent(), node, t)
		if all.SetSliced(0, i); i == 0 {
			node.Parent().RemoveChild(node.Parent(), node)
		}
		return
	}
}

func hasBar(source []byte, line text.Segment) bool {
	return bytes.Contains(line.Value(source), []byte("|"))
}

// readRow adds the cells of one row. The last cell includes excess cells, so
// that no text is lost.
func readRow(source []byte, t *tableBlock, line text.Segment) {
	row := cells(source, line)
	if n := len(t.align); len(row) > n {
		row[n-1] = row[n-1].WithStop(row[len(row)-1].Stop)
		row = row[:n]
	}
	for i := range t.align {
		cell := ast.NewTextBlock()
		if i < len(row) && row[i].Len() > 0 {
			cell.Lines().Append(row[i])
		}
		t.AppendChild(t, cell)
	}
}

// isDelimiter reports whether a line has the form | --- | :-: |.
func isDelimiter(source []byte, line text.Segment, cells []text.Segment) bool {
	if !hasBar(source, line) {
		return false
	}
	for _, c := range cells {
		dashes := strings.TrimSuffix(strings.TrimPrefix(string(c.Value(source)), ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return false
		}
	}
	return true
}

// cells splits a row at the bars that are not escaped.
func cells(source []byte, line text.Segment) []text.Segment {
	line = line.TrimLeftSpace(source)
	line = line.TrimRightSpace(source)
	value := line.Value(source)
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
			cell = cell.TrimLeftSpace(source)
			out = append(out, cell.TrimRightSpace(source))
			start = i + 1
		case value[i] == '\\':
			i++
		}
	}
	return out
}
