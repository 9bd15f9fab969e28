package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// hunk replaces some lines of a file.
type hunk struct {
	number             int // among the hunks of its file, from 1
	line               int // where it starts in the patch, from 1
	oldStart, newStart int // 0 if the header has no numbers
	oldCount, newCount int
	loose              bool // the numbers are missing or do not fit the body: only the body locates it
	body               []hunkLine
}

// hunkLine is a line of a hunk: unchanged ' ', removed '-' or added '+'. The
// text ends with a line break unless the patch has "\ No newline at end of
// file" after it.
type hunkLine struct {
	sign byte
	text string
}

// patchError is a syntax error in a patch. Line numbers start at 1.
type patchError struct {
	line  int
	text  string
	cause error // may be nil
}

func (e *patchError) Error() string { return fmt.Sprintf("line %d of the patch: %s", e.line, e.text) }

func (e *patchError) Unwrap() error { return e.cause }

type patchReader struct {
	lines []string
	at    int
}

// peek returns the next line without a trailing carriage return.
func (r *patchReader) peek() (string, bool) {
	if r.at >= len(r.lines) {
		return "", false
	}
	return strings.TrimSuffix(r.lines[r.at], "\r"), true
}

func (r *patchReader) fail(format string, args ...any) error {
	return &patchError{line: min(r.at, len(r.lines)) + 1, text: fmt.Sprintf(format, args...)}
}

// atNames reports whether the next two lines are the --- and +++ lines of a
// file.
func (r *patchReader) atNames() bool {
	return r.at+1 < len(r.lines) && strings.HasPrefix(r.lines[r.at], "--- ") &&
		strings.HasPrefix(r.lines[r.at+1], "+++ ")
}

func (r *patchReader) hunks() (out []hunk, err error) {
	for {
		line, ok := r.peek()
		switch {
		case ok && strings.HasPrefix(line, "@@"):
			h, err := r.hunk(len(out) + 1)
			if err != nil {
				return nil, err
			}
			out = append(out, *h)
		case len(out) == 0:
			return nil, r.fail("there is no @@ header after the file names")
		default:
			return out, nil
		}
	}
}

// hunk parses a hunk. A model that writes one often miscounts its lines: if the
// numbers do not fit, it ends where the lines of a hunk end.
func (r *patchReader) hunk(number int) (*hunk, error) {
	h := &hunk{number: number, line: r.at + 1}
	header, _ := r.peek()
	h.loose = !h.header(header)
	r.at++
	start := r.at
	if !h.loose {
		done, err := r.counted(h)
		if done || err != nil {
			return h, err
		}
		h.loose, h.body, r.at = true, nil, start
	}
	if err := r.uncounted(h); err != nil {
		return nil, err
	}
	if len(h.body) == 0 {
		return nil, r.fail("hunk %d has no lines; each begins with a space, + or -", number)
	}
	return h, nil
}

// counted reads the body of a hunk by the numbers of its header. done is false if
// they do not fit.
func (r *patchReader) counted(h *hunk) (done bool, err error) {
	oldLeft, newLeft := h.oldCount, h.newCount
	for oldLeft > 0 || newLeft > 0 {
		if r.at >= len(r.lines) {
			return false, nil
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
				return false, err
			}
			continue
		default:
			return false, nil
		}
		if oldLeft < 0 || newLeft < 0 {
			return false, nil
		}
		h.add(line)
		r.at++
	}
	if r.at < len(r.lines) && strings.HasPrefix(r.lines[r.at], `\`) {
		return true, r.noNewline(h)
	}
	line, ok := r.peek()
	return !ok || !r.isBodyLine(line), nil
}

// uncounted reads the body of a hunk up to the first line that is none of it. Empty
// lines at the end separate it from what follows.
func (r *patchReader) uncounted(h *hunk) error {
	empty := 0 // at the end of the body
	for ; ; r.at++ {
		line, ok := r.peek()
		switch {
		case ok && line == "":
			empty++
			h.add(" " + r.lines[r.at])
			continue
		case ok && strings.HasPrefix(line, `\`):
			if err := r.noNewline(h); err != nil {
				return err
			}
			r.at--
			continue
		case ok && r.isBodyLine(line):
			empty = 0
			h.add(r.lines[r.at])
			continue
		}
		h.body = h.body[:len(h.body)-empty]
		if ok && !r.isEnd(line) {
			return r.fail("hunk %d: %s begins with neither a space nor + nor -, and by the numbers between the @@ the hunk does not end before it",
				h.number, text.Quote(line))
		}
		return nil
	}
}

// isEnd reports whether a line can follow a hunk without numbers.
func (r *patchReader) isEnd(line string) bool {
	return strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff --git ") ||
		r.atNames() || line == "-- " || line == "--"
}

func (h *hunk) add(line string) { h.body = append(h.body, hunkLine{line[0], line[1:] + "\n"}) }

// isBodyLine reports whether a line can only be part of a hunk. "-- " starts
// the signature of an email that contains a patch.
func (r *patchReader) isBodyLine(line string) bool {
	return line != "" && strings.IndexByte("+- ", line[0]) >= 0 && line != "-- " && line != "--" && !r.atNames()
}

// noNewline removes the line break from the previous line: all of it if the line that says so has
// a carriage return, which a patch gets only where it is converted as a whole.
func (r *patchReader) noNewline(h *hunk) error {
	if len(h.body) == 0 || !strings.HasSuffix(h.body[len(h.body)-1].text, "\n") {
		return r.fail(`hunk %d: "\ No newline" must follow a line`, h.number)
	}
	last := &h.body[len(h.body)-1]
	last.text = strings.TrimSuffix(last.text, "\n")
	if strings.HasSuffix(r.lines[r.at], "\r") {
		last.text = strings.TrimSuffix(last.text, "\r")
	}
	r.at++
	return nil
}

// header parses "@@ -12,3 +12,4 @@ anything". ok is false if there are no such numbers, as
// in "@@" and "@@ func main() @@".
func (h *hunk) header(line string) (ok bool) {
	rest, isHeader := strings.CutPrefix(line, "@@ -")
	ranges, _, ends := strings.Cut(rest, " @@")
	from, to, ok := strings.Cut(ranges, " +")
	return isHeader && ends && ok && lineRange(from, &h.oldStart, &h.oldCount) && lineRange(to, &h.newStart, &h.newCount)
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

// noNewlineMark is the line of a patch after a line that has no line break.
const noNewlineMark = `\ No newline at end of file`
