package picker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

func (p *picker) draw(ctx context.Context) error {
	columns, rows := p.screen.Size()
	if p.shown != "" {
		return p.screen.Draw(ctx, p.drawPage(columns, rows), -1, 0)
	}
	lines, column := p.drawList(columns, rows)
	return p.screen.Draw(ctx, lines, 0, column)
}

// line paints a line and cuts it to the width of the screen.
func (p *picker) line(columns int, spans ...ui.Span) string {
	head, _ := ui.SplitSpans(spans, columns)
	return ui.Paint(head, p.options.TTY.Color)
}

func dim(text string) ui.Span { return ui.Span{Text: text, Style: ui.Dim} }

// drawList draws the prompt, the count, the items and the keys. It returns the
// lines and the column of the cursor in the prompt.
func (p *picker) drawList(columns, rows int) (lines []string, cursor int) {
	query := ui.Line(p.query)
	if room := columns - 3; ui.Width(query) > room { // show the end, where the user types
		query = lastColumns(query, room)
	}
	lines = append(lines, p.line(columns, ui.Span{Text: "> ", Style: ui.Bold}, ui.Span{Text: query}))
	count := fmt.Sprintf("  %d/%d", len(p.found), len(p.listing.Items))
	if p.listing.Note != "" {
		count += "  " + ui.Line(p.listing.Note)
	}
	lines = append(lines, p.line(columns, dim(ui.Cut(count, columns))))
	p.rows = max(rows-len(lines)-1, 1)
	p.top = max(min(p.top, p.selected), p.selected-p.rows+1)
	p.top = max(min(p.top, len(p.found)-p.rows), 0)
	visible := p.found[p.top:min(p.top+p.rows, len(p.found))]
	widths := p.widths(visible, columns)
	for i, m := range visible {
		lines = append(lines, p.row(m, p.top+i == p.selected, widths, columns))
	}
	if len(p.found) == 0 && p.query != "" {
		lines = append(lines, p.line(columns, dim("  no matches; Ctrl-U clears the filter")))
	}
	return p.withKeys(lines, columns, rows, "Enter: show   ↑↓: select   Esc: quit"), 2 + ui.Width(query)
}

// withKeys adds the line of keys at the bottom if there is room for it.
func (p *picker) withKeys(lines []string, columns, rows int, keys string) []string {
	lines = lines[:min(len(lines), rows)]
	if len(lines) >= rows {
		return lines
	}
	for len(lines) < rows-1 {
		lines = append(lines, "")
	}
	return append(lines, p.line(columns, dim(ui.Cut("  "+keys, columns))))
}

// lastColumns returns the end of a line that fits into a width.
func lastColumns(line string, width int) string {
	runes := []rune(line)
	for len(runes) > 0 && ui.Width(string(runes)) > width {
		runes = runes[1:]
	}
	return string(runes)
}

// layout holds the widths of the columns for names and sources; 0 omits sources.
type layout struct{ name, source int }

// minForSource is the minimum width of a screen for showing sources.
const minForSource = 70

func (p *picker) widths(visible []match, columns int) layout {
	var w layout
	for _, m := range visible {
		w.name = max(w.name, ui.Width(ui.Line(p.listing.Items[m.index].Name)))
		w.source = max(w.source, ui.Width(ui.Line(p.listing.Items[m.index].Source)))
	}
	w.name = min(w.name, max(columns*2/5, 16))
	w.source = min(w.source, columns/5)
	if columns < minForSource {
		w.source = 0
	}
	return w
}

func (p *picker) row(m match, selected bool, w layout, columns int) string {
	item := p.listing.Items[m.index]
	mark, base := "  ", ui.Style(0)
	if selected {
		mark = "> "
		if p.options.TTY.Color {
			base = ui.Reverse
		}
	}
	spans := append([]ui.Span{{Text: mark, Style: base | ui.Bold}}, nameSpans(item.Name, m.marks, w.name, base)...)
	spans = append(spans, padding(ui.SpansWidth(spans)-2, w.name, base))
	if w.source > 0 {
		source := ui.Cut(ui.Line(item.Source), w.source)
		spans = append(spans, ui.Span{Text: source, Style: base | ui.Cyan}, padding(ui.Width(source), w.source, base))
	}
	room := columns - ui.SpansWidth(spans)
	description := ui.Cut(ui.Line(text.FirstLine(strings.TrimSpace(item.Text))), room)
	spans = append(spans, ui.Span{Text: description, Style: base})
	if rest := columns - ui.SpansWidth(spans); base != 0 && rest > 0 {
		spans = append(spans, ui.Span{Text: strings.Repeat(" ", rest), Style: base})
	}
	return p.line(columns, spans...)
}

func padding(used, width int, style ui.Style) ui.Span {
	return ui.Span{Text: strings.Repeat(" ", max(width-used, 0)+2), Style: style}
}

// nameSpans returns a name, cut to a width, with the matched characters
// highlighted. Names that have to be escaped are not highlighted.
func nameSpans(name string, marks []int, width int, base ui.Style) []ui.Span {
	shown := ui.Cut(ui.Line(name), width)
	if shown != name || len(marks) == 0 {
		return []ui.Span{{Text: shown, Style: base | ui.Bold}}
	}
	var spans []ui.Span
	for i := range len(name) {
		style := base | ui.Bold
		if _, hit := slices.BinarySearch(marks, i); hit {
			style |= ui.Green | ui.Underline
		}
		if n := len(spans); n > 0 && spans[n-1].Style == style {
			spans[n-1].Text += name[i : i+1]
		} else {
			spans = append(spans, ui.Span{Text: name[i : i+1], Style: style})
		}
	}
	return spans
}

func (p *picker) drawPage(columns, rows int) []string {
	if p.page == nil || p.width != columns {
		p.page, p.width = p.listing.Show(p.shown, columns), columns
	}
	p.rows = max(rows-2, 1)
	p.scroll = max(min(p.scroll, len(p.page)-p.rows), 0)
	lines := slices.Clone(p.page[p.scroll:min(p.scroll+p.rows, len(p.page))])
	for i := range lines {
		lines[i] = ui.Cut(lines[i], columns)
	}
	for len(lines) < rows-1 {
		lines = append(lines, "")
	}
	keys := "Enter: " + p.options.Enter + "   Esc: back"
	if len(p.page) > p.rows {
		keys += fmt.Sprintf("   ↑↓: scroll (%d%%)", 100*(p.scroll+p.rows)/len(p.page))
	}
	return p.withKeys(lines, columns, rows, keys)
}
