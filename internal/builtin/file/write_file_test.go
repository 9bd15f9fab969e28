package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestWriteFileContent(t *testing.T) {
	tests := []struct {
		name, before, content, after, says string
	}{
		{"replaced", "old\n", "new\n", "new\n", `Replaced the content of "f" (1 line, +1 -1).`},
		{"the final line break is added", "old\n", "a\nb", "a\nb\n", `Replaced the content of "f" (2 lines, +2 -1).`},
		{"of the same kind as in the text", "old\n", "a\r\nb", "a\r\nb\r\n", "Replaced"},
		{"to nothing", "old\n", "", "", `Replaced the content of "f" (0 lines, +0 -1).`},
		{"nothing else is altered", "old\n", "  \n\t x \r y \n\n\n", "  \n\t x \r y \n\n\n", "Replaced"},
		{"the same content", "same\n", "same", "same\n", `"f" already has this content; nothing was changed.`},
		{"a byte order mark stays", textfile.BOM + "a\n", "b\n", textfile.BOM + "b\n", `Replaced the content of "f" (1 line, +1 -1).`},
		{"also if the content has one", textfile.BOM + "a\n", textfile.BOM + "b\n", textfile.BOM + "b\n", "Replaced"},
		{"CRLF stays", "a\r\nb\r\n", "a\nc", "a\r\nc\r\n", `Replaced the content of "f" (2 lines, +1 -1). Its line breaks stay CRLF.`},
		{"as does a mark with it", textfile.BOM + "a\r\n", "a\nb\n", textfile.BOM + "a\r\nb\r\n", `Replaced the content of "f" (2 lines, +1 -0). Its line breaks stay CRLF.`},
		{"the same with CRLF", "a\r\n", "a\n", "a\r\n", `"f" already has this content; nothing was changed.`},
		{"where most breaks are LF", "a\nb\nc\r\n", "x\ny\n", "x\ny\n", `Replaced the content of "f" (2 lines, +2 -3).`},
		{"with breaks of its own", "a\r\nb\r\n", "x\r\ny\n", "x\r\ny\n", `Replaced the content of "f" (2 lines, +2 -2).`},
		{"over UTF-16", "\xff\xfea\x00", "b\n", "b\n", `Replaced the content of "f" (1 line, +1 -1). Its encoding was another one and is UTF-8 now.`},
		{"over a binary file", "\x00\x01", "a\n", "a\n", "Replaced"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, dir := place(t, map[string]string{"f": tt.before})
			r := run(t, opts, "write_file", tooltest.JSON(t, map[string]string{"file_path": "f", "content": tt.content}))
			if r.IsError || !strings.HasPrefix(r.Text(), tt.says) {
				t.Errorf("said %q, want %q", r.Text(), tt.says)
			}
			if diff := cmp.Diff(tt.after, tooltest.TextIn(t, filepath.Join(dir, "f"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteFileCreates(t *testing.T) {
	opts, dir := place(t, nil)
	p := `{"file_path":"a/b c/f.txt","content":"one\ntwo"}`
	pre, err := find(t, opts, "write_file").Preview(t.Context(), tooltest.Call(p))
	if err != nil {
		t.Fatal(err)
	}
	want := registry.Preview{
		Kind: registry.PreviewEdit, Title: "Create a/b c/f.txt", FileName: "a/b c/f.txt", NewContent: "one\ntwo\n",
		Diff: "--- /dev/null\n+++ b/a/b c/f.txt\t\n@@ -0,0 +1,2 @@\n+one\n+two\n",
	}
	pre.Basis = ""
	if diff := cmp.Diff(want, pre); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("the preview created a folder")
	}
	r := run(t, opts, "write_file", p)
	if want := `Created "a/b c/f.txt" (2 lines, +2 -0).`; r.Text() != want {
		t.Errorf("said %q, want %q", r.Text(), want)
	}
	if diff := cmp.Diff([]registry.Location{{Path: "a/b c/f.txt", Line: 1}}, r.Locations); diff != "" {
		t.Error(diff)
	}
	if got := tooltest.TextIn(t, filepath.Join(dir, "a/b c/f.txt")); got != "one\ntwo\n" {
		t.Errorf("wrote %q", got)
	}
}

func TestWriteFilePreviewShowsLostContent(t *testing.T) {
	opts, _ := place(t, map[string]string{"bin": "a\x00", "utf16": "\xff\xfea\x00\n\x00", "odd": "\xff\xfea"})
	for name, want := range map[string]string{
		"bin":   "is not a text file",
		"utf16": "UTF-16",
		"odd":   "contains invalid characters",
	} {
		pre, err := find(t, opts, "write_file").Preview(t.Context(), tooltest.Call(tooltest.JSON(t, map[string]string{"file_path": name, "content": "a\n"})))
		if err != nil || !strings.Contains(pre.Diff, want) {
			t.Errorf("%s: %q, %v does not show %q", name, pre.Diff, err, want)
		}
	}
}

func TestWriteFileKeepsMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // this system has no file modes
	}
	opts, dir := place(t, map[string]string{"run.sh": "old\n", "real": "old\n"})
	for name, mode := range map[string]os.FileMode{"run.sh": 0o751, "real": 0o640} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	run(t, opts, "write_file", `{"file_path":"run.sh","content":"new\n"}`)
	run(t, opts, "edit", `{"file_path":"link","old_string":"old","new_string":"new"}`)
	for name, mode := range map[string]os.FileMode{"run.sh": 0o751, "real": 0o640} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != mode || tooltest.TextIn(t, filepath.Join(dir, name)) != "new\n" {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "real" {
		t.Errorf("the link was replaced: %q %v", target, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 3 {
		t.Errorf("temporary files were left behind: %v %v", names, err)
	}
}

// No tool can write outside the workspace or to toolreg's own files.
func TestWritingStaysInside(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"inside/f": "x\n", ".toolreg/settings.yaml": "a: 1\n", "state/approvals.json": "{}\n",
	})
	outside := t.TempDir()
	tooltest.Put(t, filepath.Join(outside, "secret"), "x\n")
	tooltest.Put(t, dir+"-evil/f", "x\n")
	t.Cleanup(func() { os.RemoveAll(dir + "-evil") })
	for link, target := range map[string]string{
		"out": outside, "file": filepath.Join(outside, "secret"), "up": "..", "loop": "loop", "own": ".toolreg",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	opts.Protected = []string{filepath.Join(dir, ".toolreg"), filepath.Join(dir, "state")}
	before := treeOf(t, dir) + treeOf(t, outside) + treeOf(t, dir+"-evil")
	denied := []string{
		".toolreg/settings.yaml", ".toolreg/new.yaml", "own/settings.yaml", "./inside/../.toolreg/settings.yaml",
		filepath.Join(dir, ".toolreg", "settings.yaml"), ".TOOLREG/settings.yaml", "state/approvals.json", "state/new/f",
	}
	invalid := []string{
		"../f", "inside/../../f", "/etc/passwd", filepath.Join(outside, "secret"), dir + "-evil/f", "out/secret", "out/new",
		"file", "up/f", "up/" + filepath.Base(outside) + "/secret", "loop", "loop/x", "~/f", "file:///etc/passwd", "a\x00b", "",
	}
	for _, name := range append(denied, invalid...) {
		isDenied := slices.Contains(denied, name)
		patch := fmt.Sprintf("--- %s\n+++ %s\n@@ -1 +1 @@\n-x\n+y\n", quoteName(name), quoteName(name))
		calls := map[string]any{
			"write_file":  map[string]string{"file_path": name, "content": "y\n"},
			"edit":        map[string]string{"file_path": name, "old_string": "x", "new_string": "y"},
			"apply_patch": map[string]string{"patch": patch},
		}
		for tool, p := range calls {
			c := tooltest.Call(tooltest.JSON(t, p))
			made := find(t, opts, tool)
			err := made.Check(t.Context(), c)
			_, isInvalid := errors.AsType[*registry.ArgsError](err)
			if isDenied && !errors.Is(err, registry.ErrDenied) || !isDenied && !isInvalid {
				t.Errorf("%s %q: check says %v", tool, name, err)
			}
			if _, err := made.Preview(t.Context(), c); err == nil {
				t.Errorf("%s %q: was previewed", tool, name)
			}
			if r, err := made.Run(t.Context(), c); err == nil && !r.IsError {
				t.Errorf("%s %q: ran", tool, name)
			}
		}
	}
	if diff := cmp.Diff(before, treeOf(t, dir)+treeOf(t, outside)+treeOf(t, dir+"-evil")); diff != "" {
		t.Errorf("files were written: %s", diff)
	}
}

// treeOf returns all files below a folder with their content.
func treeOf(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			fmt.Fprintf(&b, "%s: %q\n", path, tooltest.TextIn(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The subject of a call names guarded paths, however the path is spelled.
func TestSubjectNamesGuardedPaths(t *testing.T) {
	opts, dir := place(t, map[string]string{".git/hooks/x": "", "sub/f": ""})
	if err := os.Symlink(".git/hooks", filepath.Join(dir, "h")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		".git/hooks/pre-commit": true, "h/pre-commit": true, "sub/../.GIT/config": true, ".envrc": true, "sub/f": false,
	} {
		p := tooltest.JSON(t, map[string]string{"file_path": name, "content": "x"})
		s, err := find(t, opts, "write_file").Subject(tooltest.Call(p))
		if err != nil {
			t.Fatal(err)
		}
		guarded := false
		for _, path := range s.Paths {
			guarded = guarded || workspace.Guarded(path)
		}
		if guarded != want {
			t.Errorf("%q: paths %q, guarded %v", name, s.Paths, guarded)
		}
	}
}

// A link that is retargeted after the preview or after the permission decision
// does not redirect the write.
func TestLinkChangedAfterPreviewOrDecision(t *testing.T) {
	patch := "--- /dev/null\n+++ b/link/f\n@@ -0,0 +1 @@\n+new\n"
	for name, params := range map[string]string{
		"write_file":  `{"file_path":"link/f","content":"new\n"}`,
		"edit":        `{"file_path":"link/f","old_string":"","new_string":"new\n"}`,
		"apply_patch": patchParam(t, patch),
	} {
		opts, dir := place(t, map[string]string{"free/x": "x", "guarded/x": "x"})
		link := filepath.Join(dir, "link")
		tooltest.Link(t, "free", link)
		made := find(t, opts, name)
		call := tooltest.Call(params)
		subject, err := made.Subject(call)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := made.Preview(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		tooltest.Link(t, "guarded", link)
		if r, err := made.Run(t.Context(), call); err != nil || !r.IsError {
			t.Errorf("%s after the preview: %s; %v", name, r.Text(), err)
		}
		call.Paths = subject.Paths
		if r, err := made.Run(t.Context(), call); err != nil || !r.IsError || !strings.Contains(r.Text(), `another file, "guarded/f"`) {
			t.Errorf("%s after the decision: %s; %v", name, r.Text(), err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "guarded/f")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s wrote the file: %v", name, err)
		}
	}
}

// A file that changes after the preview is not overwritten.
func TestChangedAfterPreview(t *testing.T) {
	for tool, p := range map[string]string{
		"write_file":  `{"file_path":"f","content":"mine\n"}`,
		"edit":        `{"file_path":"f","old_string":"a","new_string":"b"}`,
		"apply_patch": `{"patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"}`,
	} {
		t.Run(tool, func(t *testing.T) {
			opts, dir := place(t, map[string]string{"f": "a\n"})
			made := find(t, opts, tool)
			if _, err := made.Preview(t.Context(), tooltest.Call(p)); err != nil {
				t.Fatal(err)
			}
			tooltest.Put(t, filepath.Join(dir, "f"), "a\nsomeone else's line\n")
			r, err := made.Run(t.Context(), tooltest.Call(p))
			if err != nil || !r.IsError || !strings.Contains(r.Text(), "modified after") {
				t.Errorf("ran: %v %s", err, r.Text())
			}
			if got := tooltest.TextIn(t, filepath.Join(dir, "f")); got != "a\nsomeone else's line\n" {
				t.Errorf("the file holds %q", got)
			}
			if tool == "write_file" { // the next call is independent
				if r, err = made.Run(t.Context(), tooltest.Call(p)); err != nil || r.IsError {
					t.Errorf("repeated: %v %s", err, r.Text())
				}
			}
		})
	}
}

// No change is lost if calls change one file concurrently.
func TestConcurrentEdits(t *testing.T) {
	const n = 30
	var before, after strings.Builder
	for i := range n {
		fmt.Fprintf(&before, "line <%d>\n", i)
		fmt.Fprintf(&after, "line [%d]\n", i)
	}
	opts, dir := place(t, map[string]string{"f": before.String()})
	var wg sync.WaitGroup
	for i := range n {
		made := find(t, opts, "edit") // each has its own workspace, as in separate processes
		wg.Go(func() {
			p := fmt.Sprintf(`{"file_path":"f","old_string":"<%d>","new_string":"[%d]"}`, i, i)
			if r, err := made.Run(t.Context(), tooltest.Call(p)); err != nil || r.IsError {
				t.Error(err, r.Text())
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(after.String(), tooltest.TextIn(t, filepath.Join(dir, "f"))); diff != "" {
		t.Error(diff)
	}
}

func TestWriteFileRevised(t *testing.T) {
	opts, dir := place(t, map[string]string{"f": "old\n"})
	tool := find(t, opts, "write_file")
	for _, text := range []string{"by a person <&>\n", ""} {
		revised, err := tool.Revise(t.Context(), tooltest.Call(`{"file_path":"f","content":"new\n"}`), text)
		if err != nil {
			t.Fatal(err)
		}
		if err := tool.Check(t.Context(), revised); err != nil {
			t.Fatal(err)
		}
		if r, err := tool.Run(t.Context(), revised); err != nil || r.IsError {
			t.Fatal(err, r.Text())
		}
		if got := tooltest.TextIn(t, filepath.Join(dir, "f")); got != text {
			t.Errorf("wrote %q, want %q", got, text)
		}
	}
}

func TestWriteFileRefusals(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/f": "x", "locked": "x"})
	if err := os.Chmod(filepath.Join(dir, "locked"), 0o444); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{
		`{"file_path":"sub","content":"x"}`:     `"sub" is a directory; give the path of a file`,
		`{"file_path":"sub/f/g","content":"x"}`: "a part of the path is a file",
		`{"file_path":"locked","content":"y"}`:  "read-only",
	} {
		r := run(t, opts, "write_file", p)
		if !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("%s: %q does not say %q", p, r.Text(), want)
		}
	}
}
