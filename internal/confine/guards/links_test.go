//go:build unix

package guards

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/git"
)

// A link can turn a file of any name into one that other programs use.
func TestLinksAreGuarded(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "", ".git/hooks/a.sample": "",
		"editor/a.txt": "", "a/b.txt": "", "c/d/e.txt": "", "good.env": "", "plain": "",
	})
	tooltest.Link(t, "missing.env", filepath.Join(dir, ".envrc"))
	tooltest.Link(t, "../../missing-hook", filepath.Join(dir, ".git/hooks/pre-push"))
	tooltest.Link(t, "editor", filepath.Join(dir, ".idea"))
	tooltest.Link(t, "../x.env", filepath.Join(dir, "a/.envrc"))
	tooltest.Link(t, "good.env", filepath.Join(dir, ".profile"))
	tooltest.Link(t, "plain", filepath.Join(dir, ".other"))
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{"editor", "good.env"} {
		if !slices.Contains(g.ReadOnly, filepath.Join(dir, rel)) {
			t.Errorf("%s is writable: %q", rel, g.ReadOnly)
		}
	}
	put(t, dir, map[string]string{"missing.env": "evil", "missing-hook": "evil", "tasks/tasks.json": "evil", "build/config.toml": "evil", "c/x.env": "evil"})
	tooltest.Link(t, "tasks", filepath.Join(dir, ".vscode"))
	tooltest.Link(t, "../build", filepath.Join(dir, "a/.cargo"))
	tooltest.Link(t, "build", filepath.Join(dir, ".fine"))
	if err := os.Rename(filepath.Join(dir, "a/.envrc"), filepath.Join(dir, "c/d/.envrc")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ".profile")); err != nil {
		t.Fatal(err)
	}
	tooltest.Link(t, "plain", filepath.Join(dir, ".profile"))
	cleaned, err := g.Clean(t.Context(), everything)
	want := []string{".profile", ".vscode", "a/.cargo", "c/d/.envrc", "missing-hook", "missing.env"}
	if diff := cmp.Diff(want, cleaned.Removed); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// The shared git folder of a linked worktree also contains the repositories of
// submodules and the folders of other worktrees. A new worktree can claim to belong
// to it.
func TestLinkedWorktreeGuardsTheOthers(t *testing.T) {
	top := tooltest.Place(t, map[string]string{
		"main/.git/HEAD": "", "main/.git/objects/x": "", "main/.git/refs/x": "", "main/.git/config": "",
		"main/.git/worktrees/w/HEAD": "", "main/.git/worktrees/w/commondir": "../..\n",
		"main/.git/worktrees/other/HEAD": "", "main/.git/worktrees/other/commondir": "../..\n",
		"main/.git/modules/m/HEAD": "", "main/.git/modules/m/objects/x": "", "main/.git/modules/m/refs/x": "", "main/.git/modules/m/config": "",
	})
	put(t, top, map[string]string{"tree/.git": "gitdir: " + top + "/main/.git/worktrees/w\n", "main/.git/worktrees/w/gitdir": top + "/tree/.git\n"})
	g, err := tooltest.Open(t, New(filepath.Join(top, "tree"), git.User{}, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(top, "main/.git")
	for _, rel := range []string{"modules/m/config", "worktrees/other/commondir"} {
		if !slices.Contains(g.ReadOnly, filepath.Join(common, rel)) {
			t.Errorf("%s is writable: %q", rel, g.ReadOnly)
		}
	}
	put(t, top, map[string]string{
		"main/.git/modules/m/hooks/post-commit": "evil", "main/.git/worktrees/other/config.worktree": "evil",
		"main/.git/worktrees/evil/HEAD": "", "main/.git/worktrees/evil/commondir": top + "/tree/e\n", "tree/s/.git": "gitdir: " + common + "/worktrees/evil\n",
		"main/.git/worktrees/fine/HEAD": "", "main/.git/worktrees/fine/commondir": "../..\n", "tree/f/.git": "gitdir: " + common + "/worktrees/fine\n",
		"tree/x/.git": "gitdir: /elsewhere\n", "tree/c/.git": "gitdir: " + common + "\n",
	})
	cleaned, err := g.Clean(t.Context(), everything)
	want := []string{common + "/modules/m/hooks", common + "/worktrees/evil/commondir", common + "/worktrees/other/config.worktree", "x/.git"}
	if diff := cmp.Diff(want, cleaned.Removed); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// A link on the way to a hook decides what runs, like the hook itself.
func TestLinksOnTheWayAreGuarded(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/hooks/a.sample": "", "tools/v1/hook": "", "evil/hook": "", "fine": "",
	})
	tooltest.Link(t, "../../tools/latest/hook", filepath.Join(dir, ".git/hooks/post-commit"))
	tooltest.Link(t, "v1", filepath.Join(dir, "tools/latest"))
	tooltest.Link(t, "fine", filepath.Join(dir, "other"))
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(g.ReadOnly, filepath.Join(dir, "tools/v1/hook")) {
		t.Errorf("the hook is writable: %q", g.ReadOnly)
	}
	for link, target := range map[string]string{"tools/latest": "../evil", "other": "evil/hook"} {
		if err := os.Remove(filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		tooltest.Link(t, target, filepath.Join(dir, link))
	}
	cleaned, err := g.Clean(t.Context(), func(_, name string) bool { return name == "latest" || name == "other" })
	if diff := cmp.Diff([]string{"tools/latest"}, cleaned.Removed); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Named pipes have guarded names, too, and jj follows a file to a repository.
func TestOtherKindsOfFilesAreRemoved(t *testing.T) {
	dir, user := place(t, map[string]string{"mine/.jj/repo/store": "", "a": ""})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{".jj/repo": "../../other", "mine/.jj/repo/x": ""})
	if err := unix.Mkfifo(filepath.Join(dir, ".envrc"), 0o600); err != nil {
		t.Fatal(err)
	}
	cleaned, err := g.Clean(t.Context(), everything)
	if diff := cmp.Diff(Cleaned{Removed: []string{".envrc", ".jj/repo"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
