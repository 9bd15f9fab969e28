package builtin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

// TestEveryToolStaysInside passes every path that leads outside to each reading
// tool. Check refuses it before the user is prompted, and Run refuses it if it
// is called anyway.
func TestEveryToolStaysInside(t *testing.T) {
	opts, dir, outside := linked(t)
	paths := []string{"..", "../x", "/etc/passwd", "/", "~/x", "file:///etc/passwd", "abs-out", "rel-out/secret", "proc", outside, dir + "/../x"}
	for tool, param := range map[string]string{"read_file": "file_path", "list_directory": "path", "glob": "path", "grep": "path"} {
		found := find(t, opts, tool)
		for _, path := range paths {
			c := tooltest.Call(`{"pattern":"x",` + tooltest.Quoted(param) + `:` + tooltest.Quoted(path) + `}`)
			if tool == "read_file" || tool == "list_directory" {
				c = tooltest.Call(`{` + tooltest.Quoted(param) + `:` + tooltest.Quoted(path) + `}`)
			}
			if err := found.Check(t.Context(), c); !isArgs(err, "/"+param) {
				t.Errorf("%s: check of %q: %v", tool, path, err)
			}
			if r, err := found.Run(t.Context(), c); !isArgs(err, "/"+param) {
				t.Errorf("%s: run with %q: %v, %v", tool, path, r.Text(), err)
			}
		}
	}
}

func isArgs(err error, pointer string) bool {
	args, ok := err.(*registry.ArgsError)
	return ok && args.Violations[0].Pointer == pointer
}

func TestGlobPatternStaysInside(t *testing.T) {
	opts, dir, _ := linked(t)
	tool := find(t, opts, "glob")
	for _, pattern := range []string{"../*", "deep/../../*", "/etc/*", filepath.Dir(dir) + "/*", dir + "-evil/*", "{a,../b}/*", "abs-out/*", "rel-out/s*"} {
		if err := tool.Check(t.Context(), tooltest.Call(`{"pattern":`+tooltest.Quoted(pattern)+`}`)); !isArgs(err, "/pattern") {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
	got := globPaths(t, opts, `{"pattern":`+tooltest.Quoted(dir+"/deep/**")+`}`)
	if diff := cmp.Diff([]string{"deep/er/b.txt", "deep/er/far", "deep/er/up"}, got); diff != "" {
		t.Error(diff)
	}
	if got := globPaths(t, opts, `{"pattern":`+tooltest.Quoted(dir+"/*.txt")+`}`); !slices.Equal(got, []string{"a.txt"}) {
		t.Errorf("top level alone: %q", got)
	}
}

func TestSearchFollowsNoLink(t *testing.T) {
	opts, _, _ := linked(t)
	text := func(r registry.Result) string { return r.Text() }
	if got := text(run(t, opts, "grep", `{"pattern":"outside|inside"}`)); strings.Contains(got, "outside\n") || !strings.Contains(got, "2 files") {
		t.Errorf("grep:\n%s", got)
	}
	if got := text(run(t, opts, "list_directory", `{"path":".","depth":20}`)); strings.Contains(got, "secret") || !strings.Contains(got, "abs-out (link to ") {
		t.Errorf("list_directory:\n%s", got)
	}
}

// TestSwappedLinksLeakNothing repeatedly swaps a folder for a link to the
// outside while the tools read through it.
func TestSwappedLinksLeakNothing(t *testing.T) {
	opts, dir, outside := linked(t)
	tooltest.Put(t, filepath.Join(dir, "real/secret"), "inside")
	flip := filepath.Join(dir, "flip")
	tooltest.Link(t, "real", flip)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, target := range []string{"real", outside} {
				_ = os.Symlink(target, flip+".new")
				_ = os.Rename(flip+".new", flip)
			}
		}
	})
	read := find(t, opts, "read_file")
	w := tooltest.Open(t, workspace.NewEditor(opts.Workspace))
	inside := 0
	for i := range 2000 {
		r, err := read.Run(t.Context(), tooltest.Call(`{"file_path":"flip/secret"}`))
		if strings.Contains(r.Text(), "outside") {
			t.Error("read through the link")
			break
		}
		if err == nil && !r.IsError {
			inside++
		}
		if rel, err := w.Param("write_file", "/file_path", "flip/written"); err == nil && i%20 == 0 {
			_ = w.WriteFile(rel, []byte("x"), 0)
		}
	}
	cancel()
	wg.Wait()
	if inside == 0 {
		t.Error("nothing was read inside")
	}
	if _, err := os.Lstat(filepath.Join(outside, "written")); err == nil {
		t.Error("written through the link")
	}
}

func TestMissingWorkspaceIsAnError(t *testing.T) {
	for _, dir := range []string{"", "relative", filepath.Join(t.TempDir(), "gone")} {
		if _, err := find(t, Options{Workspace: workspace.Options{Dir: dir}}, "read_file").Run(t.Context(), tooltest.Call(`{"file_path":"x"}`)); err == nil {
			t.Errorf("workspace %q: no error", dir)
		}
	}
}

// The next change in a folder removes temporary files that a killed run left
// there. Files that may belong to another run or to the user stay.
func TestWritesRemoveStaleTemporaryFiles(t *testing.T) {
	stale, fresh, mine := ".toolreg-"+strings.Repeat("AZ27", 7)[:26]+".tmp", ".toolreg-"+strings.Repeat("B", 26)+".tmp", ".toolreg-notes.tmp"
	for tool, p := range map[string]string{
		"write_file":  `{"file_path":"sub/a","content":"x"}`,
		"edit":        `{"file_path":"sub/f","old_string":"old","new_string":"new"}`,
		"apply_patch": `{"patch":"--- a/sub/f\n+++ b/sub/f\n@@ -1 +1 @@\n-old\n+new\n"}`,
	} {
		opts, dir := place(t, map[string]string{"sub/f": "old\n", "sub/" + stale: "", "sub/" + fresh: "", "sub/" + mine: "", stale: ""})
		for _, name := range []string{"sub/" + stale, "sub/" + mine, stale} {
			tooltest.Aged(t, filepath.Join(dir, name), 2*time.Minute)
		}
		run(t, opts, tool, p)
		for name, want := range map[string]bool{"sub/" + stale: false, "sub/" + fresh: true, "sub/" + mine: true, stale: true} {
			if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("%s: %s exists: %v", tool, name, err == nil)
			}
		}
	}
}

// linked makes a workspace full of links.
func linked(t testing.TB) (opts Options, dir, outside string) {
	t.Helper()
	dir, outside = tooltest.Linked(t)
	return Options{Workspace: workspace.Options{Dir: dir, Home: t.TempDir(), ConfigHome: t.TempDir()}}, dir, outside
}
