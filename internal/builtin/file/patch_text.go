package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// patchText applies the hunks of one file to its text. notes describe the hunks
// that were applied at another line than their header says. compared counts towards [maxCompared].
func patchText(name, text string, hunks []hunk, compared *int) (out string, notes []string, err error) {
	t := &patchTarget{name: name, lines: splitLines(text), compared: compared}
	if text != "" && !strings.Contains(text, "\r") && allCRLF(hunks) {
		for i := range hunks {
			for j := range hunks[i].body {
				hunks[i].body[j].text = toLF(hunks[i].body[j].text)
			}
		}
	}
	if looseLines(hunks) && strings.Contains(text, "\r\n") {
		v := looseView(text)
		t.loose, t.crlf = true, v.mostlyCRLF()
	}
	for i := range hunks {
		if err := t.apply(&hunks[i]); err != nil {
			return "", nil, err
		}
	}
	if err := t.keep(len(t.lines)); err != nil {
		return "", nil, err
	}
	return t.out.String(), t.notes, nil
}

// allCRLF reports whether all lines of the hunks have CRLF, as those of a patch that was converted
// as a whole. In a file that has none these are LF.
func allCRLF(hunks []hunk) bool {
	return everyLine(hunks, func(line string) bool {
		return !strings.HasSuffix(line, "\n") || strings.HasSuffix(line, "\r\n")
	})
}

// looseLines reports whether the hunks have no carriage returns. Then the line
// breaks of the file are used.
func looseLines(hunks []hunk) bool {
	return everyLine(hunks, func(line string) bool { return !strings.HasSuffix(strings.TrimSuffix(line, "\n"), "\r") })
}

func everyLine(hunks []hunk, is func(line string) bool) bool {
	return !slices.ContainsFunc(hunks, func(h hunk) bool {
		return slices.ContainsFunc(h.body, func(l hunkLine) bool { return !is(l.text) })
	})
}

// patchTarget is a file to which hunks are being applied.
type patchTarget struct {
	name  string
	lines []string
	at    int // the first line that has not been copied
	drift int // how many lines below its stated position the last hunk was found
	out   strings.Builder
	open  bool // the last text written has no line break
	notes []string

	loose, crlf bool // ignore line breaks; they are CRLF
	compared    *int // how many lines were compared
}

func (t *patchTarget) apply(h *hunk) error {
	pos, err := t.findHunk(h)
	if err != nil {
		return err
	}
	if err := t.keep(pos); err != nil {
		return err
	}
	for _, l := range h.body {
		text := l.text
		switch l.sign {
		case '-':
			t.at++
			continue
		case ' ':
			text = t.lines[t.at]
			t.at++
		default:
			if t.crlf {
				text = toCRLF(text)
			}
		}
		if err := t.writeLine(text); err != nil {
			return err
		}
	}
	return nil
}

// keep copies the lines before the one at pos unchanged.
func (t *patchTarget) keep(pos int) error {
	for ; t.at < pos; t.at++ {
		if err := t.writeLine(t.lines[t.at]); err != nil {
			return err
		}
	}
	return nil
}

func (t *patchTarget) writeLine(line string) error {
	if t.open {
		return fmt.Errorf(`%s: the patch says "\ No newline at end of file" after a line that is not the last`,
			text.Quote(t.name))
	}
	t.out.WriteString(line)
	t.open = !strings.HasSuffix(line, "\n")
	return nil
}

// findHunk returns the position where the hunk applies: its stated position, or
// otherwise the only position after the previous hunk where its lines match, or, if
// there is none, where they match but for characters that look alike.
func (t *patchTarget) findHunk(h *hunk) (int, error) {
	var old []string
	for _, l := range h.body {
		if l.sign != '+' {
			old = append(old, l.text)
		}
	}
	if len(old) == 0 {
		if len(t.lines) > 0 {
			return 0, t.refuse(h, "it has no context lines to locate it; add some")
		}
		return 0, nil
	}
	stated := h.oldStart - 1
	if !h.loose {
		for _, pos := range []int{stated + t.drift, stated} {
			if pos >= t.at && t.matches(pos, old, t.equalLines) {
				t.drift = pos - stated
				return pos, nil
			}
		}
	}
	found := t.places(old, t.equalLines)
	if len(found) == 0 {
		found = t.places(old, t.alike)
	}
	switch {
	case *t.compared >= maxCompared:
		return 0, t.refuse(h, "its lines are not where its numbers say, and finding them would take too long; correct the numbers")
	case len(found) == 0:
		at := t.at
		if h.oldStart > 0 {
			at = max(stated+t.drift, 0)
		}
		return 0, t.differs(h, t.nearest(at, old), old)
	case len(found) == 1 && h.oldStart == 0:
		t.notes = append(t.notes,
			fmt.Sprintf("hunk %d of %q, which has no line numbers, was applied at line %d, where its lines match",
				h.number, t.name, found[0]+1))
		return found[0], nil
	case len(found) == 1 && found[0] == stated:
		t.notes = append(t.notes, fmt.Sprintf(
			"the counts between the @@ of hunk %d of %q are wrong; it was applied at line %d, where its lines match",
			h.number, t.name, h.oldStart))
		return stated, nil
	case len(found) == 1:
		t.drift = found[0] - stated
		t.notes = append(t.notes,
			fmt.Sprintf("hunk %d of %q was applied at line %d, where its lines match, instead of %d",
				h.number, t.name, found[0]+1, h.oldStart))
		return found[0], nil
	}
	places := make([]string, len(found))
	for i, pos := range found {
		places[i] = strconv.Itoa(pos + 1)
	}
	if h.loose {
		return 0, t.refuse(h,
			"without correct numbers between the @@ its place must be unique, but its lines match in several (lines %s); correct the numbers or add context",
			strings.Join(places, ", "))
	}
	return 0, t.refuse(h,
		"it does not match at line %d, and in several other places (lines %s); correct its line numbers or add context",
		h.oldStart, strings.Join(places, ", "))
}

// places returns where the lines match after the previous hunk, at most five places.
func (t *patchTarget) places(old []string, same func(have, want string) bool) []int {
	var found []int
	for pos := t.at; pos+len(old) <= len(t.lines) && len(found) < 5 && *t.compared < maxCompared; pos++ {
		if t.matches(pos, old, same) {
			found = append(found, pos)
		}
	}
	return found
}

func (t *patchTarget) matches(pos int, old []string, same func(have, want string) bool) bool {
	if pos < 0 || pos+len(old) > len(t.lines) {
		return false
	}
	for i, want := range old {
		*t.compared++
		if !same(t.lines[pos+i], want) {
			return false
		}
	}
	return true
}

// nearest returns where most lines match but for their ends, or stated if that is as good.
func (t *patchTarget) nearest(stated int, old []string) int {
	score := func(pos int) int {
		n := 0
		for i, want := range old {
			if pos+i < len(t.lines) &&
				strings.TrimRight(t.lines[pos+i], " \t\r\n") == strings.TrimRight(want, " \t\r\n") {
				n++
			}
		}
		return n
	}
	best, most := stated, score(stated)
	if len(t.lines)*len(old) > nearestLines*10 {
		return best
	}
	for pos := t.at; pos < len(t.lines); pos++ {
		if n := score(pos); n > most {
			best, most = pos, n
		}
	}
	return best
}

// alike reports whether two lines are the same but for characters that look alike.
func (t *patchTarget) alike(have, want string) bool {
	if t.equalLines(have, want) {
		return true
	}
	*t.compared += 10 // it takes that much longer
	return t.equalLines(text.Alike(have), text.Alike(want))
}

func (t *patchTarget) equalLines(have, want string) bool {
	if t.loose && strings.HasSuffix(have, "\r\n") {
		have = have[:len(have)-2] + "\n"
	}
	return have == want
}

func (t *patchTarget) refuse(h *hunk, format string, args ...any) error {
	return fmt.Errorf("hunk %d of %s (line %d of the patch) does not apply: %s",
		h.number, text.Quote(t.name), h.line, fmt.Sprintf(format, args...))
}

// differs returns an error that shows the first line of the hunk that is not in
// the file.
func (t *patchTarget) differs(h *hunk, pos int, old []string) error {
	for i, want := range old {
		switch {
		case pos+i >= len(t.lines):
			return t.refuse(h, "expected line %d to be %s, but the file ends at line %d",
				pos+i+1, quoteText(want), len(t.lines))
		case t.alike(t.lines[pos+i], want):
		case strings.TrimRight(t.lines[pos+i], "\r\n") != strings.TrimRight(want, "\r\n"):
			have, want := strings.TrimSuffix(t.lines[pos+i], "\n"), strings.TrimSuffix(want, "\n")
			want, have = quoteBoth(want, have)
			return t.refuse(h, "expected line %d to be %s, found %s", pos+i+1, want, have)
		case lineBreak(t.lines[pos+i]) == "":
			return t.refuse(h,
				"line %d, %s, ends the file without a line break; write `%s` in a line of its own after it",
				pos+i+1, quoteText(want), noNewlineMark)
		case lineBreak(want) == "":
			return t.refuse(h, "line %d, %s, has a line break in the file; leave out %q after it",
				pos+i+1, quoteText(want), noNewlineMark)
		default:
			return t.refuse(h, "line %d is %s, but its line break differs: the file has %q, the patch %q",
				pos+i+1, quoteText(want), lineBreak(t.lines[pos+i]), lineBreak(want))
		}
	}
	return t.refuse(h, "it overlaps the previous hunk")
}

func lineBreak(line string) string { return line[len(strings.TrimRight(line, "\r\n")):] }

func quoteText(line string) string { return quoteLine(strings.TrimSuffix(line, "\n")) }
