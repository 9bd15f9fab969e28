package ui

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
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
		for _, row := range WrapSpans([]Span{{Text: strings.ReplaceAll(l, "\t", "    ")}},
			max(v.Width-Width(bar)-1, 20)) {
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

// Diff returns the lines of a unified diff in colors, with the changed part of
// changed lines highlighted. The text must have passed [Visible].
func Diff(text string) [][]Span {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	kinds := make([]diffKind, len(lines))
	var s diffScanner
	for i, l := range lines {
		kinds[i] = s.next(l)
	}
	rows := make([][]Span, len(lines))
	for i := 0; i < len(lines); {
		removed := countKind(kinds[i:], diffRemoved)
		added := countKind(kinds[i+removed:], diffAdded)
		if removed == 0 || removed != added {
			for end := i + max(removed+added, 1); i < end; i++ {
				rows[i] = []Span{{lines[i], kinds[i].style()}}
			}
			continue
		}
		for n := range removed {
			rows[i+n], rows[i+removed+n] = changedPart(lines[i+n], lines[i+removed+n])
		}
		i += removed + added
	}
	return rows
}

// DiffCounts returns how many lines a unified diff adds and removes.
func DiffCounts(text string) (added, removed int) {
	var s diffScanner
	for l := range strings.Lines(text) {
		switch s.next(strings.TrimRight(l, "\r\n")) {
		case diffAdded:
			added++
		case diffRemoved:
			removed++
		}
	}
	return added, removed
}

// DiffLength returns the number of lines of the unified diff that begins with the
// first line, or 0 if none does. It reads at most one line after the diff.
func DiffLength(lines iter.Seq[string]) int {
	var s diffScanner
	n, heads := 0, []string{"--- ", "+++ ", "@@ -"}
	for l := range lines {
		if n == 0 && strings.HasPrefix(l, "diff --git ") {
			heads = nil
		}
		if n < len(heads) && !strings.HasPrefix(l, heads[n]) {
			return 0
		}
		if s.next(l) == diffNone {
			break
		}
		n++
	}
	if n < len(heads) {
		return 0
	}
	return n
}

type diffKind uint8

const (
	diffNone diffKind = iota // not part of a diff
	diffHeader
	diffHunk
	diffContext
	diffAdded
	diffRemoved
)

func (k diffKind) style() Style {
	return [...]Style{diffHeader: Bold, diffHunk: Cyan, diffAdded: Green, diffRemoved: Red}[k]
}

func countKind(kinds []diffKind, k diffKind) int {
	n := 0
	for n < len(kinds) && kinds[n] == k {
		n++
	}
	return n
}

// diffScanner distinguishes the lines of a hunk from those between hunks by the
// counts in the hunk's header, because a removed line "-- x" is not the header
// of a file.
type diffScanner struct{ before, after int } // remaining lines of the hunk

func (s *diffScanner) next(line string) diffKind {
	if before, after, ok := hunkCounts(line); ok {
		s.before, s.after = before, after
		return diffHunk
	}
	if s.before > 0 || s.after > 0 {
		switch {
		case line == "" || line[0] == ' ':
			s.before, s.after = s.before-1, s.after-1
			return diffContext
		case line[0] == '+':
			s.after--
			return diffAdded
		case line[0] == '-':
			s.before--
			return diffRemoved
		}
	}
	if strings.HasPrefix(line, `\ `) { // no newline at the end of the file
		return diffContext
	}
	s.before, s.after = 0, 0
	return betweenHunks(line)
}

func betweenHunks(line string) diffKind {
	for _, head := range []string{"+++ ", "--- ", "diff ", "index ",
		"new file ", "deleted file ", "old mode ", "new mode ",
		"similarity ", "dissimilarity ", "rename ", "copy ", "Binary files ", "Only in "} {
		if strings.HasPrefix(line, head) {
			return diffHeader
		}
	}
	return diffNone
}

// hunkCounts parses "@@ -1,2 +3,4 @@"; a missing count is 1.
func hunkCounts(line string) (before, after int, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return 0, 0, false
	}
	old, rest, ok1 := strings.Cut(rest, " +")
	new, _, ok2 := strings.Cut(rest, " @@")
	before, ok3 := hunkCount(old)
	after, ok4 := hunkCount(new)
	return before, after, ok1 && ok2 && ok3 && ok4
}

func hunkCount(part string) (int, bool) {
	_, count, given := strings.Cut(part, ",")
	if !given {
		return 1, true
	}
	n, err := strconv.Atoi(count)
	return n, err == nil && n >= 0
}

// longestCompared limits the length of compared lines, in bytes.
const longestCompared = 2000

// changedPart highlights the difference between two lines if they have enough
// in common.
func changedPart(old, new string) (oldSpans, newSpans []Span) {
	prefix, suffix := commonEnds(old[1:], new[1:])
	shared, longest := prefix+suffix, max(len(old), len(new))-1
	if longest > longestCompared || shared*3 < longest || shared == longest {
		return []Span{{old, Red}}, []Span{{new, Green}}
	}
	return setOff(old, prefix, suffix, Red), setOff(new, prefix, suffix, Green)
}

func setOff(line string, prefix, suffix int, s Style) []Span {
	from, to := 1+prefix, len(line)-suffix
	if from == to {
		return []Span{{line, s}}
	}
	return []Span{{line[:from], s}, {line[from:to], s | Reverse}, {line[to:], s}}
}

// commonEnds returns the lengths of the common prefix and suffix of two texts, in
// whole words.
func commonEnds(a, b string) (prefix, suffix int) {
	for prefix < len(a) && prefix < len(b) && a[prefix] == b[prefix] {
		prefix++
	}
	for prefix > 0 && (inWord(a, prefix) || inWord(b, prefix)) {
		prefix--
	}
	a, b = a[prefix:], b[prefix:]
	for suffix < len(a) && suffix < len(b) && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	for suffix > 0 && (inWord(a, len(a)-suffix) || inWord(b, len(b)-suffix)) {
		suffix--
	}
	return prefix, suffix
}

// inWord reports whether an offset is inside a word or a character.
func inWord(s string, at int) bool {
	return at > 0 && at < len(s) && (partOfWord(s[at-1]) && partOfWord(s[at]) || !utf8.RuneStart(s[at]))
}

func partOfWord(c byte) bool {
	return c == '_' || c >= utf8.RuneSelf || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
