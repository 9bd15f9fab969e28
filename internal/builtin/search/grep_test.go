package search

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestGrepOutput(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"old.go": "one\nTwo needle\nthree\nfour\nfive needle\nsix\n", "src/new.go": "Needle\r\nneedle needle\n", "src/new.txt": "needle",
		"bin": "needle\x00", "dir/none.go": "nothing\n",
	})
	tooltest.Aged(t, filepath.Join(dir, "old.go"), time.Hour)
	tooltest.Aged(t, filepath.Join(dir, "src/new.txt"), 30*time.Minute)
	tooltest.Aged(t, filepath.Join(dir, "src/new.go"), time.Minute)
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
		{`{"pattern":"needle$","include":"src/*","limit":2}`, `Showing the first 2 matches in 1 file for "needle$" (include "src/*"); there may be more. Narrow pattern, path or include, or raise limit:
---
File: src/new.go
L1: Needle
L2: needle needle
---
`},
		{`{"pattern":"needle","limit":4}`, `Showing the first 4 matches in 3 files for "needle"; there may be more. Narrow pattern, path or include, or raise limit:
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
		{`{"pattern":"needle","include":"src/"}`, `No matches for "needle" (include "src/"). No file matches include, which is a glob of file paths such as src/** or *.{ts,tsx}.`},
		{`{"pattern":"absent\\|gone"}`, `No matches for "absent\\|gone". \| is the character | in RE2 syntax; alternatives are written a|b.`},
		{`{"pattern":"\\<needle\\>"}`, `No matches for "\\<needle\\>". \< and \> are the characters < and > in RE2 syntax; a word boundary is written \b.`},
		{`{"pattern":"a\\\\|absent"}`, `No matches for "a\\\\|absent".`},
		{`{"pattern":"absent","include":"src/*"}`, `No matches for "absent" (include "src/*").`},
		{`{"pattern":"needle","path":"bin","include":"*.go"}`, `No matches for "needle" in "bin" (include "*.go"). (the file is binary)`},
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

func TestGrepSkipsFiles(t *testing.T) {
	opts, dir := place(t, map[string]string{
		".gitignore": "ignored/\n*.log\n", "a": "x", ".hidden/b": "x", "ignored/c": "x", "d.log": "x", ".git/config": "x", "node_modules/p/e": "x",
		"vendor/node_modules/f": "x",
	})
	tooltest.Link(t, ".hidden", filepath.Join(dir, "linked"))
	files := func(params string) []string {
		seen := []string{}
		for _, l := range run(t, opts, "grep", params).Locations {
			seen = append(seen, l.Path)
		}
		return tooltest.Sorted(seen)
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
		`{"pattern":"^x$","include":"linked/*"}`:                  {".hidden/b"},
		`{"pattern":"^x$","path":"node_modules","include":"p/*"}`: {"node_modules/p/e"},
		`{"pattern":"^x$","include":"A","case_sensitive":true}`:   {},
		`{"pattern":"^X$","include":"{A,zz}"}`:                    {"a"},
	}
	absolute := tooltest.Quoted(filepath.Join(dir, ".hidden", "*"))
	tests[`{"pattern":"^x$","path":"ignored","include":`+absolute+`}`] = []string{".hidden/b"}
	for params, want := range tests {
		if diff := cmp.Diff(want, files(params)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", params, diff)
		}
	}
	if text := output(t, opts, "grep", `{"pattern":"absent"}`); !strings.Contains(text, "4 entries excluded by ignore files") {
		t.Error(text)
	}
}

func TestGrepText(t *testing.T) {
	opts, _ := place(t, map[string]string{
		"bom": "\xef\xbb\xbffirst\n", "utf16": "\xff\xfen\x00e\x00\xe9\x00d\x00l\x00e\x00\n\x00", "latin": "caf\xe9 here\n",
		"long": strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000), "gbk": "x = 1 # \xc4\xe3\xba\xc3\n", "kelvin": "\u212Aelvin \u017Ftep\n", "name\nL9: forged": "forged",
	})
	for params, want := range map[string]string{
		`{"pattern":"^first$"}`: "L1: first\n",
		`{"pattern":"néedle"}`:  "No matches",
		`{"pattern":"neédle"}`:  "File: utf16\nL1: neédle\n",
		`{"pattern":"你好"}`:      "File: gbk\nL1: x = 1 # 你好\n",
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

func TestGrepReportsCutLines(t *testing.T) {
	opts, _ := place(t, map[string]string{"long": strings.Repeat("x", 3*maxLine) + "needle\n", "other": "hay\n"})
	const note = "(lines longer than 8 MiB, of which only the beginning was searched: 1)"
	for _, params := range []string{`{"pattern":"needle"}`, `{"pattern":"hay"}`, `{"pattern":"needle","path":"long"}`} {
		if got := output(t, opts, "grep", params); !strings.Contains(got, note) {
			t.Errorf("%s:\n%s\nwant %s", params, got, note)
		}
	}
}

func TestGrepSaysHowToSeeTheRestOfALine(t *testing.T) {
	opts, _ := place(t, map[string]string{"long": "short\n" + strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000), "short": "needle"})
	const note = "(long lines are shown in part, such as line 2 of long; read_file with offset shows more of a line)"
	if got := output(t, opts, "grep", `{"pattern":"needle"}`); !strings.Contains(got, note) {
		t.Errorf("%s\nwant %s", got, note)
	}
	if got := output(t, opts, "grep", `{"pattern":"needle","path":"short"}`); strings.Contains(got, "in part") {
		t.Error(got)
	}
}

func TestGrepBadParams(t *testing.T) {
	opts, _ := place(t, map[string]string{"a": "x"})
	tool := find(t, opts, "grep")
	for params, want := range map[string]string{
		`{"pattern":"("}`:                "missing closing ) in `(`; write \\( to search for the text as it is",
		`{"pattern":"(?=a)"}`:            "has a lookahead, `(?=`, which RE2 syntax does not have; search without it",
		`{"pattern":"(?!a)b"}`:           "has a lookahead",
		`{"pattern":"(?<=a)b"}`:          "has a lookbehind",
		`{"pattern":"(?<!a)b"}`:          "has a lookbehind",
		`{"pattern":"(a)\\1"}`:           "has a backreference",
		`{"pattern":"(?<n>a)\\k<n>"}`:    "has a backreference",
		`{"pattern":"(?P<n>a)(?P=n)"}`:   "has a reference to a group",
		`{"pattern":"(?>a)b"}`:           "has an atomic group",
		`{"pattern":"a*+b"}`:             "has a possessive repetition",
		`{"pattern":"\\u20ac"}`:          "has an escape, `\\u`, which RE2 syntax does not have; write \\x{20AC}",
		`{"pattern":"a\\Z"}`:             "has an end of the text",
		`{"pattern":"a{2000}"}`:          "has a repetition of more than 1000 times",
		`{"pattern":"a\nb"}`:             "contains a line break, but a match is within one line: search for",
		`{"pattern":"a\\nb"}`:            "contains a line break",
		`{"pattern":"(a|b\\r\\n)c"}`:     "contains a line break",
		`{"pattern":"a","include":"[a"}`: "close the bracket",
		`{"pattern":"a","context":1.5}`:  "not an integer",
		`{"pattern":"a{1000}{1000}"}`:    "RE2 syntax",
		`{"pattern":"` + strings.Repeat("(", 1500) + strings.Repeat(")", 1500) + `"}`: "RE2 syntax",
	} {
		err := tool.Check(t.Context(), tooltest.Call(params))
		var args *registry.ArgsError
		if !errors.As(err, &args) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", params, err)
		}
	}
	if r := run(t, opts, "grep", `{"pattern":"x","path":"b"}`); !r.IsError || !strings.Contains(r.Text(), `"b" does not exist`) {
		t.Error(r.Text())
	}
}

// TestGrepLimitIsStable adds files to the ranking in random order and expects
// the same result as from sorting them all.
func TestGrepLimitIsStable(t *testing.T) {
	opts, dir := place(t, nil)
	for i := range 300 {
		path := filepath.Join(dir, fmt.Sprintf("d%d/f%03d", i%7, i))
		tooltest.Put(t, path, strings.Repeat("needle\n", 1+i%3))
		tooltest.Aged(t, path, time.Duration(i*7919%300/10)*time.Minute) // many have the same age
	}
	all := run(t, opts, "grep", `{"pattern":"needle","limit":10000}`).Locations
	if len(all) != 600 { // without a limit
		t.Fatalf("%d matches", len(all))
	}
	for _, limit := range []int{1, 2, 17, 100, 599, 600} {
		r := run(t, opts, "grep", fmt.Sprintf(`{"pattern":"needle","limit":%d}`, limit))
		if diff := cmp.Diff(all[:limit], r.Locations); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
		if !r.Truncated {
			t.Errorf("limit %d: truncated %v", limit, r.Truncated)
		}
	}
}

func TestGrepStopsWhenContextIsCanceled(t *testing.T) {
	opts, _ := place(t, map[string]string{"f": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"grep", "glob"} {
		if _, err := find(t, opts, name).Run(ctx, tooltest.Call(`{"pattern":"x"}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	endless := &searcher{expr: mustExpr(t, "needle", true), limit: 10}
	if _, err := endless.file(ctx, zeros{}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// zeros is an endless text.
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
