package markdown

import (
	"strings"

	"github.com/toolreg/toolreg/internal/ui"
)

const (
	minCell = 4 // minimum columns of a cell
	between = " │ "
)

// tableLines aligns cells under their heads, which are the first row, and
// breaks within cells if the screen is too narrow. It returns false if even
// that is not enough.
func tableLines(rows [][][]ui.Span, align []string, width int) ([][]ui.Span, bool) {
	widths, ok := columnWidths(rows, width-len([]rune(between))*(len(align)-1))
	if !ok {
		return nil, false
	}
	for n, cell := range rows[0] {
		rows[0][n] = restyled(cell, ui.Bold)
	}
	out := tableRow(rows[0], widths, align)
	out = append(out, []ui.Span{{Text: headRule(widths), Style: ui.Dim}})
	for _, row := range rows[1:] {
		out = append(out, tableRow(row, widths, align)...)
	}
	return out, true
}

func headRule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.Join(parts, "─┼─")
}

// columnWidths shrinks the widest columns until all fit into room.
func columnWidths(rows [][][]ui.Span, room int) ([]int, bool) {
	widths := make([]int, len(rows[0]))
	total := 0
	for i := range widths {
		widths[i] = 1
		for _, row := range rows {
			widths[i] = max(widths[i], ui.SpansWidth(row[i]))
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
		// Shrink by as much as possible before another column becomes the
		// widest.
		less := max(1, min(total-room, widths[widest]-max(minCell, room/len(widths)))/2)
		widths[widest] -= less
		total -= less
	}
	return widths, true
}

// tableRow returns the lines of one row, as many as its longest cell needs.
func tableRow(row [][]ui.Span, widths []int, align []string) [][]ui.Span {
	broken := make([][][]ui.Span, len(row))
	tallest := 1
	for i, c := range row {
		broken[i] = brokenCell(c, widths[i])
		tallest = max(tallest, len(broken[i]))
	}
	out := make([][]ui.Span, tallest)
	for n := range out {
		for i := range row {
			if i > 0 {
				out[n] = append(out[n], ui.Span{Text: between, Style: ui.Dim})
			}
			var part []ui.Span
			if n < len(broken[i]) {
				part = broken[i][n]
			}
			out[n] = append(out[n], aligned(part, widths[i], align[i])...)
		}
	}
	return out
}

// brokenCell breaks between words, and within words that are too long.
func brokenCell(c []ui.Span, width int) [][]ui.Span {
	var out [][]ui.Span
	for _, row := range ui.WrapSpans(c, width) {
		for rest := row; ; {
			var head []ui.Span
			head, rest = ui.SplitSpans(rest, width)
			out = append(out, head)
			if len(rest) == 0 {
				break
			}
		}
	}
	return out
}

func aligned(c []ui.Span, width int, align string) []ui.Span {
	pad := max(width-ui.SpansWidth(c), 0)
	left := 0
	switch right, centre := strings.HasSuffix(align, ":"), strings.HasPrefix(align, ":"); {
	case right && centre:
		left = pad / 2
	case right:
		left = pad
	}
	out := append([]ui.Span{{Text: strings.Repeat(" ", left)}}, c...)
	return append(out, ui.Span{Text: strings.Repeat(" ", pad-left)})
}
