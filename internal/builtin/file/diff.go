package file

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

const (
	// diffContext is the number of unchanged lines around a change.
	diffContext = 3
	// diffBytes limits the text that is compared line by line. Longer texts are shown
	// as one replacement of everything between their common start and end.
	diffBytes = 8 << 20
	devNull   = "/dev/null"
)

// lineChange replaces the old lines [start, end), counted from 0, with lines.
type lineChange struct {
	start, end int
	lines      []string
}

// fileDiff is a comparison of two texts.
type fileDiff struct {
	old     []string // lines with their line breaks
	changes []lineChange
}

// diffLines computes the line changes that turn old into new.
func diffLines(old, new string) *fileDiff {
	d := &fileDiff{old: splitLines(old)}
	switch {
	case old == new:
	case len(old)+len(new) > diffBytes:
		d.changes = []lineChange{changedLines(d.old, splitLines(new))}
	default:
		line, at := 0, 0
		for _, e := range udiff.Lines(old, new) {
			line += strings.Count(old[at:e.Start], "\n")
			removed := len(splitLines(old[e.Start:e.End]))
			d.changes = append(d.changes, lineChange{line, line + removed, splitLines(e.New)})
			line, at = line+strings.Count(old[e.Start:e.End], "\n"), e.End
		}
	}
	return d
}

// changedLines returns the single change between the common start and end of two
// texts.
func changedLines(old, new []string) lineChange {
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	return lineChange{head, len(old) - tail, new[head : len(new)-tail]}
}

// splitLines splits a text after its line breaks. The last line may lack one.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	out := strings.SplitAfter(text, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

func (d *fileDiff) counts() (added, removed int) {
	for _, c := range d.changes {
		added += len(c.lines)
		removed += c.end - c.start
	}
	return added, removed
}

// firstLine returns the line of the first change in the new text, counted from
// 1.
func (d *fileDiff) firstLine() int {
	if len(d.changes) == 0 {
		return 0
	}
	return d.changes[0].start + 1
}

// unified returns the comparison as a unified diff with the two labels, or ""
// if the texts are equal.
func (d *fileDiff) unified(oldLabel, newLabel string) string {
	if len(d.changes) == 0 {
		return ""
	}
	return "--- " + oldLabel + "\n+++ " + newLabel + "\n" + d.hunks()
}

// hunks returns only the hunks of the unified diff.
func (d *fileDiff) hunks() string {
	var b strings.Builder
	shift := 0 // difference between new and old line numbers
	for rest := d.changes; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].start-rest[n-1].end <= 2*diffContext {
			n++
		}
		shift += d.hunk(&b, rest[:n], shift)
		rest = rest[n:]
	}
	return b.String()
}

// hunk writes neighboring changes as one hunk and returns how many lines they
// add to the text.
func (d *fileDiff) hunk(b *strings.Builder, changes []lineChange, shift int) int {
	from := max(changes[0].start-diffContext, 0)
	to := min(changes[len(changes)-1].end+diffContext, len(d.old))
	grown := 0
	for _, c := range changes {
		grown += len(c.lines) - (c.end - c.start)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(from, to-from), span(from+shift, to-from+grown))
	at := from
	for _, c := range changes {
		writeLines(b, ' ', d.old[at:c.start])
		writeLines(b, '-', d.old[c.start:c.end])
		writeLines(b, '+', c.lines)
		at = c.end
	}
	writeLines(b, ' ', d.old[at:to])
	return grown
}

// span formats a range of lines as diff does: an empty range is given by the
// line before it, and a count of 1 is omitted.
func span(start, count int) string {
	switch count {
	case 0:
		return strconv.Itoa(start) + ",0"
	case 1:
		return strconv.Itoa(start + 1)
	}
	return strconv.Itoa(start+1) + "," + strconv.Itoa(count)
}

func writeLines(b *strings.Builder, sign byte, lines []string) {
	for _, l := range lines {
		b.WriteByte(sign)
		b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// diffLabel returns the name of a file in a unified diff as git writes it: side
// is "a" or "b", special characters are quoted, and a name with spaces ends
// with a tab.
func diffLabel(side, rel string) string {
	name := side + "/" + rel
	if needsQuotes(name) {
		return quoteName(name)
	}
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func needsQuotes(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x20 || r == 0x7f || r == '"' || r == '\\'
	})
}

// quoteName quotes a name as C and git do, with special bytes in octal.
func quoteName(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
