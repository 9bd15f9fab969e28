package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/tool"
)

// replacement is one exact replacement of text.
type replacement struct {
	Old      string        `json:"old_string"`
	New      string        `json:"new_string"`
	Expected *tool.Integer `json:"expected_replacements"`
}

// replaceAll applies the replacements in order, each to the result of the
// previous one. It returns the error of the first one that fails, worded so
// that a model can act on it.
func replaceAll(text string, list []replacement) (string, error) {
	for i, r := range list {
		next, err := r.apply(text)
		if err != nil && len(list) > 1 {
			err = fmt.Errorf("edit %d of %d: %w", i+1, len(list), err)
		}
		if err != nil {
			return "", err
		}
		text = next
	}
	return text, nil
}

// apply replaces every occurrence if there are as many as expected. If old has
// no carriage return, a line break in it matches both LF and CRLF. A line break
// in new becomes the kind that it replaces, or otherwise the most frequent kind
// in the text.
func (r replacement) apply(text string) (string, error) {
	if r.Old == "" {
		return "", fmt.Errorf("old_string is empty, but the file is not; give the text to replace, or use write_file to replace the whole file")
	}
	v := view{text: text}
	if !strings.Contains(r.Old, "\r") {
		v = looseView(text)
	}
	found := v.find(r.Old)
	if want := r.Expected.OrDefault(1); len(found) != want {
		return "", r.mismatch(v, found, want)
	}
	var b strings.Builder
	b.Grow(len(text) + len(found)*max(len(r.New)-len(r.Old), 0))
	at, mostly := 0, v.mostlyCRLF()
	for _, pos := range found {
		start, end := v.original(pos), v.original(pos+len(r.Old))
		b.WriteString(text[at:start])
		b.WriteString(v.withBreaks(r.New, text[start:end], mostly))
		at = end
	}
	b.WriteString(text[at:])
	return b.String(), nil
}

// mismatch returns an error that says how often the text was found and what to
// do next.
func (r replacement) mismatch(v view, found []int, want int) error {
	if len(found) == 0 {
		return fmt.Errorf("old_string was not found. %s. Read the file again and give its text exactly, including white space",
			nearest(v.text, r.Old))
	}
	const shown = 8
	numbers := make([]string, 0, shown+1)
	for _, pos := range found[:min(len(found), shown)] {
		numbers = append(numbers, fmt.Sprint(1+strings.Count(v.text[:pos], "\n")))
	}
	if len(found) > shown {
		numbers = append(numbers, "…")
	}
	word := "line"
	if len(found) > 1 {
		word = "lines"
	}
	return fmt.Errorf("old_string was found %s (%s %s), but expected_replacements is %d. Add surrounding lines to make it unique, or set expected_replacements to %d",
		tool.Count(len(found), "time"), word, strings.Join(numbers, ", "), want, len(found))
}

// view is a text in which CRLF line breaks appear as LF. If breaks is nil, the
// text appears unchanged.
type view struct {
	text   string
	breaks []int // offsets in text before which a carriage return was removed
}

func looseView(text string) view {
	if !strings.Contains(text, "\r\n") {
		return view{text: text}
	}
	var b strings.Builder
	b.Grow(len(text))
	v := view{}
	for {
		i := strings.Index(text, "\r\n")
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		v.breaks = append(v.breaks, b.Len())
		b.WriteByte('\n')
		text = text[i+2:]
	}
	b.WriteString(text)
	v.text = b.String()
	return v
}

// original converts an offset in the view to one in the original text.
func (v view) original(pos int) int {
	n, _ := slices.BinarySearch(v.breaks, pos)
	return pos + n
}

func (v view) mostlyCRLF() bool {
	return len(v.breaks) > 0 && 2*len(v.breaks) > strings.Count(v.text, "\n")
}

// withBreaks returns s with the line breaks of the text that it replaces. If
// that has none, crlf says whether to use CRLF.
func (v view) withBreaks(s, replaced string, crlf bool) string {
	if len(v.breaks) == 0 || !strings.Contains(s, "\n") {
		return s
	}
	if n := strings.Count(replaced, "\n"); n > 0 {
		crlf = 2*strings.Count(replaced, "\r\n") > n
	}
	if crlf {
		return toCRLF(s)
	}
	return s
}

// find returns the offsets of s in the view, without overlaps.
func (v view) find(s string) []int {
	var out []int
	for at := 0; ; {
		i := strings.Index(v.text[at:], s)
		if i < 0 {
			return out
		}
		out = append(out, at+i)
		at += i + len(s)
	}
}

// toCRLF converts every line break to CRLF.
func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}
