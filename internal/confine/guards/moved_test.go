package guards

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// Folders named node_modules or .git are not searched for guarded names, but links can lead
// there, and folders can be moved out of them.
func TestFoldersThatAreNotSearchedHideNothing(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", "sub/.git/HEAD": "", "sub/.git/objects/x": "", "sub/.git/refs/x": "",
		"node_modules/mine/.vscode/tasks.json": "", "node_modules/p/a.js": "", "node_modules/early/deep/.vscode/tasks.json": "",
	})
	tooltest.Link(t, "node_modules/mine", filepath.Join(dir, "mine"))
	for !isBornBefore(filepath.Join(dir, "mine"), time.Now().Add(-clockTick)) {
		runtime.Gosched() // the folder is older than the call
	}
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{
		"node_modules/mine/.envrc": "", "node_modules/evil/.vscode/tasks.json": "", ".git/evil/a": "", "node_modules/p/.npmrc": "", "node_modules/sub/a": "",
	})
	for from, to := range map[string]string{"node_modules/early/deep": "moved", "sub/.git": "node_modules/sub/.git"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, map[string]string{"node_modules/sub/.git/hooks/post-commit": "", "node_modules/bare/HEAD": "", "node_modules/plain/a.js": ""})
	for link, target := range map[string]string{"evil": "node_modules/evil", "other": ".git/evil", "fine": "node_modules/p/a.js", "plain": "node_modules/plain", "repo": "node_modules/sub", "bare": "node_modules/bare"} {
		tooltest.Link(t, target, filepath.Join(dir, link))
	}
	cleaned, err := g.Clean(t.Context(), func(_, name string) bool { return name != ".vscode" && name != "tasks.json" })
	want := Cleaned{Removed: []string{"bare", "evil", "moved/.vscode/tasks.json", "node_modules/mine/.envrc", "node_modules/sub/.git/hooks", "other", "repo"}, Kept: []string{"node_modules/evil/.vscode/tasks.json"}}
	if diff := cmp.Diff(want, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, kept := range []string{"mine/.vscode/tasks.json", "fine", "plain", "node_modules/p/.npmrc"} {
		if _, err := os.Lstat(filepath.Join(dir, kept)); err != nil {
			t.Error(err)
		}
	}
}

// git writes to its own files through links.
func TestLinksInRepositoriesAreRemoved(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", "bare/HEAD": "", "bare/objects/x": "", "bare/refs/x": "", "bare/tree/a": "",
	})
	tooltest.Link(t, "/elsewhere/MERGE_HEAD", filepath.Join(dir, ".git/MERGE_HEAD"))
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{".git/logs/refs/a": "", ".git/sequencer/opts": "[options]\n\tstrategy = d/evil\n\tstrategy-option = ours\n\tedit = true\n", ".git/rebase-merge/strategy": "d/evil\n",
		"bare/rebase-merge/strategy": "ort\n", "bare/sequencer": "no folder", "plain/refs/a": "", "plain/HEAD": ""})
	if err := os.Remove(filepath.Join(dir, ".git/HEAD")); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		".git/COMMIT_EDITMSG": "/elsewhere/.bashrc", ".git/gc.log": "/elsewhere", ".git/ORIG_HEAD": "refs/heads/main", ".git/logs/HEAD": "../refs/heads/main", ".git/objects/pack": "/elsewhere", ".git/HEAD": "refs/heads/main", ".git/logs/refs/heads": "/elsewhere",
		"bare/MERGE_MSG": "/elsewhere", "bare/tree/b": "/elsewhere", "plain/objects": "/elsewhere", "plain/config": "/elsewhere/config",
	} {
		tooltest.Link(t, target, filepath.Join(dir, link))
	}
	cleaned, err := g.Clean(t.Context(), everything)
	want := Cleaned{Removed: []string{
		".git/COMMIT_EDITMSG", ".git/ORIG_HEAD", ".git/gc.log", ".git/logs/HEAD", ".git/logs/refs/heads", ".git/objects/pack", ".git/rebase-merge/strategy: d/evil", ".git/sequencer/opts: strategy = d/evil", "bare/MERGE_MSG", "plain/config", "plain/objects",
	}}
	if diff := cmp.Diff(want, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got := tooltest.TextIn(t, filepath.Join(dir, ".git/sequencer/opts")); got != "[options]\n\tstrategy-option = ours\n\tedit = true\n" {
		t.Errorf("the options are now %q", got)
	}
	if target, err := os.Readlink(filepath.Join(dir, ".git/HEAD")); target != "refs/heads/main" || err != nil {
		t.Error(target, err)
	}
}

// A link that leads nowhere in particular does not keep the others from being followed.
func TestEachLinkIsFollowed(t *testing.T) {
	for name, target := range map[string]string{"a": "file", "b": "missing", "c": "/", "d": ".git/refs", "e": "folder", "f/node_modules": "../folder"} {
		dir, user := place(t, map[string]string{
			".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", "node_modules/evil/x": "", "file": "", "folder/x": "", "f/x": "",
		})
		tooltest.Link(t, target, filepath.Join(dir, name))
		g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		last := filepath.Join(filepath.Dir(name), "sub/z") // which is found after the links above it
		put(t, dir, map[string]string{"node_modules/evil/.vscode/tasks.json": "", filepath.Dir(last) + "/": ""})
		tooltest.Link(t, filepath.Join(dir, "node_modules/evil"), filepath.Join(dir, last))
		cleaned, err := g.Clean(t.Context(), func(_, created string) bool { return created == "z" })
		if diff := cmp.Diff([]string{last}, cleaned.Removed); diff != "" || err != nil {
			t.Errorf("%s -> %s: %s %v", name, target, diff, err)
		}
	}
}

// A repository that an earlier program left where none are searched is searched where this one
// has moved it.
func TestMovedRepositoriesAreDisarmed(t *testing.T) {
	dir, user := place(t, map[string]string{
		"node_modules/r/.git/HEAD": "", "node_modules/r/.git/objects/x": "", "node_modules/r/.git/refs/x": "", "node_modules/r/.git/config": "[core]\n\tfsmonitor = x\n", "node_modules/r/.git/hooks/pre-commit": "",
	})
	for !isBornBefore(filepath.Join(dir, "node_modules/r/.git"), time.Now().Add(-clockTick)) {
		runtime.Gosched() // the folder is older than the call
	}
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "node_modules/r"), filepath.Join(dir, "r")); err != nil {
		t.Fatal(err)
	}
	cleaned, err := g.Clean(t.Context(), func(_, name string) bool { return name == sandbox.Renamed+"r" })
	if diff := cmp.Diff(Cleaned{Removed: []string{"r/.git/config: core.fsmonitor", "r/.git/hooks/pre-commit"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// What another program that still runs may have created is named if this one moves it: that
// program may have ended while it could not be found.
func TestFilesOfProgramsThatRunAreNotKnown(t *testing.T) {
	dir, user := place(t, map[string]string{"old/.envrc": "mine"})
	logs := t.TempDir()
	start := func() *Guards {
		t.Helper()
		g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for !isBornBefore(filepath.Join(dir, "old/.envrc"), clock().Add(-clockTick)) {
		runtime.Gosched()
	}
	first := start()
	put(t, dir, map[string]string{"new/.envrc": "", "still/.envrc": ""})
	for !isBornBefore(filepath.Join(dir, "still/.envrc"), time.Now().Add(-clockTick)) {
		runtime.Gosched()
	}
	second := start() // it moves new and old, and back
	cleaned, err := second.Clean(t.Context(), func(_, name string) bool { return name == sandbox.Renamed+"new" || name == sandbox.Renamed+"old" })
	if diff := cmp.Diff(Cleaned{Kept: []string{"new/.envrc"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	first.Forget()
}
