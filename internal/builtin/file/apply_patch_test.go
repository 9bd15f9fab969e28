package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/process"
)

const five = "one\ntwo\nthree\nfour\nfive\n"

// files reads all files in a folder.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out[filepath.ToSlash(rel)] = tooltest.TextIn(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func patchParam(t testing.TB, patch string) string {
	return tooltest.JSON(t, map[string]string{"patch": patch})
}

func TestApplyPatch(t *testing.T) {
	type tree = map[string]string
	tests := []struct {
		name, patch   string
		before, after tree
		says          []string
	}{
		{
			"git format: change, create, delete and rename together",
			"From 0123 Mon Sep 17 00:00:00 2001\nSubject: all\n---\n f | 1 +\n\n" +
				"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ func x\n one\n-two\n+2\n three\n" +
				"diff --git a/sub/new b/sub/new\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/sub/new\n@@ -0,0 +1 @@\n+hello\n" +
				"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n" +
				"diff --git a/from b/to/here\nsimilarity index 80%\nrename from from\nrename to to/here\n--- a/from\n+++ b/to/here\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n" +
				"-- \n2.39.2\n",
			tree{"f": five, "gone": "bye\n", "from": "a\nb\n", "other": "x"},
			tree{"f": "one\n2\nthree\nfour\nfive\n", "sub/new": "hello\n", "to/here": "a\nB\n", "other": "x"},
			[]string{`changed "f" (+1 -1)`, `created "sub/new" (+1 -0)`, `deleted "gone" (+0 -1)`, `renamed "from" to "to/here" (+1 -1)`},
		},
		{
			"diff -u format, with times and without prefixes", "--- f\t2024-01-01 00:00:00\n+++ f\t2024-01-02 00:00:00\n@@ -5 +5,2 @@\n five\n+six\n",
			tree{"f": five}, tree{"f": five + "six\n"}, []string{"(+1 -0)"},
		},
		{
			"git's prefixes with diff.mnemonicPrefix",
			"diff --git i/f w/f\nindex 1..2 100644\n--- i/f\n+++ w/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" +
				"diff --git c/w/new i/w/new\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ i/w/new\n@@ -0,0 +1 @@\n+hello\n" +
				"diff --git c/gone w/gone\ndeleted file mode 100644\n--- c/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n" +
				"diff --git i/from w/to\nsimilarity index 80%\nrename from from\nrename to to\n--- i/from\n+++ w/to\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n" +
				"diff --git i/run w/run\nold mode 100644\nnew mode 100755\n" +
				"diff --git b/back a/back\n--- b/back\n+++ a/back\n@@ -1 +1 @@\n-1\n+2\n",
			tree{"f": five, "gone": "bye\n", "from": "a\nb\n", "run": "x\n", "back": "1\n"},
			tree{"f": "one\n2\nthree\nfour\nfive\n", "w/new": "hello\n", "to": "a\nB\n", "run": "x\n", "back": "2\n"},
			[]string{`changed "f" (+1 -1)`, `created "w/new"`, `deleted "gone"`, `renamed "from" to "to"`, `changed the mode of "run" to 755`},
		},
		{
			"folders named like git's prefixes, without prefixes",
			"diff --git w/f w/f\n--- w/f\n+++ w/f\n@@ -1 +1 @@\n-1\n+2\n--- i/f\n+++ i/f\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ w/new\n@@ -0,0 +1 @@\n+x\n",
			tree{"w/f": "1\n", "i/f": "1\n"}, tree{"w/f": "2\n", "i/f": "2\n", "w/new": "x\n"}, nil,
		},
		{
			"a file that moves between such folders, without prefixes",
			"diff --git c/x i/x\nsimilarity index 50%\nrename from c/x\nrename to i/x\n--- c/x\n+++ i/x\n@@ -1 +1 @@\n-1\n+2\n",
			tree{"c/x": "1\n"}, tree{"i/x": "2\n"}, []string{`renamed "c/x" to "i/x"`},
		},
		{
			"a folder a with git's prefixes, renamed to b",
			"diff --git a/a/x b/b/x\nsimilarity index 50%\nrename from a/x\nrename to b/x\n--- a/a/x\n+++ b/b/x\n@@ -1 +1 @@\n-1\n+2\n",
			tree{"a/x": "1\n"}, tree{"b/x": "2\n"}, []string{`renamed "a/x" to "b/x"`},
		},
		{
			"diff -u with a copy that is kept, and with one that is gone",
			"--- f.orig\n+++ f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- g~\n+++ g\n@@ -1 +1 @@\n-1\n+2\n",
			tree{"f": five, "f.orig": five, "g": "1\n"}, tree{"f": "one\n2\nthree\nfour\nfive\n", "f.orig": five, "g": "2\n"},
			[]string{`changed "f" (+1 -1)`, `changed "g" (+1 -1)`},
		},
		{
			"no line break at the end", "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n",
			tree{"f": "a"}, tree{"f": "a\nb"}, nil,
		},
		{
			"a removed line that looks like a name", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- a/x\n+++ b/x\n y\n",
			tree{"f": "-- a/x\ny\n"}, tree{"f": "++ b/x\ny\n"}, nil,
		},
		{
			"a wrong line number", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-three\n+3\n four\n",
			tree{"f": five}, tree{"f": "one\ntwo\n3\nfour\nfive\n"}, []string{`hunk 1 of "f" was applied at line 3, where its lines match, instead of 1`},
		},
		{
			"later hunks are shifted like an earlier one", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+B\n@@ -3 +3 @@\n-x\n+X\n",
			tree{"f": "a\nb\nx\nx\nx\n"}, tree{"f": "a\nB\nx\nX\nx\n"}, nil,
		},
		{
			"CRLF file, LF patch", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
			tree{"f": "a\r\nb\r\nc\r\n"}, tree{"f": "a\r\nB\r\nc\r\n"}, nil,
		},
		{
			"LF file, CRLF patch", "--- a/f\r\n+++ b/f\r\n@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+B\r\n end\r\n\\ No newline at end of file\r\n",
			tree{"f": "a\nb\nend"}, tree{"f": "a\nB\nend"}, nil,
		},
		{
			"CRLF patch of line breaks", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n",
			tree{"f": "a\r\nb\r\n"}, tree{"f": "a\r\nb\n"}, nil,
		},
		{
			"an empty context line without its space", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n",
			tree{"f": "a\n\nb\n"}, tree{"f": "a\n\nB\n"}, nil,
		},
		{
			"quoted names", "--- \"a/t\\tb\\303\\251\"\n+++ \"b/t\\tb\\303\\251\"\n@@ -1 +1 @@\n-a\n+b\n",
			tree{"t\tbé": "a\n"}, tree{"t\tbé": "b\n"}, nil,
		},
		{
			"the same file twice", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\n",
			tree{"f": "a\n"}, tree{"f": "c\n"}, []string{"(+1 -1)"},
		},
		{
			"renamed, and the old name created again",
			"diff --git a/f b/g\nrename from f\nrename to g\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n",
			tree{"f": "old\n"}, tree{"f": "new\n", "g": "old\n"}, []string{`copied "f" to "g"`, `changed "f" (+1 -1)`},
		},
		{
			"copied", "diff --git a/f b/g\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
			tree{"f": "a\n"}, tree{"f": "a\n", "g": "b\n"}, []string{`copied "f" to "g" (+1 -1)`},
		},
		{
			"an empty file created", "diff --git a/e b/e\nnew file mode 100644\nindex 0..e\n", tree{"f": "a\n"}, tree{"f": "a\n", "e": ""}, []string{`created "e"`},
		},
		{
			"an empty file deleted", "diff --git a/e b/e\ndeleted file mode 100644\n", tree{"f": "a\n", "e": ""}, tree{"f": "a\n"}, []string{`deleted "e"`},
		},
		{
			"no line numbers", "--- a/f\n+++ b/f\n@@\n two\n-three\n+3\n four\n",
			tree{"f": five}, tree{"f": "one\ntwo\n3\nfour\nfive\n"}, []string{`hunk 1 of "f", which has no line numbers, was applied at line 2, where its lines match`},
		},
		{
			"words in place of numbers, twice, and a blank line before the next file",
			"--- a/f\n+++ b/f\n@@ func one() @@\n-one\n+1\n@@ ... @@\n five\n+six\n\n--- a/g\n+++ b/g\n@@ @@\n-x\n+y\n",
			tree{"f": five, "g": "x\n"}, tree{"f": "1\ntwo\nthree\nfour\nfive\nsix\n", "g": "y\n"}, nil,
		},
		{
			"counts too large", "--- a/f\n+++ b/f\n@@ -2,9 +2,9 @@\n two\n-three\n+3\n four\n",
			tree{"f": five}, tree{"f": "one\ntwo\n3\nfour\nfive\n"}, []string{`the counts between the @@ of hunk 1 of "f" are wrong; it was applied at line 2`},
		},
		{
			"counts too small, in the first of two hunks", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n one\n-two\n+2\n three\n@@ -4,2 +4,2 @@\n four\n-five\n+5\n",
			tree{"f": five}, tree{"f": "one\n2\nthree\nfour\n5\n"}, nil,
		},
		{
			"a new file with a wrong count", "--- /dev/null\n+++ b/g\n@@ -0,0 +1,5 @@\n+a\n+b\n",
			tree{}, tree{"g": "a\nb\n"}, nil,
		},
		{
			"a deleted file without numbers", "--- a/f\n+++ /dev/null\n@@\n-a\n-b\n",
			tree{"f": "a\nb\n"}, tree{}, nil,
		},
		{
			"no line break at the end, and no numbers", "--- a/f\n+++ b/f\n@@\n-a\n\\ No newline at end of file\n+a\n+b\n",
			tree{"f": "a"}, tree{"f": "a\nb\n"}, nil,
		},
		{
			"context with plain quotes", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n it's\n-\"a\"\n+b\n",
			tree{"f": "it\u2019s\n\u201ca\u201d\n"}, tree{"f": "it\u2019s\nb\n"}, nil,
		},
		{
			"another encoding", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-é\n+è\n", tree{"f": "\xe9\n"}, tree{"f": "\xe8\n"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, dir := place(t, tt.before)
			pre, err := find(t, opts, "apply_patch").Preview(t.Context(), tooltest.Call(patchParam(t, tt.patch)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.before, files(t, dir)); diff != "" {
				t.Fatalf("the preview changed files: %s", diff)
			}
			r := run(t, opts, "apply_patch", patchParam(t, tt.patch))
			if diff := cmp.Diff(tt.after, files(t, dir)); diff != "" || r.IsError {
				t.Fatal(r.Text(), diff)
			}
			for _, want := range tt.says {
				if !strings.Contains(r.Text(), want) {
					t.Errorf("%q does not say %q", r.Text(), want)
				}
			}
			if r.Display.Diff.FileDiff != pre.Diff {
				t.Errorf("shown:\n%s\ndone:\n%s", pre.Diff, r.Display.Diff.FileDiff)
			}
			// The preview is itself a patch with the same outcome.
			again, dir := place(t, tt.before)
			if !strings.Contains(pre.Diff, "@@") {
				return
			}
			if r := run(t, again, "apply_patch", patchParam(t, pre.Diff)); r.IsError {
				t.Errorf("%s\n%s", r.Text(), pre.Diff)
			} else if diff := cmp.Diff(tt.after, files(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A patch that does not apply in one place changes nothing.
func TestApplyPatchRefusals(t *testing.T) {
	const good = "--- a/other\n+++ b/other\n@@ -1 +1 @@\n-x\n+y\n"
	tests := []struct {
		name, patch string
		want        string
	}{
		{"other text", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-deux\n+2\n", `hunk 1 of "f" (line 8 of the patch) does not apply: expected line 2 to be "deux", found "two"`},
		{"past the end", "--- a/f\n+++ b/f\n@@ -5,2 +5,2 @@\n five\n-six\n+6\n", `expected line 6 to be "six", but the file ends at line 5`},
		{"the second hunk", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n@@ -3 +3 @@\n-tree\n+3\n", `hunk 2 of "f"`},
		{"hunks out of order", "--- a/f\n+++ b/f\n@@ -4 +4 @@\n-four\n+4\n@@ -1 +1 @@\n-one\n+1\n", `hunk 2 of "f" (line 11 of the patch) does not apply: it overlaps the previous hunk`},
		{"several places", "--- a/rep\n+++ b/rep\n@@ -2 +2 @@\n-x\n+y\n", `in several other places (lines 1, 3, 5)`},
		{"no context", "--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+new\n", "no context line"},
		{"white space", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one \n+1\n", `expected line 1 to be "one ", found "one"`},
		{"a missing line break at the end", "--- a/nonl\n+++ b/nonl\n@@ -1 +1 @@\n-end\n+END\n", "line 1, \"end\", ends the file without a line break; write `\\ No newline at end of file` in a line of its own after it"},
		{"a missing line break at the end, and no numbers", "--- a/nonl2\n+++ b/nonl2\n@@\n x\n-end\n+END\n", `line 2, "end", ends the file without a line break`},
		{"a line break that the patch says is missing", "--- a/f\n+++ b/f\n@@ -5 +5 @@\n-five\n\\ No newline at end of file\n+5\n", `line 5, "five", has a line break in the file; leave out`},
		{"other line breaks", "--- a/crlf\n+++ b/crlf\n@@ -1 +1,2 @@\n-a\n+b\r\n+c\n", `line break differs: the file has "\r\n", the patch "\n"`},
		{"several places, and no numbers", "--- a/rep\n+++ b/rep\n@@\n-x\n+y\n", `without correct numbers between the @@ its place must be unique, but its lines match in several (lines 1, 3, 5)`},
		{"several places, and wrong counts", "--- a/rep\n+++ b/rep\n@@ -1,7 +1,7 @@\n-x\n+y\n", `its place must be unique`},
		{"a line that only looks the same, among others", "--- a/quote\n+++ b/quote\n@@ -1,2 +1,2 @@\n it's\n-ab\n+c\n", `expected line 2 to be "ab", found "a"`},
		{"no numbers and no context", "--- a/f\n+++ b/f\n@@\n+new\n", "no context line"},
		{"no such file", "--- a/fy\n+++ b/fy\n@@ -1 +1 @@\n-one\n+1\n", `"fy" does not exist`},
		{"there already", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+one\n", `the patch creates "f", which already exists`},
		{"renamed onto a file", "diff --git a/f b/rep\nrename from f\nrename to rep\n", `the patch creates "rep", which already exists`},
		{"deleted only in part", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", `deletes "f" but leaves 4 lines`},
		{"deleted without its text", "diff --git a/f b/f\ndeleted file mode 100644\n", `deletes "f" but leaves 5 lines`},
		{"a binary file", "--- a/bin\n+++ b/bin\n@@ -1 +1 @@\n-one\n+1\n", `"bin" is not a text file`},
		{"a directory", "--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-one\n+1\n", `"sub" is a directory`},
		{"a file as a folder", "--- /dev/null\n+++ b/f/x\n@@ -0,0 +1 @@\n+one\n", "a part of the path is a file"},
		{"a new file as a folder", "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+one\n--- /dev/null\n+++ b/n/x\n@@ -0,0 +1 @@\n+one\n", `a part of the path`},
		{"a character that the encoding lacks", "--- a/latin\n+++ b/latin\n@@ -1 +1 @@\n-é\n+→\n", "U+2192"},
		{"\"No newline at end of file\" in the middle", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n", "not the last"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, dir := place(t, map[string]string{
				"f": five, "rep": "x\n-\nx\n-\nx\n", "nonl": "end", "nonl2": "x\nend", "crlf": "a\r\n", "quote": "it\u2019s\na\n", "other": "x\n", "bin": "a\x00", "sub/x": "", "latin": "\xe9\n",
			})
			before := files(t, dir)
			r := run(t, opts, "apply_patch", patchParam(t, good+tt.patch))
			if !r.IsError || !strings.Contains(r.Text(), tt.want) {
				t.Errorf("%q does not say %q", r.Text(), tt.want)
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("files were changed: %s", diff)
			}
			if left, _ := os.ReadDir(dir); len(left) != len(before) {
				t.Errorf("folders were left behind: %v", left)
			}
		})
	}
}

// If a step fails while the files are renamed, the files that were already
// renamed are restored.
func TestApplyPatchUndoesPartialWrite(t *testing.T) {
	opts, dir := place(t, map[string]string{"a": "x\n", "b": "x\n", "c": "x\n", "gone": "x\n"})
	if err := os.Chmod(filepath.Join(dir, "a"), 0o640); err != nil {
		t.Fatal(err)
	}
	w := tooltest.Open(t, workspace.NewEditor(opts))
	list, err := parsePatch("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/deep/new\n@@ -0,0 +1 @@\n+n\n" +
		"--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := newPlan(w, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil { // after the plan, so that the last step fails
		t.Fatal(err)
	}
	if err := plan.write(); err == nil || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("wrote all: %v", err)
	}
	want := map[string]string{"a": "x\n", "b": "x\n", "c": "x\n"}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "deep")); err == nil {
		t.Error("a folder was left behind")
	}
	if info, err := os.Stat(filepath.Join(dir, "a")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestApplyPatchModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // this system has no file modes
	}
	opts, dir := place(t, map[string]string{"on": "x\n", "off": "x\n", "moved": "x\n"})
	for name, mode := range map[string]os.FileMode{"on": 0o640, "off": 0o755, "moved": 0o750} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, opts, "apply_patch", patchParam(t, "diff --git a/on b/on\nold mode 100644\nnew mode 100755\n"+
		"diff --git a/off b/off\nold mode 100755\nnew mode 100644\n"+
		"diff --git a/moved b/here\nrename from moved\nrename to here\n"+
		"diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+#!/bin/sh\n"))
	if r.IsError || !strings.Contains(r.Text(), `changed the mode of "on" to 750`) {
		t.Fatal(r.Text())
	}
	for name, want := range map[string]os.FileMode{"on": 0o750, "off": 0o644, "here": 0o750, "new": 0o755} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestParsePatchErrors(t *testing.T) {
	for patch, want := range map[string]string{
		"":                                      "no unified diff",
		"just text\n":                           "no unified diff",
		"@@ -1 +1 @@\n-a\n+b\n":                 "line 1 of the patch: a hunk before any file name",
		"*** Begin Patch\n":                     "format of git diff",
		"--- a/f\n+++ b/f\n":                    "no @@ header",
		"--- a/f\n+++ b/f\n@@\n":                "hunk 1 has no lines",
		"--- a/f\n+++ b/f\n@@\n a\n-b\nc\n-d\n": `line 6 of the patch: hunk 1: "c" begins with neither a space nor + nor -`,
		"--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\nc\n":              `line 7 of the patch: hunk 1: "c" begins with neither`,
		"--- a/f\n+++ b/f\n@@\n a\n-b\n*** Update File: x\n+c\n":          "begins with neither",
		"--- a/f\n+++ b/f\n@@ -1 +1 @@\n\\ No newline at end of file\n":   "must follow a line",
		"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n":             "both names",
		"--- \"a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n":                       "not quoted properly",
		"--- \"a/\\9\"\n+++ \n@@ -1 +1 @@\n-a\n+b\n":                      "name of the file is missing",
		"diff --git a/f b/f\nnew file mode 120000\n":                      "cannot create or change links",
		"diff --git a/f b/f\nnew file mode 160000\n":                      "is not the mode of a regular file",
		"diff --git a/f b/f\nBinary files a/f and b/f differ\n":           "binary changes",
		"diff --git a/f b/f\nGIT binary patch\nliteral 3\n":               "binary changes",
		"diff --git a/f b/g\n--- a/f\n+++ b/h\n@@ -1 +1 @@\n-a\n+b\n":     "",
		"diff --git a/f b/f\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n":     "names in the header differ",
		"diff --git a/f b/g c\nindex 1..2\n":                              "cannot be separated",
		"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\n\n*** Update File: x\n": "format of git diff",
	} {
		_, err := parsePatch(patch)
		if want == "" && err == nil {
			continue
		}
		if _, ok := errors.AsType[*patchError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", patch, err, want)
		}
	}
}

func TestApplyPatchSubject(t *testing.T) {
	opts, _ := place(t, map[string]string{".git/config": "a\n"})
	s, err := find(t, opts, "apply_patch").Subject(tooltest.Call(patchParam(t,
		"diff --git a/.git/config b/x\nrename from .git/config\nrename to x\n--- /dev/null\n+++ b/.envrc\n@@ -0,0 +1 @@\n+x\n")))
	if diff := cmp.Diff([]string{".git/config", "x", ".envrc"}, s.Paths); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// A patch that git makes of real changes applies, with the same outcome as in
// git.
func TestApplyPatchMadeByGit(t *testing.T) {
	opts, dir := place(t, nil)
	script := `set -e
git init -q . && git config user.email a@b && git config user.name n && git config core.autocrlf false
seq 1 60 > numbers; printf 'a\r\nb\r\n' > crlf; printf 'no end' > noend; seq 1 9 > old; echo x > 'sp ace'; echo q > 'q"u	é'; : > empty; echo x > gone; seq 1 20 > copied
git add -A && git commit -qm one
sed -i 's/^1$/first/; s/^30$/thirty/; /^45$/d' numbers; sed -i '1s/a/A/' crlf; printf 'no end\nnow' > noend; git mv old 'dir ü' 2>/dev/null; sed -i 's/^5$/five/' 'dir ü'; echo y >> 'sp ace'; echo y >> 'q"u	é'; rm empty gone; mkdir -p new/sub; echo n > new/sub/f; : > new/empty
cp copied copy; echo more >> copy; echo more >> copied; chmod +x numbers
git add -A; git diff --cached -M -C --find-copies-harder; git stash -q 1>&2
`
	out, err := process.Run(t.Context(), process.Spec{Argv: []string{"/bin/sh", "-c", script}, Dir: dir,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}})
	if err != nil || out.ExitCode != 0 {
		t.Fatalf("%v %s", err, out.Stderr)
	}
	if r := run(t, opts, "apply_patch", patchParam(t, string(out.Stdout))); r.IsError {
		t.Fatalf("%s\n%s", r.Text(), out.Stdout)
	}
	out, err = process.Run(t.Context(), process.Spec{Argv: []string{"/bin/sh", "-c", "git add -A && git diff --cached --stat stash@{0}"}, Dir: dir,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}})
	if err != nil || len(out.Stdout) > 0 || out.ExitCode != 0 {
		t.Errorf("%v: differs from git:\n%s%s", err, out.Stdout, out.Stderr)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", five)
	f.Add("diff --git \"a/\\303\" b/g\nrename from f\nrename to g\ncopy from x\nnew file mode 100755\n", "")
	f.Add("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", "")
	f.Add("--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", "a\r\nb\r\n")
	f.Fuzz(func(t *testing.T, patch, text string) {
		list, err := parsePatch(patch)
		if err != nil {
			if _, ok := errors.AsType[*patchError](err); !ok {
				t.Errorf("an error without a line: %v", err)
			}
			return
		}
		for _, p := range list {
			out, _, err := patchText("f", text, p.hunks, new(int))
			if err != nil {
				continue
			}
			added, removed := 0, 0 // by the body, because the numbers of a header may be wrong
			for _, h := range p.hunks {
				for _, l := range h.body {
					switch l.sign {
					case '+':
						added++
					case '-':
						removed++
					}
				}
			}
			if got := len(splitLines(out)) - len(splitLines(text)); got != added-removed {
				t.Errorf("the text grew by %d lines, the patch by %d", got, added-removed)
			}
		}
	})
}

// In a file whose lines are the same, looking for others takes the product of both numbers.
func TestSearchesAreBounded(t *testing.T) {
	same := strings.Repeat("a\n", 10_000)
	hunk := "@@ -1 +1 @@\n" + strings.Repeat(" a\n", 5_000) + "-b\n"
	list, err := parsePatch("--- a/f\n+++ b/f\n" + hunk)
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := patchText("f", same+"b\n", list[0].hunks, new(int)); err == nil ||
		!strings.Contains(err.Error(), "would take too long; correct the numbers") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if hint := nearest(same+"b\n", strings.Repeat("a \n", 5_000)+"b\n"); strings.Contains(hint, "white space") {
		t.Errorf("a long search went on: %s", hint)
	}
}

func BenchmarkPatch(b *testing.B) {
	old := strings.Repeat("a line of text\nanother line\n", 50_000)
	new := strings.Replace(old, "another line\n", "another line\nand one more\n", 1000)
	patch := diffLines(old, new).unified("a/f", "b/f")
	for b.Loop() {
		list, err := parsePatch(patch)
		if err != nil {
			b.Fatal(err)
		}
		compared := 0
		if out, _, err := patchText("f", old, list[0].hunks, &compared); err != nil || out != new {
			b.Fatal(err)
		}
	}
}

func TestPatchOfTooManyFilesIsRefused(t *testing.T) {
	var b strings.Builder
	for i := range maxPatchFiles + 1 {
		fmt.Fprintf(&b, "--- /dev/null\n+++ b/f%d\n@@ -0,0 +1 @@\n+x\n", i)
	}
	if _, err := parsePatch(b.String()); err == nil || !strings.Contains(err.Error(), "more than 5000 files") {
		t.Errorf("err = %v", err)
	}
}

func TestPatchOfMoreThanTenMegabytes(t *testing.T) {
	opts, _ := place(t, nil)
	patch := "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+" + strings.Repeat("x", 10<<20)
	err := find(t, opts, "apply_patch").Check(t.Context(), tooltest.Call(patchParam(t, patch)))
	if err == nil || !strings.Contains(err.Error(), "/patch: is larger than 10.0 MiB") {
		t.Errorf("%.300v", err)
	}
}
