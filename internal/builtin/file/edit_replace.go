package file

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/text"
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
// in the text. Where the text has only LF, so do old and new if old has CRLF.
func (r replacement) apply(content string) (string, error) {
	if r.Old == "" {
		return "", fmt.Errorf("old_string is empty, but the file is not; give the text to replace, or use write_file to replace the whole file")
	}
	if strings.Contains(r.Old, "\r\n") && !strings.Contains(content, "\r") {
		r.Old, r.New = toLF(r.Old), toLF(r.New)
	}
	v := view{text: content}
	if !strings.Contains(r.Old, "\r") {
		v = looseView(content)
	}
	found := v.find(r.Old)
	want := r.Expected.OrDefault(1)
	if len(found) == 0 && want == 1 {
		found = v.findAlike(r.Old)
	}
	if len(found) != want {
		return "", r.mismatch(v, found, want)
	}
	var b strings.Builder
	b.Grow(len(content) + len(found)*max(len(r.New)-len(r.Old), 0))
	at, mostly := 0, v.mostlyCRLF()
	for _, f := range found {
		start, end := v.original(f.start), v.original(f.end)
		b.WriteString(content[at:start])
		b.WriteString(v.withBreaks(r.replacing(v.text[f.start:f.end]), content[start:end], mostly))
		at = end
	}
	b.WriteString(content[at:])
	return b.String(), nil
}

// replacing returns what replaces a text that was found. If it only looks like old,
// what old and new begin and end with stays as the file has it.
func (r replacement) replacing(found string) string {
	if found == r.Old || strings.Contains(r.Old, "\r") {
		return r.New
	}
	head := sharedRunes(r.Old, r.New)
	tail := sharedEnd(r.Old[head:], r.New[head:])
	a := text.NewAlikeText(found)
	start, end := len(text.Alike(r.Old[:head])), len(a.Text)-len(text.Alike(r.Old[len(r.Old)-tail:]))
	start, end = a.Offset(start), a.Offset(end)
	if text.Alike(found[:start]) != text.Alike(r.Old[:head]) ||
		text.Alike(found[end:]) != text.Alike(r.Old[len(r.Old)-tail:]) {
		return r.New // the boundary is inside a character
	}
	return found[:start] + r.New[head:len(r.New)-tail] + found[end:]
}

// sharedRunes returns the length of the beginning that two texts share.
func sharedRunes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

// sharedEnd returns the length of the end that two texts share.
func sharedEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}

// mismatch returns an error that says how often the text was found and what to
// do next.
func (r replacement) mismatch(v view, found []area, want int) error {
	if len(found) == 0 {
		return fmt.Errorf(
			"old_string was not found. %s. Read the file again and give its text exactly, including white space",
			nearest(v.text, r.Old))
	}
	const shown = 8
	numbers := make([]string, 0, shown+1)
	for _, f := range found[:min(len(found), shown)] {
		numbers = append(numbers, fmt.Sprint(1+strings.Count(v.text[:f.start], "\n")))
	}
	if len(found) > shown {
		numbers = append(numbers, "…")
	}
	word := "line"
	if len(found) > 1 {
		word = "lines"
	}
	if first := v.text[found[0].start:found[0].end]; first != r.Old && text.LookSame(first, r.Old) {
		return fmt.Errorf("old_string was not found, but text that looks the same was, %s (%s %s); the first is %s where old_string has %s. Give it as the file has it, with surrounding lines to make it unique",
			text.Count(len(found), "time"), word, strings.Join(numbers, ", "), quoteASCII(first), quoteASCII(r.Old))
	}
	return fmt.Errorf("old_string was found %s (%s %s), but expected_replacements is %d. Add surrounding lines to make it unique, or set expected_replacements to %d",
		text.Count(len(found), "time"), word, strings.Join(numbers, ", "), want, len(found))
}
