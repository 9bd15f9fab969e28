package search

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
)

// plainSearch is a simple implementation of the search, line by line.
func plainSearch(re *regexp.Regexp, text string, around, limit int) []foundLine {
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	keep := make([]int, len(lines)) // 1 context, 2 match
	matches := 0
	for i, l := range lines {
		if !re.MatchString(strings.TrimSuffix(l, "\r")) {
			continue
		}
		if matches++; matches > limit {
			for j := i; j < len(keep); j++ {
				keep[j] = 0 // the context after the last match shown ends here
			}
			break
		}
		for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
			keep[j] = max(keep[j], 1)
		}
		keep[i] = 2
	}
	var out []foundLine
	for i, k := range keep {
		if k > 0 {
			out = append(out, foundLine{number: i + 1, text: strings.TrimSuffix(lines[i], "\r"), match: k == 2})
		}
	}
	return out
}

// TestSearcherAcrossWindows searches random texts with a tiny buffer, so that
// lines, matches and context cross its end.
func TestSearcherAcrossWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "Needle", "needle", "b", "\n", "\n", "\r\n", "kiss", "KISS", " ", "é", "foo", "bar1"}
	patterns := []string{"needle", "kiss", "(?:foo|bar)\\d", "^needle$", "n..dle", "é", "x*", "[a-f]+1", "ed", "\\bkiss\\b", "^$"}
	for i := range 2000 {
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString(words[r.IntN(len(words))])
		}
		pattern, fold := patterns[r.IntN(len(patterns))], r.IntN(2) == 0
		around, limit := r.IntN(4), 1+r.IntN(8)
		e := mustExpr(t, pattern, fold)
		s := &searcher{expr: e, context: around, limit: limit}
		_, _ = s.file(t.Context(), strings.NewReader(""), 0)
		s.buf = make([]byte, 4+r.IntN(40))
		text := b.String()
		var in = iotest.OneByteReader(strings.NewReader(text))
		if i%2 == 0 {
			in = strings.NewReader(text)
		}
		got, err := s.file(t.Context(), in, int64(len(text)*(i%3/2)))
		if err != nil {
			t.Fatal(err)
		}
		want := plainSearch(e.regexp, text, around, limit)
		if diff := cmp.Diff(want, got.lines, cmp.AllowUnexported(foundLine{})); diff != "" {
			t.Fatalf("%q (fold %v) context %d limit %d buffer %d in %q (-want +got)\n%s", pattern, fold, around, limit, len(s.buf), text, diff)
		}
	}
}

// Only the beginning of a line that is too long is searched, whatever follows it.
func TestSearcherCutsLongLines(t *testing.T) {
	long := "needle" + strings.Repeat("x", 2*maxLine+searchBuffer) + "beyond"
	tests := []struct {
		name, text, pattern string
		context             int
		want                []int // numbers of the lines shown
		cut                 int
	}{
		{"match at its start", "a\n" + long + "\nb\n", "needle", 0, []int{2}, 1},
		{"match beyond", "a\n" + long + "\nb\n", "beyond", 0, nil, 1},
		{"match after it", long + "\nbeyond\n", "beyond", 50, []int{1, 2}, 1},
		{"context after it", long + "\nb\nc\n", "needle", 1, []int{1, 2}, 1},
		{"two long lines", long + "\nb\n" + long + "\nbeyond", "beyond", 0, []int{4}, 2},
		{"at the end of the file", "b\n" + long, "b$", 0, []int{1}, 1},
		{"an empty line after it", long + "\n\nb", "^$", 0, []int{2}, 1},
		{"many lines after it", long + "\n" + strings.Repeat(strings.Repeat("y", 9000)+"\n", 500) + "beyond\n", "beyond", 0, []int{502}, 1},
		{"as long as allowed", strings.Repeat("x", maxLine-6) + "beyond\nb", "beyond", 0, []int{1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &searcher{expr: mustExpr(t, tt.pattern, false), context: tt.context, limit: 10}
			got, err := s.file(t.Context(), strings.NewReader(tt.text), int64(len(tt.text)))
			if err != nil {
				t.Fatal(err)
			}
			var numbers []int
			for _, l := range got.lines {
				numbers = append(numbers, l.number)
			}
			if !slices.Equal(numbers, tt.want) || got.cut != tt.cut {
				t.Errorf("lines %d and %d cut, want %d and %d", numbers, got.cut, tt.want, tt.cut)
			}
			if len(s.buf) > 2*maxLine {
				t.Errorf("the buffer grew to %d", len(s.buf))
			}
		})
	}
}

func TestSearcherDetectsBinaryFiles(t *testing.T) {
	s := &searcher{expr: mustExpr(t, "needle", true), limit: 10}
	for _, text := range []string{"needle\x00", "needle\n" + strings.Repeat("x\n", searchBuffer) + "\x00", strings.Repeat("x", 2*maxLine) + "\x00"} {
		got, err := s.file(t.Context(), strings.NewReader(text), 0)
		if err != nil || !got.binary || len(got.lines) > 0 {
			t.Errorf("binary %v with %d lines, %v", got.binary, len(got.lines), err)
		}
	}
	if _, err := s.file(t.Context(), iotest.ErrReader(errors.New("broken disk")), 0); err == nil {
		t.Error("no error")
	}
}

func TestRequired(t *testing.T) {
	for pattern, want := range map[string][]string{
		"needle": {"needle"}, "foo.*needle": {"needle"}, "(?:abc)+x?": {"abc"}, "foo|bar": {"foo", "bar"}, "(foo|b*)": nil, "a?": nil,
		"x{2,3}yz": {"yz"}, "struct": {"truct"}, "kiss": nil, "sk": nil, "func \\w+Error": {"func "}, "é": nil, "[xyz]": nil, "caféteria": {"teria"},
	} {
		var got []string
		for _, n := range mustExpr(t, pattern, true).needs {
			got = append(got, string(n.text))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", pattern, diff)
		}
	}
}

// TestDFADropsStates searches with an expression that needs more states than
// are kept, and with one that is too large for a DFA.
func TestDFADropsStates(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 20_000)
	for i := range text {
		text[i] = "ab\n"[min(2, r.IntN(200)/99)]
	}
	for _, pattern := range []string{"[ab]*a[ab]{14}b", "(?:a[ab]{12}|b[ab]{13}){2}$", "[ab]{900}a|(?:ab|ba){3,300}bbb"} {
		e := mustExpr(t, pattern, false)
		s := &searcher{expr: e, limit: 1 << 20}
		got, err := s.file(t.Context(), bytes.NewReader(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := plainSearch(e.regexp, string(text), 0, 1<<20); len(want) != got.matches {
			t.Errorf("%s: %d matches, want %d", pattern, got.matches, len(want))
		}
		if s.dfa != nil && len(s.dfa.states) > maxDFAStates {
			t.Errorf("%s: %d states", pattern, len(s.dfa.states))
		}
	}
}

func FuzzGrepLine(f *testing.F) {
	f.Add("fo+|ba[rz]", "xx FOO\nbaz", true)
	f.Add("k\u017F", "\u212As", true)
	f.Add("\ufffd", "\xff", false)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		if len(pattern) > 200 || len(text) > 5000 || strings.ContainsRune(text, 0) || encodingToConvert([]byte(text)) != textfile.UTF8 || strings.HasPrefix(text, textfile.BOM) {
			return
		}
		e, err := compileLineExpr(pattern, fold)
		if err != nil {
			return
		}
		s := &searcher{expr: e, limit: 1 << 20}
		got, err := s.file(t.Context(), strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		want := plainSearch(e.regexp, text, 0, 1<<20)
		if len(want) != len(got.lines) {
			t.Fatalf("%d lines, want %d", len(got.lines), len(want))
		}
		for i := range want {
			if want[i].number != got.lines[i].number {
				t.Errorf("line %d, want %d", got.lines[i].number, want[i].number)
			}
		}
	})
}
