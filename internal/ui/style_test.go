package ui

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func painted(rows [][]Span) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(Paint(r, true) + "\n")
	}
	return strings.NewReplacer("\x1b[0m", "</>", "\x1b[1m", "<head>", "\x1b[36m", "<hunk>", "\x1b[31m", "<->", "\x1b[32m", "<+>", "\x1b[7;31m", "<-!>", "\x1b[7;32m", "<+!>").Replace(b.String())
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ name, diff, want string }{
		{"a removed line that looks like a head", "--- a\n+++ b\n@@ -1,2 +1 @@\n--- x\n y\n--- a\n", "<head>--- a</>\n<head>+++ b</>\n<hunk>@@ -1,2 +1 @@</>\n<->--- x</>\n y\n<head>--- a</>\n"},
		{"words that changed", "@@ -1,2 +1,2 @@\n-size := old_size(7)\n-x\n+size := new_size(7)\n+y\n", "<hunk>@@ -1,2 +1,2 @@</>\n<->-size := </><-!>old_size</><->(7)</>\n<->-x</>\n<+>+size := </><+!>new_size</><+>(7)</>\n<+>+y</>\n"},
		{"a part that was added", "@@ -1 +1 @@\n-f(a)\n+f(a, b)\n", "<hunk>@@ -1 +1 @@</>\n<->-f(a)</>\n<+>+f(a</><+!>, b</><+>)</>\n"},
		{"characters stay whole", "@@ -1 +1 @@\n-the word é1\n+the word è1\n", "<hunk>@@ -1 +1 @@</>\n<->-the word </><-!>é1</>\n<+>+the word </><+!>è1</>\n"},
		{"nothing in common", "@@ -1 +1 @@\n-abc\n+xyz\n", "<hunk>@@ -1 +1 @@</>\n<->-abc</>\n<+>+xyz</>\n"},
		{"no newline at the end", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "<hunk>@@ -1 +1 @@</>\n<->-a</>\n\\ No newline at end of file\n<+>+b</>\n"},
		{"not a diff", "+ a\n- b\n", "+ a\n- b\n"},
	} {
		if diff := cmp.Diff(tt.want, painted(Diff(tt.diff))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestDiffLength(t *testing.T) {
	for text, want := range map[string]int{
		"diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ntext": 7,
		"--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n- an item":                                5,
		"--- a\ntext\n@@ -1": 0,
		"- a\n- b\n- c":      0,
		"---":                0,
	} {
		if got := DiffLength(strings.SplitSeq(text, "\n")); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestSplitAndWrapSpans(t *testing.T) {
	text := func(rows [][]Span) (out []string) {
		for _, r := range rows {
			out = append(out, Paint(r, false))
		}
		return out
	}
	var split [][]Span
	for rest := []Span{{"日本", Bold}, {"", 0}, {"語abc👩‍👩‍👧e\u0301", 0}}; len(rest) > 0; {
		var head []Span
		head, rest = SplitSpans(rest, 3)
		split = append(split, head)
	}
	if diff := cmp.Diff([]string{"日", "本", "語a", "bc", "👩‍👩‍👧e\u0301"}, text(split)); diff != "" {
		t.Errorf("split (-want +got):\n%s", diff)
	}
	wrapped := WrapSpans([]Span{{"one ", 0}, {"tw", Bold}, {"o  three", Italic}, {" fourteen", 0}}, 8)
	if diff := cmp.Diff([]string{"one two", "three", "fourteen"}, text(wrapped)); diff != "" {
		t.Errorf("wrapped (-want +got):\n%s", diff)
	}
}

// FuzzDiff looks for lost or reordered text.
func FuzzDiff(f *testing.F) {
	f.Add("--- a\n+++ b\n@@ -1,2 +1,2 @@\n-size := old(7)\n+size := new(7)\n é\n\\ No newline at end of file")
	f.Add("@@ -1 +1 @@\n-\n+")
	f.Add("@@ -99999999999999999999 +1,-5 @@\n+é\n-è")
	f.Fuzz(func(t *testing.T, text string) {
		var got []string
		for _, row := range Diff(text) {
			got = append(got, Paint(row, false))
		}
		if want := strings.TrimRight(text, "\n"); strings.Join(got, "\n") != want {
			t.Fatalf("%q became %q", want, got)
		}
		lines := strings.Split(text, "\n")
		if n := DiffLength(slices.Values(lines)); n < 0 || n > len(lines) {
			t.Fatalf("%d of %d lines", n, len(lines))
		}
	})
}
