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

// plainSearch is what searching should give, line by line.
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
				keep[j] = 0 // what follows the last match shown ends here
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

// TestSearcherAcrossWindows searches random texts through a tiny buffer, so
// that lines, matches and context fall on every border.
func TestSearcherAcrossWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "Needle", "needle", "b", "\n", "\n", "\r\n", "kiss", "KISS", " ", "é", "foo", "bar1"}
	patterns := []string{"needle", "kiss", "(?:foo|bar)\\d", "^needle$", "n..dle", "é", "x*", "[a-f]+1", "ed", "\\bkiss\\b", "^$"}
	for i := range 4000 {
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

func TestSearcherMemoryIsBounded(t *testing.T) {
	s := &searcher{expr: mustExpr(t, "needle", true), context: 50, limit: 10}
	line := bytes.Repeat([]byte("x"), 5<<20) // one line of 5 MiB
	text := append(append(line, "\nneedle\n"...), bytes.Repeat([]byte(strings.Repeat("y", 9000)+"\n"), 500)...)
	got, err := s.file(t.Context(), bytes.NewReader(text), 0)
	if err != nil || got.matches != 1 {
		t.Fatalf("%d matches, %v", got.matches, err)
	}
	for _, l := range got.lines {
		if l.match && l.number != 2 {
			t.Errorf("found in line %d", l.number)
		}
	}
	if len(s.buf) > 4*maxLine {
		t.Errorf("the buffer grew to %d", len(s.buf))
	}
}

// TestSearcherLongLines searches random texts with lines longer than what is
// held of one, with small reads, and wants what a search of whole lines gives.
func TestSearcherLongLines(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	words := []string{"needle", "Needle", "x", "foo", "bar1", "\n", "\r\n", "é", "\r", "kiss"}
	long := []string{strings.Repeat("x", 3000), strings.Repeat("é", 2000), strings.Repeat("ab ", 1500) + "need", strings.Repeat("y", 1400)}
	patterns := []string{"needle", "foo.*needle", "^x+$", "n..dle$", "é", "bar1\\r?$", "\\bkiss\\b", "[ab ]+need.e", "x*", "(?:foo|bar)\\d"}
	for range 1500 {
		var b strings.Builder
		for range r.IntN(16) {
			if r.IntN(3) == 0 {
				b.WriteString(long[r.IntN(len(long))])
			} else {
				b.WriteString(words[r.IntN(len(words))])
			}
		}
		text := b.String()
		e := mustExpr(t, patterns[r.IntN(len(patterns))], r.IntN(2) == 0)
		s := &searcher{expr: e, context: r.IntN(3), limit: 1 + r.IntN(4), longest: 2*maxExcerpt + 1 + r.IntN(500)}
		_, _ = s.file(t.Context(), strings.NewReader(""), 0)
		s.buf = make([]byte, 64+r.IntN(2000))
		got, err := s.file(t.Context(), strings.NewReader(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := plainSearch(e.regexp, text, s.context, s.limit)
		for i, l := range want {
			want[i].text = s.excerpt([]byte(l.text), l.match)
		}
		if diff := cmp.Diff(want, got.lines, cmp.AllowUnexported(foundLine{})); diff != "" {
			t.Fatalf("%s in %.300q, context %d, limit %d (-want +got)\n%s", e.regexp, text, s.context, s.limit, diff)
		}
		if len(s.buf) > 4*s.longest+4096 {
			t.Fatalf("the buffer grew to %d", len(s.buf))
		}
	}
}

// One line of many megabytes is one match, and what lies across the borders of
// what is read of it at once is found.
func TestSearcherOneLongLine(t *testing.T) {
	filler := bytes.Repeat([]byte("needle "), 3<<20) // 21 MiB
	for at := len(filler) - 3*longChunk; at < len(filler); at += longChunk/3 + 1 {
		text := slices.Concat([]byte("head\n"), filler[:at], []byte("SPECIAL"), filler[at:])
		for _, pattern := range []string{"SPECIAL", "SP[A-Z]+L", "needle"} {
			s := &searcher{expr: mustExpr(t, pattern, false), limit: 10}
			got, err := s.file(t.Context(), bytes.NewReader(text), int64(len(text)))
			if err != nil || got.matches != 1 || got.lines[0].number != 2 || !strings.Contains(got.lines[0].text, "SPECIAL") == (pattern != "needle") {
				t.Fatalf("%s at %d: %v, %+v", pattern, at, err, got)
			}
			if len(s.buf) > 2*maxLine {
				t.Errorf("the buffer grew to %d", len(s.buf))
			}
		}
	}
}

func TestSearcherTellsBinaries(t *testing.T) {
	s := &searcher{expr: mustExpr(t, "needle", true), limit: 10}
	for _, text := range []string{"needle\x00", "needle\n" + strings.Repeat("x\n", searchBuffer) + "\x00"} {
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

// TestDFAForgets searches with an expression of more states than are kept,
// and with one too large for any.
func TestDFAForgets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 40_000)
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
		if len(pattern) > 200 || len(text) > 5000 || strings.ContainsRune(text, 0) || isUTF16([]byte(text)) || strings.HasPrefix(text, textfile.BOM) {
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
