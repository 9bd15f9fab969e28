package ui

import (
	"fmt"
	"strings"
)

// View draws text on which a person decides. Foreign text, such as that of a tool, a server or a
// model, is shown in full with a bar before each line, so that it cannot be mistaken for
// toolreg's own.
type View struct {
	Width int
	Color bool
	b     strings.Builder
}

const bar = "  │ "

// String returns what was drawn.
func (v *View) String() string { return v.b.String() }

// Take returns what was drawn, and begins anew.
func (v *View) Take() string {
	text := v.b.String()
	v.b.Reset()
	return text
}

// Printf writes a line of toolreg's own.
func (v *View) Printf(format string, args ...any) {
	fmt.Fprintf(&v.b, format+"\n", args...)
}

// Quote writes a block of foreign text in full.
func (v *View) Quote(text string) {
	for l := range strings.SplitSeq(strings.TrimRight(payload(text), "\n"), "\n") {
		v.Row([]Span{{Text: strings.ReplaceAll(l, "\t", "    ")}})
	}
}

// Prose is Quote for text to read rather than to decide on: it is wrapped
// between words.
func (v *View) Prose(text string) {
	for l := range strings.SplitSeq(strings.TrimSpace(payload(text)), "\n") {
		for _, row := range WrapSpans([]Span{{Text: strings.ReplaceAll(l, "\t", "    ")}}, max(v.Width-Width(bar)-1, 20)) {
			v.Row(row)
		}
	}
}

// Row writes one line, broken at the width of the screen so that every row begins
// with the bar.
func (v *View) Row(spans []Span) {
	room := max(v.Width-Width(bar)-1, 20)
	for {
		head, rest := SplitSpans(spans, room)
		v.b.WriteString(bar + Paint(head, v.Color) + "\n")
		if len(rest) == 0 {
			return
		}
		spans = rest
	}
}

// Diff writes a unified diff in full.
func (v *View) Diff(text string) {
	for _, row := range Diff(strings.ReplaceAll(payload(text), "\t", "    ")) {
		v.Row(row)
	}
}

// DiffText formats a unified diff of foreign text in full, with bars as in questions,
// for a screen with width columns.
func DiffText(diff string, width int, color bool) string {
	v := View{Width: width, Color: color}
	v.Diff(diff)
	return v.b.String()
}

// Line writes a line that may end in foreign text, cut to one row.
func (v *View) Line(text string) { v.Printf("%s", Cut(text, max(v.Width-1, 40))) }
