package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

// A search says what it left out.
func TestNoteOfSearch(t *testing.T) {
	var w LeftOut
	if note := w.Note(); note != "" || !w.Nothing() {
		t.Errorf("before: %q, nothing visited: %t", note, w.Nothing())
	}
	w.visited.Add(1)
	w.ignored.Add(1)
	w.hidden.Add(2)
	w.unreadable.Add(3)
	want := " (1 entry excluded by ignore files; respect_ignore_files: false shows them) (2 entries excluded by policy rules) (3 folders could not be read)"
	if note := w.Note(); note != want || w.Nothing() {
		t.Errorf("%q, want %q; nothing visited: %t", note, want, w.Nothing())
	}
}

// A failed call says what is wrong with a path, and which one may have been meant.
func TestExplain(t *testing.T) {
	opts, dir := place(t, map[string]string{"docs/readme.md": "", "docs/configuration.properties": "", "docs/abc.properties": "", "docs/ab.properties": "", "file": ""})
	w := tooltest.Open(t, New(opts))
	none := func(string) bool { return false }
	for _, tt := range []struct {
		rel   string
		err   error
		hides func(string) bool
		want  string
	}{
		{"docs/redme.md", os.ErrNotExist, nil, `"docs/redme.md" does not exist in the workspace DIR; did you mean "docs/readme.md"?`},
		{"docs/redme.md", os.ErrNotExist, none, `"docs/redme.md" does not exist in the workspace DIR; did you mean "docs/readme.md"?`},
		{"docs/redme.md", os.ErrNotExist, func(path string) bool { return path == "docs/readme.md" }, `"docs/redme.md" does not exist in the workspace DIR; list_directory and glob show what does`},
		{"dcs/readme.md", os.ErrNotExist, nil, `"dcs/readme.md" does not exist in the workspace DIR; did you mean "docs"?`},
		{"docs/*.md", os.ErrNotExist, nil, `"docs/*.md" does not exist in the workspace DIR; a path names one file or folder, and patterns are taken by glob and by include of grep`},
		{"docs/readme.mdx", os.ErrNotExist, nil, `"docs/readme.mdx" does not exist in the workspace DIR; did you mean "docs/readme.md"?`},
		{"docs/configuration.yml", os.ErrNotExist, nil, `"docs/configuration.yml" does not exist in the workspace DIR; did you mean "docs/configuration.properties"?`},
		{"docs/ABC.go", os.ErrNotExist, nil, `"docs/ABC.go" does not exist in the workspace DIR; did you mean "docs/abc.properties"?`},
		{"docs/ab.go", os.ErrNotExist, nil, `"docs/ab.go" does not exist in the workspace DIR; list_directory and glob show what does`},
		{"fle/x", os.ErrNotExist, nil, `"fle/x" does not exist in the workspace DIR; did you mean "file"?`},
		{"file/x", os.ErrNotExist, nil, `"file/x" does not exist in the workspace DIR; did you mean "file"?`},
		{"file/x", syscall.ENOTDIR, nil, `"file/x" does not exist: a part of the path is a file, not a folder`},
		{"file", syscall.EACCES, nil, `"file" cannot be read: permission denied`},
		{"docs", ErrIsDir, nil, `"docs" is a directory; use list_directory to list it`},
		{"pipe", ErrKind, nil, `"pipe" is a device, pipe or socket; only regular files and directories can be used`},
		{"file", errors.New("broken"), nil, `reading "file": broken`},
	} {
		tt.want = strings.Replace(tt.want, "DIR", strconv.Quote(opts.Dir), 1)
		if got := w.Explain(tt.rel, tt.rel, tt.err, tt.hides); got != tt.want {
			t.Errorf("%s, %v:\n%s\nwant\n%s", tt.rel, tt.err, got, tt.want)
		}
	}
	opts.Dir = filepath.Join(dir, "missing")
	if got := tooltest.Open(t, New(opts)).Explain("redme.md", "redme.md", os.ErrNotExist, nil); !strings.Contains(got, "list_directory") {
		t.Errorf("without a workspace: %s", got)
	}
}

// The start of a search is a folder.
func TestNotFolder(t *testing.T) {
	opts, _ := place(t, map[string]string{"docs/readme.md": ""})
	w := tooltest.Open(t, New(opts))
	for rel, want := range map[string]string{"docs": "", ".": "", "docs/readme.md": "is a file, not a folder", "dcs": `did you mean "docs"?`} {
		result, failed := w.NotFolder(rel, rel, nil)
		if failed != (want != "") || result.IsError != failed || failed && !strings.Contains(textOf(result), want) {
			t.Errorf("%s: %+v, %t", rel, result, failed)
		}
	}
}

func textOf(result registry.Result) string {
	out := ""
	for _, c := range result.Content {
		out += c.Text
	}
	return out
}
