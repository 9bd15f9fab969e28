package guards

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// What git acts upon is refused by name in each repository, and everything else is allowed.
func TestChangesInGitFolders(t *testing.T) {
	p := protection{repositories: []string{".", "modules/m", "modules/m/modules/n", "modules/refs", "worktrees/own", "worktrees/seen", "worktrees/away"}, visible: []string{"worktrees/seen"}, hidden: []string{"worktrees/away"}}
	const all, moved = "wrm", "m"
	for rel, refused := range map[string]string{
		"config": all, "config.lock": all, "CONFIG": all, "config.worktree": all, "commondir": all, "hooks": all, "hooks/pre-commit": all, "Hooks/a/b": all,
		"config/x": "", "configs": "", "index": "", "index.lock": "", "HEAD": "", "info/attributes": "", "refs/heads/config": "", "rebase-merge": "",
		"modules": moved, "modules/m": "rm", "modules/m/config": all, "modules/m/index": "", "modules/m/hooks/x": all, "modules/refs/config": all, "modules/refs/refs/hooks/x": "",
		"worktrees": moved, "worktrees/own": "rm", "worktrees/own/commondir": all, "worktrees/own/gitdir": all, "worktrees/own/HEAD": "",
		"worktrees/seen": moved, "worktrees/seen/commondir": "wm", "worktrees/seen/HEAD": "",
		"worktrees/away": "rm", "worktrees/away/commondir": all, "worktrees/away/HEAD": "rm", "worktrees/away/HEAD.lock": "",
		"modules/m/modules/n": "rm", "modules/m/modules/n/config": all, "modules/m/modules/n/index": "",
		// These are new, and nobody knows whose.
		"modules/m/modules/new/x/config": all, "modules/m/modules/made/config": "",
		"modules/new": "", "modules/new/config": all, "modules/new/hooks/x": all, "modules/new/index": moved, "modules/a/b/config.lock": all,
		"worktrees/new/commondir": "wm", "worktrees/new/HEAD": moved,
		// The program has made these.
		"modules/made/config": "", "modules/made/a/hooks/x": "", "worktrees/made/commondir": "",
	} {
		got := ""
		made := func(folder string) bool {
			return slices.Contains([]string{"modules/m", "modules/made", "modules/m/modules/made", "worktrees/made"}, folder)
		}
		for i, change := range []sandbox.Change{sandbox.Writes, sandbox.Removes, sandbox.Moves} {
			if p.refuses(rel, change, made) {
				got += all[i : i+1]
			}
		}
		if got != refused {
			t.Errorf("%s: %q is refused, not %q", rel, got, refused)
		}
	}
}

// The outermost git folders are brokered, and bare repositories unless their folder contains other
// files.
func TestGitFoldersAreBrokered(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "", ".git/worktrees/seen/HEAD": "", ".git/worktrees/seen/commondir": "../..", ".git/worktrees/seen/logs/": "",
		".git/modules/m/HEAD": "", ".git/modules/m/objects/x": "", ".git/modules/m/refs/x": "", ".git/modules/m/logs/x": "",
		"bare/HEAD": "", "bare/objects/x": "", "bare/refs/x": "", "bare/description": "", "bare/modules/n/HEAD": "", "bare/modules/n/objects/x": "", "bare/modules/n/refs/x": "", "last/HEAD": "", "last/objects/x": "", "last/refs/x": "", "mixed/HEAD": "", "mixed/objects/x": "", "mixed/refs/x": "", "mixed/main.go": "",
		".git/notes.txt": "", "sub/.git/HEAD": "", "sub/.git/objects/x": "", "sub/.git/refs/x": "",
		"seen/.git": "gitdir: ../.git/worktrees/seen",
	})
	put(t, dir, map[string]string{".git/worktrees/seen/gitdir": filepath.Join(dir, "seen/.git") + "\n"})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, b := range g.Brokered {
		rel, _ := filepath.Rel(dir, b.Path)
		got[rel] = slices.Sorted(slices.Values(b.Open))
	}
	if diff := cmp.Diff(map[string][]string{".git": {"modules/m/logs", "modules/m/objects", "modules/m/refs", "objects", "refs"}, "bare": {"modules/n/objects", "modules/n/refs", "objects", "refs"}, "last": {"objects", "refs"}, "sub/.git": {"objects", "refs"}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "seen")}, g.Removable); diff != "" {
		t.Error(diff)
	}
}

// A worktree that the program has added where nothing stays is removed from the repository, and no
// other one.
func TestLostWorktreesAreRemoved(t *testing.T) {
	dir, user := place(t, map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/worktrees/old/HEAD": "", ".git/worktrees/old/commondir": "../..\n", ".git/worktrees/old/gitdir": "/none/.git\n"})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{
		".git/worktrees/lost/HEAD": "", ".git/worktrees/lost/commondir": "../..\n", ".git/worktrees/lost/gitdir": "/none/.git\n",
		".git/worktrees/hers/HEAD": "", ".git/worktrees/hers/commondir": "../..\n", ".git/worktrees/hers/gitdir": "/none/.git\n",
		".git/worktrees/new/config.worktree": "[core]\n\tfsmonitor = x\n",
		".git/worktrees/new/HEAD":            "", ".git/worktrees/new/commondir": "../..\n", ".git/worktrees/new/gitdir": filepath.Join(dir, "new/.git") + "\n", "new/.git": "gitdir: ../.git/worktrees/new\n",
	})
	for _, move := range [][2]string{{"worktrees", "moved"}, {"moved/old", "worktrees/old"}, {"moved/lost", "worktrees/lost"}, {"moved/hers", "worktrees/hers"}, {"moved/new", "worktrees/new"}} {
		if move[0] == "moved/old" {
			put(t, dir, map[string]string{".git/worktrees/": ""})
		}
		if err := os.Rename(filepath.Join(dir, ".git", move[0]), filepath.Join(dir, ".git", move[1])); err != nil {
			t.Fatal(err)
		}
	}
	cleaned, err := g.Clean(t.Context(), func(_, name string) bool { return name != "hers" && name != "worktrees" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".git/worktrees/lost (its worktree was in a folder that is deleted by now)", ".git/worktrees/new/config.worktree: core.fsmonitor"}, cleaned.Removed); diff != "" {
		t.Error(diff)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".git/worktrees/*"))
	if err != nil || len(left) != 3 {
		t.Errorf("left %q, %v", left, err)
	}
}

// A new file is not the old one, even if it gets the number of the old one.
func TestFilesAreKnownByTheirBirth(t *testing.T) {
	old := known{ID: "1:2", Born: "10"}
	for _, now := range []known{{ID: "1:2", Born: "11"}, {ID: "1:3", Born: "10"}, {ID: "1:2", Born: "10", Target: "/x"}} {
		if old.is(now) {
			t.Errorf("%+v is taken for %+v", now, old)
		}
	}
	if !old.is(old) {
		t.Error("a file is not itself")
	}
}

// What a new worktree has in common with one that was there before is git's and stays. Other
// copies go.
func TestCheckedOutFilesStay(t *testing.T) {
	repository := map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", "vendored/.git/HEAD": "", "vendored/.git/objects/x": "", "vendored/.git/refs/x": ""}
	dir, user := place(t, repository)
	put(t, dir, map[string]string{
		".envrc": "use nix\n", ".vscode/settings.json": "{}\n", ".vscode/tasks.json": "{}\n", ".claude/settings.json": "a\n", ".claude/settings.local.json": "b\n", "sub/.npmrc": "x\n",
		"vendored/.envrc": "evil\n", "deeper/.envrc": "evil\n", "deeper/.npmrc": "x\n",
	})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "deeper"} { // deeper had no worktree before
		put(t, dir, map[string]string{
			".git/worktrees/" + name + "/HEAD": "", ".git/worktrees/" + name + "/commondir": "../..\n", ".git/worktrees/" + name + "/gitdir": filepath.Join(dir, name, ".git") + "\n",
			name + "/.git": "gitdir: ../.git/worktrees/" + name + "\n",
		})
	}
	put(t, dir, map[string]string{
		"a/.envrc": "use nix\n", "a/.vscode/settings.json": "{}\n", "a/.claude/settings.json": "a\n", "a/sub/.npmrc": "x\n",
		"b/.envrc": "use bad\n", "a/deeper/.npmrc": "evil\n", "b/.vscode/settings.json": "{} \n", "b/.claude/settings.json": "a\n", "b/.claude/hook": "evil\n", "b/.npmrc": "x\n", "b/deeper/sub/.npmrc": "x\n", "b/.vscode/tasks.json": "{}\n",
		"copy/.envrc": "use nix\n", "c/.envrc": "evil\n",
	})
	if err := os.Chmod(filepath.Join(dir, "b/.vscode/tasks.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "deeper/.npmrc"), filepath.Join(dir, "was")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"deeper/.npmrc": "evil\n"}) // is not what was there before
	cleaned, err := g.Clean(t.Context(), everything)
	want := []string{"a/deeper/.npmrc", "b/.claude", "b/.envrc", "b/.npmrc", "b/.vscode/settings.json", "b/.vscode/tasks.json", "b/deeper/sub/.npmrc", "c/.envrc", "copy/.envrc"}
	if diff := cmp.Diff(Cleaned{Removed: want, Kept: []string{"deeper/.npmrc"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Only what consists of a repository alone can be brokered.
func TestFolderOfRepository(t *testing.T) {
	dir, user := place(t, map[string]string{"HEAD": "", "objects/x": "", "refs/x": "", "modules/m/HEAD": "", "modules/m/main.go": ""})
	tree := tooltest.Open(t, New(dir, user, ""))
	for _, ofGit := range []bool{false, true} {
		tree.ofGit = ofGit
		g, err := tree.Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(g.Brokered) == 1 && g.Brokered[0].Path == dir; got != ofGit || tree.isOnlyRepository(".") != ofGit || tree.isOnlyRepository("modules/m") {
			t.Errorf("the folder of git %t: %+v", ofGit, g.Brokered)
		}
	}
}

// Settings of git that were accepted are no change of the program's own.
func TestAcceptedConfigStays(t *testing.T) {
	const before, branch, alias = "[core]\n\tbare = false\n", "[core]\n\tbare = false\n[branch \"x\"]\n\trebase = true\n", "[alias]\n\tx = !sh\n"
	for _, tt := range []struct {
		after string
		kept  []string
	}{{branch, nil}, {branch + alias, []string{".git/config"}}} {
		dir, user := place(t, map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": before})
		g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if !g.Brokered[0].Accepts("config", before, branch) || g.Brokered[0].Accepts("config", before, before+alias) {
			t.Error("another config is accepted")
		}
		put(t, dir, map[string]string{".git/new": tt.after})
		if err := os.Rename(filepath.Join(dir, ".git/new"), filepath.Join(dir, ".git/config")); err != nil {
			t.Fatal(err)
		}
		cleaned, err := g.Clean(t.Context(), everything)
		if diff := cmp.Diff(Cleaned{Kept: tt.kept}, cleaned); diff != "" || err != nil {
			t.Errorf("%q: %s %v", tt.after, diff, err)
		}
	}
}

// A program in a linked worktree can write to the folder of git that it shares.
func TestProfileOfWorktree(t *testing.T) {
	for _, common := range []string{"", "/x/.git"} {
		var p sandbox.Profile
		g := Guards{record: record{Common: common}}
		g.Protect(&p)
		if (len(p.Write) > 0) != (common != "") {
			t.Errorf("with %q: %q", common, p.Write)
		}
	}
}
