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

func TestIgnoreFilesOfSearchToolsDecideFirst(t *testing.T) {
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

func TestGlobalExcludesFollowGitsConfiguration(t *testing.T) {
	opts, _ := place(t, map[string]string{"a.txt": "", "b.txt": "", "c.txt": ""})
	tooltest.Put(t, filepath.Join(opts.ConfigHome, "git/ignore"), "b.txt\n")
	tooltest.Put(t, filepath.Join(opts.Home, ".gitconfig"), "[user]\n\tname = x\n[Core]\n\texcludesFile = \"~/my ignores\" ; mine\n")
	tooltest.Put(t, filepath.Join(opts.Home, "my ignores"), "a.txt\n")
	if diff := cmp.Diff([]string{"b.txt", "c.txt"}, globPaths(t, opts, `{"pattern":"*"}`)); diff != "" {
		t.Error(diff)
	}
}

func TestIgnoreFileThatIsALinkSaysNothing(t *testing.T) {
	opts, dir := place(t, map[string]string{"a.txt": "", "rules": "a.txt"})
	if err := os.Symlink("rules", filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	if got := globPaths(t, opts, `{"pattern":"a.txt*"}`); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// globPaths returns what glob finds, sorted.
func globPaths(t testing.TB, opts workspace.Options, params string) []string {
	t.Helper()
	var out []string
	for _, l := range run(t, opts, "glob", params).Locations {
		out = append(out, l.Path)
	}
	slices.Sort(out)
	return out
}
