package search

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

func TestListDirectory(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"b.txt": "", "A.txt": "", "zoo/x": "", "lib/sub/deep/deeper/y": "", "lib/a.log": "", ".gitignore": "*.log\nout/\n", "out/o": "",
		".git/HEAD": "", "new\nline": "", "docs/a.md": "", "docs/b.md": "",
	})
	tooltest.Link(t, "zoo", filepath.Join(dir, "link"))
	tooltest.MakePipe(t, filepath.Join(dir, "pipe"))
	tests := map[string]string{
		`{"path":".","depth":1}`: `./ (10 entries, 1 level deep):
.git/
docs/
lib/
zoo/
.gitignore
A.txt
b.txt
link (link to zoo)
"new\nline"
pipe (pipe)
(1 entry excluded by ignore files; respect_ignore_files: false shows them)
`,
		`{"path":"lib"}`: `lib/ (3 entries, 3 levels deep):
sub/
  deep/
    deeper/
(1 entry excluded by ignore files; respect_ignore_files: false shows them)
`,
		`{"path":"lib","depth":20,"respect_ignore_files":false}`: `lib/ (5 entries):
sub/
  deep/
    deeper/
      y
a.log
`,
		`{"path":".","depth":2,"ignore":["*.txt","docs/a*","lib","new*",".git*","link","pipe"]}`: `./ (4 entries):
docs/
  b.md
zoo/
  x
(1 entry excluded by ignore files; respect_ignore_files: false shows them)
`,
		`{"path":".git"}`:                   ".git/ (1 entry):\nHEAD\n",
		`{"path":"link"}`:                   "zoo/ (1 entry):\nx\n",
		`{"path":"zoo","ignore":["X","*"]}`: "zoo/ (0 entries):\n",
	}
	for params, want := range tests {
		if diff := cmp.Diff(want, output(t, opts, "list_directory", params)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", params, diff)
		}
	}
}

// TestListDirectoryIsCutLevelByLevel expects the shallow entries of a large
// tree, and the number of the others.
func TestListDirectoryIsCutLevelByLevel(t *testing.T) {
	opts, dir := place(t, map[string]string{"z/last": ""})
	for i := range 600 {
		tooltest.Put(t, filepath.Join(dir, "a", fmt.Sprintf("f%03d", i)), "")
	}
	r := run(t, opts, "list_directory", `{"path":"."}`)
	text := r.Text()
	for _, want := range []string{"./ (500 entries", "\nz/\n", "  f000\n", "  ... 102 entries more\n", "(cut off at 500 entries: at least 103 more are not listed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%.200s", want, text)
		}
	}
	if !r.Truncated || r.Summary != "listed 500 entries" {
		t.Errorf("truncated %v, summary %q", r.Truncated, r.Summary)
	}
}

func TestListDirectoryFailures(t *testing.T) {
	opts, _ := place(t, map[string]string{"file": "x", "source/x": ""})
	for path, want := range map[string]string{"file": "is a file, not a folder", "gone": "does not exist", "sorce": `did you mean "source"?`} {
		if r := run(t, opts, "list_directory", `{"path":`+tooltest.Quoted(path)+`}`); !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("%s: %s", path, r.Text())
		}
	}
	if err := find(t, opts, "list_directory").Check(t.Context(), tooltest.Call(`{"path":".","ignore":["ok","[a"]}`)); !isArgs(err, "/ignore/1") {
		t.Error(err)
	}
}

// A search does not start in a folder other than the one that was allowed.
func TestSearchRefusesReplacedFolder(t *testing.T) {
	opts, dir := place(t, map[string]string{"secret/f": "x"})
	tooltest.Link(t, "secret", filepath.Join(dir, "link"))
	for name, params := range map[string]string{
		"list_directory": `{"path":"link"}`, "glob": `{"pattern":"*","path":"link"}`, "grep": `{"pattern":"x","path":"link"}`,
	} {
		made, call := find(t, opts, name), tooltest.Call(params)
		call.Paths = []string{"free", "link"}
		if r, err := made.Run(t.Context(), call); err != nil || !r.IsError || !strings.Contains(r.Text(), "leads to another file") {
			t.Errorf("%s: %s; %v", name, r.Text(), err)
		}
		call.Paths = []string{"secret", "link"}
		if r, err := made.Run(t.Context(), call); err != nil || r.IsError {
			t.Errorf("%s: %s; %v", name, r.Text(), err)
		}
	}
}
