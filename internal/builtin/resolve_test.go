package builtin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// link makes a link and fails the test where the system has none.
func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// linked makes a workspace full of links, with a twin folder beside it whose
// name begins the same.
func linked(t testing.TB) (opts Options, dir, outside string) {
	opts, dir = place(t, map[string]string{"a.txt": "inside", "deep/er/b.txt": "inside"})
	outside = dir + "-evil"
	put(t, filepath.Join(outside, "secret"), "outside")
	t.Cleanup(func() { os.RemoveAll(outside) })
	link(t, "a.txt", filepath.Join(dir, "to-file"))
	link(t, filepath.Join(dir, "deep"), filepath.Join(dir, "abs-inside"))
	link(t, "deep/er", filepath.Join(dir, "to-folder"))
	link(t, "to-folder", filepath.Join(dir, "to-link"))
	link(t, "../../a.txt", filepath.Join(dir, "deep/er/up"))
	link(t, "../"+filepath.Base(outside), filepath.Join(dir, "rel-out"))
	link(t, outside, filepath.Join(dir, "abs-out"))
	link(t, "/proc/self/root", filepath.Join(dir, "proc"))
	link(t, "loop-b", filepath.Join(dir, "loop-a"))
	link(t, "loop-a", filepath.Join(dir, "loop-b"))
	link(t, "nowhere", filepath.Join(dir, "dangling"))
	link(t, "../../..", filepath.Join(dir, "deep/er/far"))
	return opts, dir, outside
}

func TestResolve(t *testing.T) {
	opts, dir, outside := linked(t)
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, dir, alias)
	const out = "leads out of the workspace"
	tests := []struct{ name, want, refused string }{
		{name: "a.txt", want: "a.txt"},
		{name: ".", want: "."},
		{name: "./deep//er/../er/b.txt", want: "deep/er/b.txt"},
		{name: "new/file", want: "new/file"},
		{name: "a.txt/below", want: "a.txt/below"},
		{name: "a.txt/..", want: "."},
		{name: dir, want: "."},
		{name: dir + "/a.txt", want: "a.txt"},
		{name: alias + "/deep/er/b.txt", want: "deep/er/b.txt"},
		{name: alias + "/new", want: "new"},
		{name: "to-file", want: "a.txt"},
		{name: "to-link/b.txt", want: "deep/er/b.txt"},
		{name: "to-link/new.txt", want: "deep/er/new.txt"},
		{name: "abs-inside/er/b.txt", want: "deep/er/b.txt"},
		{name: "to-folder/up", want: "a.txt"},
		{name: "dangling", want: "nowhere"},
		{name: "~file", want: "~file"},
		{name: "..dots", want: "..dots"},

		{name: "", refused: "is empty"},
		{name: "a\x00b", refused: "NUL"},
		{name: "..", refused: out},
		{name: "../" + filepath.Base(dir) + "/a.txt", refused: out},
		{name: "deep/../../x", refused: out},
		{name: "~", refused: "~"},
		{name: "~/x", refused: "~"},
		{name: "file:///etc/passwd", refused: "URL"},
		{name: "FILE:/etc/passwd", refused: "URL"},
		{name: "/etc/passwd", refused: "outside the workspace"},
		{name: outside + "/secret", refused: "outside the workspace"},
		{name: filepath.Dir(dir), refused: "outside the workspace"},
		{name: "rel-out/secret", refused: `through link "rel-out"`},
		{name: "abs-out/secret", refused: `through link "abs-out"`},
		{name: "abs-out", refused: `through link "abs-out"`},
		{name: "proc/etc/passwd", refused: `through link "proc"`},
		{name: "to-folder/far/x", refused: `through link "deep/er/far"`},
		{name: "loop-a", refused: "round in links"},
	}
	w := newWorkspace(&opts)
	t.Cleanup(func() { w.close() })
	for _, tt := range tests {
		got, err := w.resolve(tt.name)
		switch {
		case tt.refused == "" && (err != nil || got != tt.want):
			t.Errorf("resolve(%q) = %q, %v; want %q", tt.name, got, err, tt.want)
		case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
			t.Errorf("resolve(%q) = %q, %v; want an error with %q", tt.name, got, err, tt.refused)
		}
	}
}

// TestEveryToolStaysInside gives each reading tool every path that leads out.
// Check refuses before anybody is asked, Run when it is called all the same.
func TestEveryToolStaysInside(t *testing.T) {
	opts, dir, outside := linked(t)
	paths := []string{"..", "../x", "/etc/passwd", "/", "~/x", "file:///etc/passwd", "abs-out", "rel-out/secret", "proc", outside, dir + "/../x"}
	for tool, param := range map[string]string{"read_file": "file_path", "list_directory": "path", "glob": "path", "grep": "path"} {
		found := find(t, opts, tool)
		for _, path := range paths {
			c := call(`{"pattern":"x",` + quoted(param) + `:` + quoted(path) + `}`)
			if tool == "read_file" || tool == "list_directory" {
				c = call(`{` + quoted(param) + `:` + quoted(path) + `}`)
			}
			if err := found.Check(c); !isArgs(err, "/"+param) {
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
	for _, pattern := range []string{"../*", "deep/../../*", "/etc/*", filepath.Dir(dir) + "/*", dir + "-evil/*", "{a,../b}/*"} {
		if err := tool.Check(call(`{"pattern":` + quoted(pattern) + `}`)); !isArgs(err, "/pattern") {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
	got := globPaths(t, opts, `{"pattern":`+quoted(dir+"/deep/**")+`}`)
	if diff := cmp.Diff([]string{"deep/er/b.txt", "deep/er/far", "deep/er/up"}, got); diff != "" {
		t.Error(diff)
	}
	if got := globPaths(t, opts, `{"pattern":`+quoted(dir+"/*.txt")+`}`); !slices.Equal(got, []string{"a.txt"}) {
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

// TestSwappedLinksGiveNothingAway exchanges a folder for a link to the outside
// again and again while it is read through.
func TestSwappedLinksGiveNothingAway(t *testing.T) {
	opts, dir, outside := linked(t)
	put(t, filepath.Join(dir, "real/secret"), "inside")
	flip := filepath.Join(dir, "flip")
	link(t, "real", flip)
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
	w := newWorkspace(&opts)
	t.Cleanup(func() { w.close() })
	inside := 0
	for i := range 2000 {
		r, err := read.Run(t.Context(), call(`{"file_path":"flip/secret"}`))
		if strings.Contains(r.Text(), "outside") {
			t.Error("read through the link")
			break
		}
		if err == nil && !r.IsError {
			inside++
		}
		if rel, err := w.resolve("flip/written"); err == nil && i%20 == 0 {
			_ = w.writeFile(rel, []byte("x"))
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

func TestWorkspaceThatIsNotThere(t *testing.T) {
	for _, dir := range []string{"", "relative", filepath.Join(t.TempDir(), "gone")} {
		if _, err := find(t, Options{Workspace: dir}, "read_file").Run(t.Context(), call(`{"file_path":"x"}`)); err == nil {
			t.Errorf("workspace %q: no error", dir)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "to-link/../..", "abs-inside/er/up", "~", "/proc/self/root", "rel-out/\x00", "deep/er/far/etc"} {
		f.Add(s)
	}
	opts, _, _ := linked(f)
	w := newWorkspace(&opts)
	f.Cleanup(func() { w.close() })
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := w.resolve(name)
		if err == nil && !filepath.IsLocal(filepath.FromSlash(rel)) {
			t.Errorf("resolve(%q) = %q", name, rel)
		}
		if file, _, err := w.openFile(rel); err == nil {
			file.Close()
		}
	})
}
