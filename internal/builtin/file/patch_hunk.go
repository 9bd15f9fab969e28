package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// hunks parses the hunks of a file.
func (r *patchReader) hunks(p *filePatch) error {
	for {
		line, ok := r.peek()
		switch {
		case ok && strings.HasPrefix(line, "@@"):
			h, err := r.hunk(len(p.hunks) + 1)
			if err != nil {
				return err
			}
			p.hunks = append(p.hunks, *h)
		case ok && len(p.hunks) > 0 && r.isBodyLine(line):
			return r.fail("hunk %d has more lines than its header says; correct the numbers between the @@", len(p.hunks))
		case len(p.hunks) == 0:
			return r.fail("there is no @@ header after the file names")
		default:
			return nil
		}
	}
}

// isBodyLine reports whether a line can only be part of a hunk. "-- " starts
// the signature of an email that contains a patch.
func (r *patchReader) isBodyLine(line string) bool {
	return line != "" && strings.IndexByte("+- ", line[0]) >= 0 && line != "-- " && line != "--" && !r.atNames()
}

func (r *patchReader) hunk(number int) (*hunk, error) {
	h := &hunk{number: number, line: r.at + 1}
	header, _ := r.peek()
	if !h.header(header) {
		return nil, r.fail("hunk %d: %s is not a hunk header; it needs line numbers, such as @@ -1,3 +1,4 @@", number, text.Quote(header))
	}
	r.at++
	oldLeft, newLeft := h.oldCount, h.newCount
	for oldLeft > 0 || newLeft > 0 {
		if r.at >= len(r.lines) {
			return nil, r.short(h, oldLeft, newLeft)
		}
		line := r.lines[r.at]
		if line == "" || line == "\r" {
			line = " " + line // an editor removed the space from an empty line
		}
		switch line[0] {
		case ' ':
			oldLeft, newLeft = oldLeft-1, newLeft-1
		case '-':
			oldLeft--
		case '+':
			newLeft--
		case '\\':
			if err := r.noNewline(h); err != nil {
				return nil, err
			}
			continue
		default:
			return nil, r.short(h, oldLeft, newLeft)
		}
		if oldLeft < 0 || newLeft < 0 {
			return nil, r.fail("hunk %d has more lines than its header says; correct the numbers between the @@", number)
		}
		h.body = append(h.body, hunkLine{line[0], line[1:] + "\n"})
		r.at++
	}
	if r.at < len(r.lines) && strings.HasPrefix(r.lines[r.at], `\`) {
		return h, r.noNewline(h)
	}
	return h, nil
}

func (r *patchReader) short(h *hunk, oldLeft, newLeft int) error {
	return r.fail("hunk %d is shorter than its header says: %d old and %d new lines are missing; correct the numbers between the @@",
		h.number, max(oldLeft, 0), max(newLeft, 0))
}

// noNewline removes the line break from the previous line.
func (r *patchReader) noNewline(h *hunk) error {
	if len(h.body) == 0 || !strings.HasSuffix(h.body[len(h.body)-1].text, "\n") {
		return r.fail(`hunk %d: "\ No newline" must follow a line`, h.number)
	}
	last := &h.body[len(h.body)-1]
	last.text = strings.TrimSuffix(last.text, "\n")
	r.at++
	return nil
}

// header parses "@@ -12,3 +12,4 @@ anything".
func (h *hunk) header(line string) bool {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return false
	}
	ranges, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return false
	}
	from, to, ok := strings.Cut(ranges, " +")
	if !ok {
		return false
	}
	return lineRange(from, &h.oldStart, &h.oldCount) && lineRange(to, &h.newStart, &h.newCount)
}

// lineRange parses "12" or "12,3".
func lineRange(text string, start, n *int) bool {
	first, second, ok := strings.Cut(text, ",")
	if !ok {
		second = "1"
	}
	a, errA := strconv.ParseUint(first, 10, 31)
	b, errB := strconv.ParseUint(second, 10, 31)
	*start, *n = int(a), int(b)
	return errA == nil && errB == nil
}

// patchText applies the hunks of one file to its text. notes describe the hunks
// that were applied at another line than their header says.
func patchText(name, text string, hunks []hunk) (out string, notes []string, err error) {
	t := &patchTarget{name: name, lines: lines(text)}
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

// looseLines reports whether the hunks have no carriage returns. Then the line
// breaks of the file are used.
func looseLines(hunks []hunk) bool {
	for i := range hunks {
		for _, l := range hunks[i].body {
			if strings.HasSuffix(l.text, "\r\n") || strings.HasSuffix(l.text, "\r") {
				return false
			}
		}
	}
	return true
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
}

func (t *patchTarget) apply(h *hunk) error {
	pos, err := t.find(h)
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
			if t.crlf && strings.HasSuffix(text, "\n") {
				text = strings.TrimSuffix(text, "\n") + "\r\n"
			}
		}
		if err := t.write(text); err != nil {
			return err
		}
	}
	return nil
}

// keep copies the lines before the one at pos unchanged.
func (t *patchTarget) keep(pos int) error {
	for ; t.at < pos; t.at++ {
		if err := t.write(t.lines[t.at]); err != nil {
			return err
		}
	}
	return nil
}

func (t *patchTarget) write(line string) error {
	if t.open {
		return fmt.Errorf(`%s: the patch says "\ No newline at end of file" after a line that is not the last`, text.Quote(t.name))
	}
	t.out.WriteString(line)
	t.open = !strings.HasSuffix(line, "\n")
	return nil
}

// find returns the position where the hunk applies: its stated position, or
// otherwise the only position after the previous hunk where its lines match.
func (t *patchTarget) find(h *hunk) (int, error) {
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
	for _, pos := range []int{stated + t.drift, stated} {
		if pos >= t.at && t.matches(pos, old) {
			t.drift = pos - stated
			return pos, nil
		}
	}
	var found []int
	for pos := t.at; pos+len(old) <= len(t.lines) && len(found) < 5; pos++ {
		if t.matches(pos, old) {
			found = append(found, pos)
		}
	}
	switch len(found) {
	case 0:
		return 0, t.differs(h, max(stated+t.drift, 0), old)
	case 1:
		t.drift = found[0] - stated
		t.notes = append(t.notes, fmt.Sprintf("hunk %d of %q was applied at line %d, where its lines match, instead of %d",
			h.number, t.name, found[0]+1, h.oldStart))
		return found[0], nil
	}
	places := make([]string, len(found))
	for i, pos := range found {
		places[i] = strconv.Itoa(pos + 1)
	}
	return 0, t.refuse(h, "it does not match at line %d, and in several other places (lines %s); correct its line numbers or add context",
		h.oldStart, strings.Join(places, ", "))
}

func (t *patchTarget) matches(pos int, old []string) bool {
	if pos < 0 || pos+len(old) > len(t.lines) {
		return false
	}
	for i, want := range old {
		if !t.same(t.lines[pos+i], want) {
			return false
		}
	}
	return true
}

func (t *patchTarget) same(have, want string) bool {
	if t.loose && strings.HasSuffix(have, "\r\n") {
		have = have[:len(have)-2] + "\n"
	}
	return have == want
}

func (t *patchTarget) refuse(h *hunk, format string, args ...any) error {
	return fmt.Errorf("hunk %d of %s (line %d of the patch) does not apply: %s", h.number, text.Quote(t.name), h.line, fmt.Sprintf(format, args...))
}

// differs returns an error that shows the first line of the hunk that is not in
// the file.
func (t *patchTarget) differs(h *hunk, pos int, old []string) error {
	for i, want := range old {
		switch {
		case pos+i >= len(t.lines):
			return t.refuse(h, "expected line %d to be %s, but the file ends at line %d", pos+i+1, quoteText(want), len(t.lines))
		case t.same(t.lines[pos+i], want):
		case strings.TrimRight(t.lines[pos+i], "\r\n") == strings.TrimRight(want, "\r\n"):
			return t.refuse(h, "line %d is %s, but its line break differs: the file has %q, the patch %q",
				pos+i+1, quoteText(want), lineBreak(t.lines[pos+i]), lineBreak(want))
		default:
			return t.refuse(h, "expected line %d to be %s, found %s", pos+i+1, quoteText(want), quoteText(t.lines[pos+i]))
		}
	}
	return t.refuse(h, "it overlaps the previous hunk")
}

func quoteText(line string) string { return quoteLine(strings.TrimSuffix(line, "\n")) }

func lineBreak(line string) string { return line[len(strings.TrimRight(line, "\r\n")):] }
