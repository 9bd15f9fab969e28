package search

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
)

func TestIgnoreFilesOfSearchToolsTakePrecedence(t *testing.T) {
	opts, dir := place(t, map[string]string{
		".gitignore": "*.log\n*.tmp\n", ".ignore": "!keep.log\nsecret\n", ".geminiignore": "*.gem\n",
		"keep.log": "", "other.log": "", "secret": "", "a.tmp": "", "b.gem": "", "c.txt": "", "sub/.ignore": "c.txt", "sub/c.txt": "", "sub/d.txt": "",
	})
	tooltest.Put(t, filepath.Join(dir, ".git/info/exclude"), "d.txt\n")
	tooltest.Put(t, filepath.Join(opts.ConfigHome, "git/ignore"), ".*ignore\n")
	if diff := cmp.Diff([]string{"c.txt", "keep.log"}, globPaths(t, opts, `{"pattern":"**"}`)); diff != "" {
		t.Error(diff)
	}
}

func TestIgnoreFilesAboveTheWorkspace(t *testing.T) {
	opts, dir := place(t, map[string]string{
		".gitignore": "*.log\n/in/ws/anchored\n/elsewhere\nout/\n", "in/.gitignore": "!kept.log\nws/deep/*.x\n", "in/.ignore": "searched\n",
		".git/HEAD": "", ".git/info/exclude": "excluded\n/in/ws/alone\n",
		"in/ws/a.log": "", "in/ws/kept.log": "", "in/ws/anchored": "", "in/ws/deep/anchored": "", "in/ws/elsewhere": "", "in/ws/out/f": "",
		"in/ws/deep/b.x": "", "in/ws/b.x": "", "in/ws/searched": "", "in/ws/excluded": "", "in/ws/alone": "", "in/ws/deep/alone": "",
		"in/ws/.gitignore": "!deep/b.x\n.gitignore\n",
	})
	opts.Dir = filepath.Join(dir, "in/ws")
	want := []string{"b.x", "deep/alone", "deep/anchored", "deep/b.x", "elsewhere", "kept.log"}
	if diff := cmp.Diff(want, globPaths(t, opts, `{"pattern":"**"}`)); diff != "" {
		t.Error(diff)
	}
	opts.Home = dir // a repository in the home directory does not apply to the projects below it
	if got := globPaths(t, opts, `{"pattern":"a*"}`); !slices.Contains(got, "a.log") {
		t.Errorf("got %q", got)
	}
}

func TestExcludesOfLinkedWorktree(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"main/.git/info/exclude": "secret\n", "main/.git/worktrees/w/commondir": "../..\n", "w/secret": "", "w/open": "",
	})
	tooltest.Put(t, filepath.Join(dir, "w/.git"), "gitdir: "+filepath.Join(dir, "main/.git/worktrees/w")+"\n")
	opts.Dir = filepath.Join(dir, "w")
	if diff := cmp.Diff([]string{"open"}, globPaths(t, opts, `{"pattern":"[os]*"}`)); diff != "" {
		t.Error(diff)
	}
}

func TestGlobalExcludesFollowGitsConfiguration(t *testing.T) {
	opts, _ := place(t, map[string]string{"a.txt": "", "b.txt": "", "c.txt": ""})
	tooltest.Put(t, filepath.Join(opts.ConfigHome, "git/ignore"), "b.txt\n")
	tooltest.Put(t, filepath.Join(opts.Home, ".gitconfig"), "[user]\n\tname = x\n[Core]\n\texcludesFile = \"~/my ignores\" ; mine\n")
	tooltest.Put(t, filepath.Join(opts.Home, "my ignores"), "a.txt\n")
	if diff := cmp.Diff([]string{"b.txt", "c.txt"}, globPaths(t, opts, `{"pattern":"*"}`)); diff != "" {
		t.Error(diff)
	}
}

func TestLinkedIgnoreFileIsIgnored(t *testing.T) {
	opts, dir := place(t, map[string]string{"a.txt": "", "rules": "a.txt"})
	if err := os.Symlink("rules", filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	if got := globPaths(t, opts, `{"pattern":"a.txt*"}`); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// globPaths returns the paths that glob finds, sorted.
func globPaths(t testing.TB, opts workspace.Options, params string) []string {
	t.Helper()
	var out []string
	for _, l := range run(t, opts, "glob", params).Locations {
		out = append(out, l.Path)
	}
	slices.Sort(out)
	return out
}
