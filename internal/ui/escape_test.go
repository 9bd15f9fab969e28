package ui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/text"
)

func TestVisible(t *testing.T) {
	tests := []struct{ name, in, lines, line string }{
		{"plain", "plain text", "plain text", "plain text"},
		{"line breaks and tabs", "a\n\tb", "a\n\tb", `a\n\tb`},
		{"carriage return", "safe\rEVIL", `safe\rEVIL`, `safe\rEVIL`},
		{"clear screen", "\x1b[2J\x1b[H", `\x1b[2J\x1b[H`, `\x1b[2J\x1b[H`},
		{"clipboard", "\x1b]52;c;ZXZpbA==\x07", `\x1b]52;c;ZXZpbA==\x07`, `\x1b]52;c;ZXZpbA==\x07`},
		{"link", "\x1b]8;;http://evil\x1b\\x", `\x1b]8;;http://evil\x1b\x`, `\x1b]8;;http://evil\x1b\x`},
		{"null and delete", "\x00\x7f", `\x00\x7f`, `\x00\x7f`},
		{"C1 as characters", "\u009b31m\u0085", `\u009b31m\u0085`, `\u009b31m\u0085`},
		{"C1 as bytes", "\x9b31m", `\x9b31m`, `\x9b31m`},
		{"bidirectional", "a\u202eb\u2066c\u200f\u061c", `a\u202eb\u2066c\u200f\u061c`, `a\u202eb\u2066c\u200f\u061c`},
		{"zero width", "a\u200bb\u200d\u2060\ufeff\u00ad", `a\u200bb\u200d\u2060\ufeff\u00ad`, `a\u200bb\u200d\u2060\ufeff\u00ad`},
		{"tags", "a\U000e0041\U000e007f", `a\U000e0041\U000e007f`, `a\U000e0041\U000e007f`},
		{"variation selectors", "a\ufe01\U000e0100", `a\ufe01\U000e0100`, `a\ufe01\U000e0100`},
		{"emoji keep theirs", "☀\ufe0f", "☀\ufe0f", "☀\ufe0f"},
		{"escapes do not", "\xef\ufe0f\u2800\ufe0f", `\xef\ufe0f\u2800\ufe0f`, `\xef\ufe0f\u2800\ufe0f`},
		{"letters do not", "a\ufe0f", `a\ufe0f`, `a\ufe0f`},
		{"separators", "a\u2028b\u2029c", `a\u2028b\u2029c`, `a\u2028b\u2029c`},
		{"fillers", "\u3164\u115f\u2800\u034f", `\u3164\u115f\u2800\u034f`, `\u3164\u115f\u2800\u034f`},
		{"broken UTF-8", "a\xffb\xc3", `a\xffb\xc3`, `a\xffb\xc3`},
		{"half a surrogate", "\xed\xa0\x80", `\xed\xa0\x80`, `\xed\xa0\x80`},
		{"other scripts stay", "日本語 éà עברית 😀", "日本語 éà עברית 😀", "日本語 éà עברית 😀"},
		{"the replacement character stays", "\ufffd", "\ufffd", "\ufffd"},
	}
	for _, tt := range tests {
		if got := Visible(tt.in); got != tt.lines {
			t.Errorf("%s: Visible %q, want %q", tt.name, got, tt.lines)
		}
		if got := Line(tt.in); got != tt.line {
			t.Errorf("%s: Line %q, want %q", tt.name, got, tt.line)
		}
	}
}

func TestLongRunsOfBlanksAreCounted(t *testing.T) {
	spaces := strings.Repeat(" ", 5000)
	tests := []struct{ name, in, line, payload string }{
		{"spaces", "ls" + spaces + "; rm", "ls␣×5000; rm", "ls␣×5000; rm"},
		{"few spaces", "a" + spaces[:20] + "b", "a" + spaces[:20] + "b", "a" + spaces[:20] + "b"},
		{"wide spaces", strings.Repeat("\u3000\u00a0", 50) + "x", "␣×100x", "␣×100x"},
		{"tabs", strings.Repeat("\t", 100) + "x", strings.Repeat(`\t`, 100) + "x", "␣×100x"},
		{"empty lines", "a" + strings.Repeat("\n", 500) + "b", "a" + strings.Repeat(`\n`, 500) + "b", "a\n⏎×500\nb"},
		{"lines of blanks", "a" + strings.Repeat("  \n", 500) + "b", "a" + strings.Repeat(`  \n`, 500) + "b", "a\n⏎×500\nb"},
		{"a paragraph", "a\n\nb", `a\n\nb`, "a\n\nb"},
		{"indented line", "a\n" + spaces + "b", `a\n␣×5000b`, "a\n␣×5000b"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.line, Line(tt.in)); diff != "" {
			t.Errorf("%s: Line: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.payload, payload(tt.in)); diff != "" {
			t.Errorf("%s: Payload: %s", tt.name, diff)
		}
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{"hello", 5, "hello"}, {"hello", 4, "hel…"}, {"hello", 1, "…"}, {"hello", 0, ""}, {"hello", -1, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"", 3, ""},
		{"\x1b[1mbold\x1b[0m", 4, "\x1b[1mbold\x1b[0m"}, {"\x1b[1mbold\x1b[0m", 3, "\x1b[1mbo…\x1b[0m"},
	}
	for _, tt := range tests {
		got := Cut(tt.in, tt.width)
		if got != tt.want || Width(got) > max(tt.width, 0) {
			t.Errorf("Cut(%q, %d) = %q", tt.in, tt.width, got)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\x1b[31m", "\xff\xfe", "\u202e", "☀\ufe0f\ufe0f", strings.Repeat(" ", 70), strings.Repeat("\n", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, out := range map[string]string{"Visible": Visible(s), "Line": Line(s), "Payload": payload(s)} {
			if !utf8.ValidString(out) {
				t.Fatalf("%s(%q) is not UTF-8: %q", name, s, out)
			}
			for _, r := range out {
				if text.Invisible(r) && r != '\n' && r != '\t' && r != emojiStyle {
					t.Fatalf("%s(%q) holds %q", name, s, r)
				}
			}
			if name == "Line" && strings.ContainsAny(out, "\n\t") {
				t.Fatalf("Line(%q) has several lines: %q", s, out)
			}
		}
	})
}

func BenchmarkVisiblePlain(b *testing.B) {
	s := strings.Repeat("plain text, nothing to escape\n", 1000)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		Visible(s)
	}
}
