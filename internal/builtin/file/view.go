package file

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

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

type area struct{ start, end int }

// find returns where s is in the view, without overlaps.
func (v view) find(s string) []area {
	var out []area
	for at := 0; ; {
		i := strings.Index(v.text[at:], s)
		if i < 0 {
			return out
		}
		out = append(out, area{at + i, at + i + len(s)})
		at += i + len(s)
	}
}

// findAlike returns where the view has texts that look like s.
func (v view) findAlike(s string) []area {
	want := text.Alike(s)
	if strings.TrimSpace(want) == "" {
		return nil
	}
	a := text.NewAlikeText(v.text)
	var out []area
	for _, f := range (view{text: a.Text}).find(want) {
		// A match may begin or end inside the form of one character.
		if f = (area{a.Offset(f.start), a.Offset(f.end)}); f.start <= f.end &&
			text.Alike(v.text[f.start:f.end]) == want {
			out = append(out, f)
		}
	}
	return out
}

// toCRLF converts every line break to CRLF.
func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", "\r\n") }

// toLF converts every line break to LF.
func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
