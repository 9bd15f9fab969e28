package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// aged sets the time of a file's last change to so long ago.
func aged(t testing.TB, path string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestGrepOutput(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"old.go": "one\nTwo needle\nthree\nfour\nfive needle\nsix\n", "src/new.go": "Needle\r\nneedle needle\n", "src/new.txt": "needle",
		"bin": "needle\x00", "dir/none.go": "nothing\n",
	})
	aged(t, filepath.Join(dir, "old.go"), time.Hour)
	aged(t, filepath.Join(dir, "src/new.txt"), 30*time.Minute)
	aged(t, filepath.Join(dir, "src/new.go"), time.Minute)
	tests := []struct{ params, want string }{
		{`{"pattern":"needle"}`, `Found 5 matches in 3 files for "needle":
---
File: src/new.go
L1: Needle
L2: needle needle
---
File: src/new.txt
L1: needle
---
File: old.go
L2: Two needle
L5: five needle
---
`},
		{`{"pattern":"needle","case_sensitive":true,"path":"src","include":"*.go"}`, `Found 1 match in 1 file for "needle" in "src" (include "*.go"):
---
File: src/new.go
L2: needle needle
---
`},
		{`{"pattern":"needle","path":"old.go","context":1}`, `Found 2 matches in 1 file for "needle" in "old.go":
---
File: old.go
L1- one
L2: Two needle
L3- three
L4- four
L5: five needle
L6- six
---
`},
		{`{"pattern":"^(one|six)$","path":"old.go","context":1}`, `Found 2 matches in 1 file for "^(one|six)$" in "old.go":
---
File: old.go
L1: one
L2- Two needle
...
L5- five needle
L6: six
---
`},
		{`{"pattern":"needle$","include":"src/*","limit":2}`, `Showing the first 2 matches in 1 file for "needle$" (include "src/*"); there are more. Narrow pattern, path or include, or raise limit:
---
File: src/new.go
L1: Needle
L2: needle needle
---
`},
		{`{"pattern":"needle","limit":4}`, `Showing the first 4 matches in 3 files for "needle"; there are more. Narrow pattern, path or include, or raise limit:
---
File: src/new.go
L1: Needle
L2: needle needle
---
File: src/new.txt
L1: needle
---
File: old.go
L2: Two needle
---
`},
		{`{"pattern":"absent"}`, `No matches for "absent".`},
		{`{"pattern":"needle","path":"bin"}`, `No matches for "needle" in "bin". (the file is binary)`},
	}
	for _, tt := range tests {
		r := run(t, opts, "grep", tt.params)
		if diff := cmp.Diff(tt.want, r.Text()); diff != "" || r.IsError {
			t.Errorf("%s (-want +got)\n%s", tt.params, diff)
		}
	}
	r := run(t, opts, "grep", `{"pattern":"needle","path":"old.go"}`)
	if diff := cmp.Diff([]registry.Location{{Path: "old.go", Line: 2}, {Path: "old.go", Line: 5}}, r.Locations); diff != "" {
		t.Error(diff)
	}
}

func TestGrepLeavesOut(t *testing.T) {
	opts, _ := place(t, map[string]string{
		".gitignore": "ignored/\n*.log\n", "a": "x", ".hidden/b": "x", "ignored/c": "x", "d.log": "x", ".git/config": "x", "node_modules/p/e": "x",
		"vendor/node_modules/f": "x",
	})
	files := func(params string) []string {
		seen := []string{}
		for _, l := range run(t, opts, "grep", params).Locations {
			seen = append(seen, l.Path)
		}
		return sorted(seen)
	}
	tests := map[string][]string{
		`{"pattern":"^x$"}`: {".hidden/b", "a"},
		`{"pattern":"^x$","respect_ignore_files":false}`:          {".hidden/b", "a", "d.log", "ignored/c", "node_modules/p/e", "vendor/node_modules/f"},
		`{"pattern":"^x$","path":"ignored"}`:                      {"ignored/c"},
		`{"pattern":"^x$","include":"ignored/**"}`:                {"ignored/c"},
		`{"pattern":"^x$","include":"**/node_modules/**"}`:        {"node_modules/p/e", "vendor/node_modules/f"},
		`{"pattern":"^x$","path":".git"}`:                         {".git/config"},
		`{"pattern":"^x$","include":".git/*"}`:                    {".git/config"},
		`{"pattern":"^x$","include":"d.log"}`:                     {"d.log"},
		`{"pattern":"^x$","include":"*.log"}`:                     {},
		`{"pattern":"^x$","path":"node_modules","include":"p/*"}`: {"node_modules/p/e"},
		`{"pattern":"^x$","include":"A","case_sensitive":true}`:   {},
		`{"pattern":"^X$","include":"{A,zz}"}`:                    {"a"},
	}
	for params, want := range tests {
		if diff := cmp.Diff(want, files(params)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", params, diff)
		}
	}
	if text := output(t, opts, "grep", `{"pattern":"absent"}`); !strings.Contains(text, "2 entries left out by ignore files") {
		t.Error(text)
	}
}

func TestGrepText(t *testing.T) {
	opts, _ := place(t, map[string]string{
		"bom": "\xef\xbb\xbffirst\n", "utf16": "\xff\xfen\x00e\x00\xe9\x00d\x00l\x00e\x00\n\x00", "latin": "caf\xe9 here\n",
		"long": strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000), "kelvin": "\u212Aelvin \u017Ftep\n", "name\nL9: forged": "forged",
	})
	for params, want := range map[string]string{
		`{"pattern":"^first$"}`: "L1: first\n",
		`{"pattern":"néedle"}`:  "No matches",
		`{"pattern":"neédle"}`:  "File: utf16\nL1: neédle\n",
		`{"pattern":"here"}`:    "L1: caf\uFFFD here\n",
		`{"pattern":"needle"}`:  "L1: ... " + strings.Repeat("x", 125) + "needle" + strings.Repeat("y", 369) + " ... [truncated]\n",
		`{"pattern":"KELVIN"}`:  "L1: \u212Aelvin \u017Ftep\n",
		`{"pattern":"step"}`:    "L1: \u212Aelvin \u017Ftep\n",
		`{"pattern":"^forged"}`: `File: "name\nL9: forged"` + "\nL1: forged\n",
	} {
		if got := output(t, opts, "grep", params); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nwant %s", params, got, want)
		}
	}
}

func TestGrepBadParams(t *testing.T) {
	opts, _ := place(t, map[string]string{"a": "x"})
	tool := find(t, opts, "grep")
	for params, want := range map[string]string{
		`{"pattern":"("}`:                `missing closing ): ` + "`(`",
		`{"pattern":"(?=a)"}`:            "RE2 syntax",
		`{"pattern":"a\\nb"}`:            "within one line",
		`{"pattern":"a","include":"[a"}`: "close the bracket",
		`{"pattern":"a","context":1.5}`:  "whole number",
		`{"pattern":"a","Context":1}`:    "no such param",
		`{"pattern":"a{1000}{1000}"}`:    "RE2 syntax",
		`{"pattern":"` + strings.Repeat("(", 1500) + strings.Repeat(")", 1500) + `"}`: "RE2 syntax",
	} {
		err := tool.Check(call(params))
		var args *registry.ArgsError
		if !errors.As(err, &args) || !strings.Contains(err.Error(), strings.Split(want, ":")[0]) {
			t.Errorf("%.60s: %v", params, err)
		}
	}
	if r := run(t, opts, "grep", `{"pattern":"x","path":"b"}`); !r.IsError || !strings.Contains(r.Text(), `"b" does not exist`) {
		t.Error(r.Text())
	}
}

// TestGrepLimitIsStable gives files in random order to the ranking and wants
// the same outcome as sorting them all.
func TestGrepLimitIsStable(t *testing.T) {
	opts, dir := place(t, nil)
	for i := range 300 {
		path := filepath.Join(dir, fmt.Sprintf("d%d/f%03d", i%7, i))
		put(t, path, strings.Repeat("needle\n", 1+i%3))
		aged(t, path, time.Duration(i*7919%300/10)*time.Minute) // many of one age
	}
	all := run(t, opts, "grep", `{"pattern":"needle","limit":10000}`).Locations
	if len(all) != 600 {
		t.Fatalf("%d matches", len(all))
	}
	for _, limit := range []int{1, 2, 17, 100, 599, 600} {
		r := run(t, opts, "grep", fmt.Sprintf(`{"pattern":"needle","limit":%d}`, limit))
		if diff := cmp.Diff(all[:limit], r.Locations); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
		if r.Truncated != (limit < 600) {
			t.Errorf("limit %d: truncated %v", limit, r.Truncated)
		}
	}
}

func TestGrepEndsWithItsContext(t *testing.T) {
	opts, _ := place(t, map[string]string{"f": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"grep", "glob"} {
		if _, err := find(t, opts, name).Run(ctx, call(`{"pattern":"x"}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	endless := &searcher{expr: mustExpr(t, "needle", true), limit: 10}
	if _, err := endless.file(ctx, zeros{}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// zeros is a text without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func mustExpr(t testing.TB, pattern string, fold bool) *lineExpr {
	t.Helper()
	e, err := compileLineExpr(pattern, fold)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

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
		if len(pattern) > 200 || len(text) > 5000 || strings.ContainsRune(text, 0) || isUTF16([]byte(text)) || strings.HasPrefix(text, utf8BOM) {
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
