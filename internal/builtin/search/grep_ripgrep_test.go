package search

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
)

// ripgrepTree contains files that search tools treat differently.
func ripgrepTree() map[string]string {
	files := map[string]string{
		"plain": "one needle\nNEEDLE two\nnothing\n", "open": "a\nneedle at the end", "empty": "", "break": "\n", "breaks": "\n\n\n",
		"crlf": "needle\r\nx\r\n\r\nneedle x\r\n", "bom": "\xef\xbb\xbfneedle\nx needle\n",
		"le": "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00\r\x00\n\x00x\x00\n\x00", "be": "\xfe\xff\x00n\x00e\x00e\x00d\x00l\x00e\x00\n",
		"nul": "needle\x00\nneedle\n", "latin": "caf\xe9 needle\n\xff\xfe\xfd needle\n", "unicode": "Straße Ünïcode needle\nстрока needle\n日本 K ſ\n",
		"long":  strings.Repeat("x", searchBuffer/2) + " needle " + strings.Repeat("y", searchBuffer/2) + "\nneedle\n" + strings.Repeat("ab", searchBuffer/2) + "\n",
		"words": "needle needles xneedle needle_1 needle-1 kneedle\nfoo.bar foo+bar\n", "spaces in name": "needle\n", "-dash": "needle\n", "é": "needle\n",
		"deep/a/b/c/d/e/f": "needle\n", "deep/a.go": "package needle\n", "deep/a.ts": "needle\n", "deep/b.tsx": "needle\n", ".hidden": "needle\n", ".dir/x": "needle\n",
		"context": "1\n2\nneedle\n4\n5\nneedle\n7\n8\n9\n10\n11\n12\nneedle\n14\n", "tabs": "\tneedle\t\n \t \n", "UPPER.GO": "needle\n",
		// Ignore files, nested, negated, and of several kinds.
		".gitignore": "*.log\n/out/\nsub/skip\n!keep.log\n# note\n", "a.log": "needle\n", "keep.log": "needle\n", "out/x": "needle\n", "in/out/x": "needle\n",
		"sub/skip": "needle\n", "sub/.gitignore": "!a.log\n*.tmp\n", "sub/a.log": "needle\n", "sub/b.tmp": "needle\n", "sub/c/d.tmp": "needle\n",
		".ignore": "*.ign\n!by-ignore.log\n", "a.ign": "needle\n", "by-ignore.log": "needle\n", "sub/b.ign": "needle\n", "sub/.ignore": "!b.ign\n",
		".rgignore": "*.rgi\n!special.ign\n", "x.rgi": "needle\n", "special.ign": "needle\n", "sub/.rgignore": "!x.rgi\n", "sub/x.rgi": "needle\n",
		".git/info/exclude": "excluded\n", ".git/HEAD": "ref: refs/heads/needle\n", ".git/config": "", "excluded": "needle\n", "sub/excluded": "needle\n", "globally": "needle\n",
	}
	for i := range 300 {
		files[fmt.Sprintf("many/%d.txt", i)] = strings.Repeat("hay\n", i) + "needle " + strconv.Itoa(i) + "\n"
	}
	return files
}

// foundByRipgrep runs ripgrep and returns each line as path, NUL, number, and
// ":" for a match or "-" for context.
func foundByRipgrep(t *testing.T, rg, dir, home string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(rg, append([]string{"--no-config", "--color=never", "-n", "-H", "-0", "--no-heading", "--hidden", "--glob-case-insensitive", "-g!.git", "--crlf", "--context-separator="}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 {
		t.Fatalf("rg %q: %v\n%s", args, err, errors.String())
	}
	var found []string
	for line := range strings.SplitSeq(string(out), "\n") {
		path, rest, ok := strings.Cut(line, "\x00")
		if i := strings.IndexAny(rest, ":-"); ok && i > 0 {
			found = append(found, strings.TrimPrefix(path, "./")+" "+rest[:i+1])
		}
	}
	slices.Sort(found)
	return found
}

var grepLine = regexp.MustCompile(`^L(\d+)([:-])`)

// foundByGrep runs the tool grep.
func foundByGrep(t *testing.T, opts workspace.Options, params string) []string {
	t.Helper()
	var found []string
	path := ""
	for line := range strings.SplitSeq(output(t, opts, "grep", params), "\n") {
		if name, ok := strings.CutPrefix(line, "File: "); ok {
			path = name
		} else if m := grepLine.FindStringSubmatch(line); m != nil {
			found = append(found, path+" "+m[1]+m[2])
		}
	}
	slices.Sort(found)
	return found
}

// TestGrepLikeRipgrep compares the tool with the installed ripgrep, and expects
// the same lines. It avoids expressions that differ: ripgrep's \d, \w and \b use
// Unicode, and its character classes do not match invalid UTF-8.
func TestGrepLikeRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("ripgrep is not installed")
	}
	opts, dir := place(t, ripgrepTree())
	tooltest.MakePipe(t, filepath.Join(dir, "pipe"))
	for link, target := range map[string]string{"link": "plain", "up": "..", "broken": "nowhere", "deep/loop": "../deep"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	opts.Home = t.TempDir()
	opts.ConfigHome = filepath.Join(opts.Home, ".config")
	tooltest.Put(t, filepath.Join(opts.ConfigHome, "git", "ignore"), "globally\n")
	tests := []struct {
		params string
		args   []string
	}{
		{`{"pattern":"needle"}`, []string{"-i", "needle"}},
		{`{"pattern":"needle","case_sensitive":true}`, []string{"needle"}},
		{`{"pattern":"needle","respect_ignore_files":false}`, []string{"-i", "--no-ignore", "needle"}},
		{`{"pattern":"needle","context":1}`, []string{"-i", "-C1", "needle"}},
		{`{"pattern":"needle","context":3}`, []string{"-i", "-C3", "needle"}},
		{`{"pattern":"^needle$"}`, []string{"-i", "^needle$"}},
		{`{"pattern":"^$"}`, []string{"^$"}},
		{`{"pattern":"x*","include":"{open,empty,break,breaks,crlf,bom}"}`, []string{"-g{open,empty,break,breaks,crlf,bom}", "x*"}},
		{`{"pattern":"\\bneedle\\b"}`, []string{"-i", `(?-u:\b)needle(?-u:\b)`}},
		{`{"pattern":"needle\\b.*\\bneedle"}`, []string{"-i", `needle(?-u:\b).*(?-u:\b)needle`}},
		{`{"pattern":"\\d+$"}`, []string{`[0-9]+$`}},
		{`{"pattern":"\\w\\s\\w"}`, []string{"-i", `[0-9A-Za-z_][\t\n\f\r ][0-9A-Za-z_]`}},
		{`{"pattern":"[[:space:]]needle"}`, []string{"-i", `[[:space:]]needle`}},
		{`{"pattern":"\\p{Cyrillic}+ needle"}`, []string{"-i", `\p{Cyrillic}+ needle`}},
		{`{"pattern":"\\p{Lu}","case_sensitive":true}`, []string{`\p{Lu}`}},
		{`{"pattern":"STRASSE|ünïcode"}`, []string{"-i", `STRASSE|ünïcode`}},
		{`{"pattern":"ünïCODE","case_sensitive":true}`, []string{`ünïCODE`}},
		{`{"pattern":"(?i)ünïCODE","case_sensitive":true}`, []string{`(?i)ünïCODE`}},
		{`{"pattern":"(?i:N)eedle","case_sensitive":true}`, []string{`(?i:N)eedle`}},
		{`{"pattern":"k"}`, []string{"-i", "k"}},
		{`{"pattern":"s\\b"}`, []string{"-i", `s(?-u:\b)`}},
		{`{"pattern":"foo\\.bar|foo\\+bar"}`, []string{"-i", `foo\.bar|foo\+bar`}},
		{`{"pattern":"x needle y"}`, []string{"-i", "x needle y"}},
		{`{"pattern":"(ab){20}$"}`, []string{"-i", "(ab){20}$"}},
		{`{"pattern":"needle [0-9]*7$","context":2}`, []string{"-i", "-C2", "needle [0-9]*7$"}},
		{`{"pattern":"absent"}`, []string{"-i", "absent"}},
		{`{"pattern":"a|needle|(x)","include":"*.go"}`, []string{"-i", "-g*.go", "a|needle|(x)"}},
		{`{"pattern":"needle","include":"*.{ts,tsx}"}`, []string{"-i", "-g*.{ts,tsx}", "needle"}},
		{`{"pattern":"needle","include":"deep/**"}`, []string{"-i", "-gdeep/**", "needle"}},
		{`{"pattern":"needle","include":"deep/**/f"}`, []string{"-i", "-gdeep/**/f", "needle"}},
		{`{"pattern":"needle","include":"**/*.t[sx]*"}`, []string{"-i", "-g**/*.t[sx]*", "needle"}},
		{`{"pattern":"needle","include":"many/[!12]?.txt"}`, []string{"-i", "-gmany/[!12]?.txt", "needle"}},
		{`{"pattern":"needle","path":"deep"}`, []string{"-i", "needle", "deep"}},
		{`{"pattern":"needle","path":"in"}`, []string{"-i", "needle", "in"}},
		{`{"pattern":"needle","path":"crlf","context":1}`, []string{"-i", "-C1", "needle", "crlf"}},
	}
	for _, tt := range tests {
		params := tt.params[:len(tt.params)-1] + `,"limit":10000}`
		want := foundByRipgrep(t, rg, dir, opts.Home, tt.args...)
		if diff := cmp.Diff(want, foundByGrep(t, opts, params)); diff != "" {
			t.Errorf("%s (-rg %q +ours)\n%s", params, tt.args, diff)
		}
	}
}

// TestGrepLikeRipgrepAtRandom compares the two on random texts.
func TestGrepLikeRipgrepAtRandom(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("ripgrep is not installed")
	}
	r := rand.New(rand.NewPCG(9, 10))
	words := []string{"a", "Needle", "needle", "b", "\n", "\n", "\n", "\r\n", "kiss", "KISS", " ", "é", "É", "foo", "bar1", "\t", "ſ", "_"}
	files := map[string]string{}
	for i := range 200 {
		var b strings.Builder
		for range r.IntN(80) {
			b.WriteString(words[r.IntN(len(words))])
		}
		files[strconv.Itoa(i)] = b.String()
	}
	opts, dir := place(t, files)
	opts.Home, opts.ConfigHome = t.TempDir(), t.TempDir()
	for _, pattern := range []string{"needle", "kiss", "[ab]+[ \t]", "^a", "1$", "n..dle", "é", "(foo|bar1)+b", "[^a-z]k", "x?", "^[^a]*$", "[[:alpha:]]{5}", "é.?n"} {
		for around := range 3 {
			want := foundByRipgrep(t, rg, dir, opts.Home, "-i", "-C"+strconv.Itoa(around), "-e", pattern)
			params := fmt.Sprintf(`{"pattern":%q,"context":%d,"limit":10000}`, pattern, around)
			if diff := cmp.Diff(want, foundByGrep(t, opts, params)); diff != "" {
				t.Errorf("%s (-rg +ours)\n%s", params, diff)
			}
		}
	}
}
