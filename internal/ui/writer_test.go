package ui_test

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/ui"
)

func TestWriterEscapes(t *testing.T) {
	for name, tt := range map[string]struct {
		writes []string
		want   string
	}{
		"plain":              {[]string{"a\tb\n", "é"}, "a\tb\né"},
		"control":            {[]string{"\x1b]52;c;eA==\x07"}, `\x1b]52;c;eA==\x07`},
		"carriage return":    {[]string{"good\rbad"}, `good\rbad`},
		"filler":             {[]string{"a\u115fb"}, `a\u115fb`},
		"character in parts": {[]string{"\xe2", "\x82", "\xac"}, "€"},
		"escape in parts":    {[]string{"\xe2\x80", "\xae"}, `\u202e`},
		"never completed":    {[]string{"a\xe2\x82"}, `a\xe2\x82`},
		"not UTF-8":          {[]string{"\xff\xfe"}, `\xff\xfe`},
		"style":              {[]string{"\x1b[31mred"}, `\x1b[31mred`},
	} {
		var b strings.Builder
		w := ui.NewWriter(&b)
		for _, s := range tt.writes {
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("%s: wrote %d of %d, %v", name, n, len(s), err)
			}
		}
		if err := w.Flush(); err != nil || b.String() != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, b.String(), err, tt.want)
		}
	}
}

// Styles of Paint are kept; other escape sequences, however similar, are escaped.
func TestStyledKeepsOwnStyles(t *testing.T) {
	own := ui.Paint([]ui.Span{{Text: "a", Style: ui.Bold | ui.Red}, {Text: "b"}, {Text: "c", Style: ui.Cyan}}, true)
	all := ui.Paint([]ui.Span{{Text: "a", Style: ui.Bold | ui.Dim | ui.Italic | ui.Underline | ui.Reverse | ui.Struck | ui.Cyan}}, true)
	for in, want := range map[string]string{
		own:                   own,
		all:                   all,
		own + "\x1b[2J":       own + `\x1b[2J`,
		"\x1b[8mhidden":       `\x1b[8mhidden`,
		"\x1b[1;8mhidden":     `\x1b[1;8mhidden`,
		"\x1b[mreset":         `\x1b[mreset`,
		"\x1b[31":             `\x1b[31`,
		"\x1b[":               `\x1b[`,
		"\x1b]8;;http://x\a":  `\x1b]8;;http://x\x07`,
		"\x1b[38;5;1mx\u202e": `\x1b[38;5;1mx\u202e`,
	} {
		if got := ui.Styled(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
