package file

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/process"
)

func TestUnifiedDiff(t *testing.T) {
	numbers := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"
	tests := []struct {
		name, old, new, want string
	}{
		{"equal", "a\n", "a\n", ""},
		{"new", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"emptied", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"one line", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n"},
		{"line break added at the end", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"line break lost at the end", "a\nb\n", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"},
		{"last line unchanged without a break", "a\nb", "c\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"},
		{
			"two hunks, the first longer", numbers, strings.Replace(strings.Replace(numbers, "2\n", "2\nx\ny\n", 1), "19\n", "z\n", 1),
			"@@ -1,5 +1,7 @@\n 1\n 2\n+x\n+y\n 3\n 4\n 5\n@@ -16,5 +18,5 @@\n 16\n 17\n 18\n-19\n+z\n 20\n",
		},
		{
			"neighboring changes are one hunk, and later line numbers are shifted", numbers,
			"1\nA\n3\n4\n5\n6\nB\nC\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\nD\n19\n20\n",
			"@@ -1,10 +1,11 @@\n 1\n-2\n+A\n 3\n 4\n 5\n 6\n-7\n+B\n+C\n 8\n 9\n 10\n@@ -15,6 +16,6 @@\n 15\n 16\n 17\n-18\n+D\n 19\n 20\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want != "" {
				want = "--- a/f\n+++ b/f\n" + want
			}
			if diff := cmp.Diff(want, diffLines(tt.old, tt.new).unified("a/f", "b/f")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffLabel(t *testing.T) {
	for name, want := range map[string]string{
		"src/main.go":  "a/src/main.go",
		"two words":    "a/two words\t",
		"naïve.txt":    "a/naïve.txt",
		"tab\there":    `"a/tab\there"`,
		"line\nbreak":  `"a/line\nbreak"`,
		`quote"d`:      `"a/quote\"d"`,
		"esc\x1b[2J":   `"a/esc\033[2J"`,
		"broken\xff":   `"a/broken\377"`,
		`back\slash`:   `"a/back\\slash"`,
		"\u202egnp.js": "a/\u202egnp.js",
	} {
		if got := diffLabel("a", name); got != want {
			t.Errorf("diffLabel(%q) = %s, want %s", name, got, want)
		}
		if strings.HasPrefix(want, `"`) {
			if back, rest, err := unquoteName(want); err != nil || rest != "" || back != "a/"+name {
				t.Errorf("unquoteName(%s) = %q, %q, %v", want, back, rest, err)
			}
		}
	}
}

// randomText returns a text that repeats a few different lines, so that two of
// them can be compared in many ways.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(string(rune('a'+r.IntN(4))) + "\n")
	}
	if r.IntN(4) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

// The patch parser turns a diff back into the new text.
func TestDiffRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		old, new := randomText(r), randomText(r)
		text := diffLines(old, new).unified("a/f", "b/f")
		if old == new {
			continue
		}
		list, err := parsePatch(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		compared := 0
		got, notes, err := patchText("f", old, list[0].hunks, &compared)
		if err != nil || got != new || len(notes) > 0 {
			t.Fatalf("from %q to %q: got %q, %v, %v\n%s", old, new, got, notes, err, text)
		}
	}
}

// Texts that are too long to be compared line by line are still shown
// correctly.
func TestDiffOfHugeTexts(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	many := strings.Repeat(line, 4<<20/100+1)
	old := many + "old\n" + line
	new := many + "new\n" + line
	text := diffLines(old, new).unified("a/f", "b/f")
	if n := len(splitLines(text)); n != 2+1+3+2+1 {
		t.Errorf("the diff has %d lines:\n%.500s", n, text)
	}
	small, large := strings.Repeat(line, 10), many
	for _, tt := range []struct {
		between string
		changes int
	}{{small, 2}, {large, 1}} { // comparing large texts line by line would take long
		if d := diffLines("a\n"+tt.between+"b\n", "A\n"+tt.between+"B\n"); len(d.changes) != tt.changes {
			t.Errorf("%d bytes between two changes: %d changes, want %d", len(tt.between), len(d.changes), tt.changes)
		}
	}
}

// git applies the diffs.
func TestGitAppliesDiff(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	var all strings.Builder
	want := map[string]string{}
	for i := range 60 {
		name := fmt.Sprintf("dir %d/f", i)
		old, new := randomText(r)+"tail\n", randomText(r)+"x\n"
		tooltest.Put(t, filepath.Join(dir, name), old)
		want[name] = new
		all.WriteString(diffLines(old, new).unified(diffLabel("a", name), diffLabel("b", name)))
	}
	out, err := process.Run(t.Context(), process.Spec{
		Argv: []string{"git", "apply", "-"}, Dir: dir, Env: os.Environ(), Stdin: []byte(all.String()),
	})
	if err != nil || out.ExitCode != 0 {
		t.Fatalf("%v %s", err, out.Stderr)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s: %v %q, want %q", name, err, got, text)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	var old, new strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&old, "line %d of the file\n", i)
		if i%100 == 0 {
			fmt.Fprintf(&new, "another line\n")
		}
		fmt.Fprintf(&new, "line %d of the file\n", i)
	}
	for b.Loop() {
		diffLines(old.String(), new.String()).unified("a/f", "b/f")
	}
}
