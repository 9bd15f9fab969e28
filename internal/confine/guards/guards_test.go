package guards

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/git"
)

// put writes files below a folder. A name with a trailing slash creates a
// folder.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(file, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// everything reports that the program tried to create every name in every folder.
func everything(_, _ string) bool { return true }

// nothing reports that it did not.
func nothing(_, _ string) bool { return false }

func TestGuardsListExistingPaths(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/hooks/pre-commit": "", ".git/config": "[core]\n\thooksPath = scripts/hooks\n\tfsmonitor = ./mon.sh\n",
		".git/modules/m/HEAD": "", ".git/modules/m/objects/x": "", ".git/modules/m/refs/x": "", ".git/modules/m/config": "",
		"bare/HEAD": "", "bare/objects/x": "", "bare/refs/x": "", "bare/config": "", "scripts/hooks/a": "", "mon.sh": "", "a.txt": "",
		"sub/.envrc": "", ".vscode/tasks.json": "", ".vscode/x/y": "", "node_modules/p/.npmrc": "", "mcp.json": "", "x.code-workspace": "",
	})
	w := tooltest.Open(t, New(dir, user, ""))
	g, err := w.Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	relative := func(paths []string) []string {
		var out []string
		for _, p := range paths {
			rel, _ := filepath.Rel(dir, p)
			out = append(out, rel)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	want := []string{".git/config", ".git/hooks", ".git/modules/m/config", ".vscode/tasks.json", ".vscode/x", "bare/config", "mcp.json", "mon.sh", "scripts/hooks", "sub/.envrc", "x.code-workspace"}
	if diff := cmp.Diff(want, relative(g.ReadOnly)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".git", ".git/modules/m", ".vscode", "bare"}, relative(g.Fixed)); diff != "" {
		t.Error(diff)
	}
}

func TestNewGuardedFilesAreRemoved(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "[core]\n\thooksPath = later\n", ".envrc": "mine", "old/.npmrc": "mine",
	})
	w := tooltest.Open(t, New(dir, user, ""))
	g, err := w.Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{
		"sub/.envrc": "", ".vscode/tasks.json": "", "later/pre-commit": "", ".git/hooks/post-checkout": "", ".git/commondir": "../evil", "a.txt": "", "src/b.go": "",
		"new/.git/HEAD": "", "new/.git/objects/": "", "new/.git/refs/": "", "new/.git/hooks/pre-commit": "", "new/.git/hooks/a.sample": "", "new/.git/commondir": "../../../x",
		"new/.git/config": "[core]\n\tbare = false\n\tfsmonitor = ./x\n[remote \"o r\"]\n\turl = https://a.example/x.git\n[alias]\n\tx = !sh\n[remote \"e\"]\n\turl = ext::sh -c x\n[core]hooksPath=.\n[gc]\n\trecentObjectsHook = x\n[user]\n\temail",
		"evil/HEAD":       "", "evil/objects/": "", "evil/refs/": "", "evil/config": "[filter \"x\"]\n\tclean = sh\n",
		"tree/.git": "gitdir: ../new/.git", "out/.git": "gitdir: /elsewhere",
		"docs/HEAD": "", "docs/config": "[core]\n\tfsmonitor = x\n", // no repository
	})
	put(t, dir, map[string]string{"linked/": ""})
	tooltest.Link(t, "/elsewhere", filepath.Join(dir, "linked/.git"))
	if err := os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	cleaned, err := g.Clean(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".git/commondir", ".git/hooks", ".vscode/tasks.json", "evil/config: filter.clean", "later", "linked/.git",
		"new/.git/commondir", "new/.git/config: alias.x", "new/.git/config: core.fsmonitor", "new/.git/config: core.hookspath", "new/.git/config: gc.recentobjectshook", "new/.git/config: remote.url",
		"new/.git/hooks/pre-commit", "out/.git", "sub/.envrc",
	}
	if diff := cmp.Diff(want, cleaned.Removed); diff != "" {
		t.Error(diff)
	}
	config, err := os.ReadFile(filepath.Join(dir, "new/.git/config"))
	if want := "[core]\n\tbare = \"false\"\n[remote \"o r\"]\n\turl = \"https://a.example/x.git\"\n[user]\n\temail = \"\"\n"; string(config) != want || err != nil {
		t.Errorf("the settings are now %q, %v", config, err)
	}
	for _, kept := range []string{".envrc", "moved/.npmrc", "tree/.git", "a.txt", "new/.git/hooks/a.sample", "docs/config"} {
		if _, err := os.Lstat(filepath.Join(dir, kept)); err != nil {
			t.Error(err)
		}
	}
	if again, err := g.Clean(t.Context(), everything); len(again.Removed)+len(again.Kept) > 0 || err != nil {
		t.Errorf("second time: %q, %v", again, err)
	}
}

// Another program saves a file while the confined program runs, which ends the
// protection of the file.
func TestReplacedFilesAreKept(t *testing.T) {
	dir, user := place(t, map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "mine", ".envrc": "mine"})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{".git/config.lock": "newer", ".envrc.lock": "newer"})
	for _, name := range []string{".git/config", ".envrc"} {
		if err := os.Rename(filepath.Join(dir, name+".lock"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cleaned, err := g.Clean(t.Context(), everything)
	if diff := cmp.Diff(Cleaned{Kept: []string{".envrc", ".git/config"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, name := range []string{".git/config", ".envrc"} {
		if text := tooltest.TextIn(t, filepath.Join(dir, name)); text != "newer" {
			t.Errorf("%s has %q", name, text)
		}
	}
}

// Files that the program did not try to create belong to another program.
func TestFilesOfOtherProgramsAreKept(t *testing.T) {
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".vscode/tasks.json": "", "sub/.npmrc": "", ".git/rebase-merge/git-rebase-todo": "",
	})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		".envrc": "hers", ".vscode/launch.json": "hers", "made/.claude/x": "", "made/.bashrc": "", ".git/commondir": "hers", ".git/hooks/pre-commit": "hers",
		"hers/.git/HEAD": "", "hers/.git/objects/x": "", "hers/.git/refs/x": "", "hers/.git/hooks/post-merge": "hers", "hers/.git/config": "[core]\n\tfsmonitor = hers\n",
		".git/rebase-merge/git-rebase-todo": "exec hers\n",
	}
	put(t, dir, files)
	cleaned, err := g.Clean(t.Context(), func(_, name string) bool { return slices.Contains([]string{"made", ".claude", ".vscode", "x"}, name) })
	want := Cleaned{Removed: []string{"made/.claude"}, Kept: []string{
		".envrc", ".git/commondir", ".git/hooks", ".git/rebase-merge/git-rebase-todo: exec hers", ".vscode/launch.json",
		"hers/.git/config: core.fsmonitor", "hers/.git/hooks/post-merge", "made/.bashrc",
	}}
	if diff := cmp.Diff(want, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for name, want := range files {
		if name == "made/.claude/x" {
			continue
		}
		if text := tooltest.TextIn(t, filepath.Join(dir, name)); text != want {
			t.Errorf("%s has %q", name, text)
		}
	}
}

// A linked worktree shares a git folder outside the workspace only if that folder
// refers back to it.
func TestLinkedWorktreeMustReferBack(t *testing.T) {
	top := tooltest.Place(t, map[string]string{
		"main/.git/HEAD": "", "main/.git/objects/x": "", "main/.git/refs/x": "", "main/.git/config": "", "main/.git/hooks/a": "",
		"main/.git/worktrees/w/HEAD": "", "main/.git/worktrees/w/commondir": "../..\n", "tree/a": "", "other/a": "",
		// As "git worktree add --relative-paths" writes them.
		"relative/.git": "gitdir: ../main/.git/worktrees/r\n", "main/.git/worktrees/r/gitdir": "../../../../relative/.git\n", "main/.git/worktrees/r/commondir": "../..\n",
	})
	put(t, top, map[string]string{"tree/.git": "gitdir: " + top + "/main/.git/worktrees/w\n", "other/.git": "gitdir: ../main/.git/worktrees/w\n",
		"main/.git/worktrees/w/gitdir": top + "/tree/.git\n"})
	w := tooltest.Open(t, New(filepath.Join(top, "tree"), git.User{}, ""))
	g, err := w.Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(top, "main/.git")
	if g.Common != common || !slices.Contains(g.ReadOnly, common+"/hooks") || !slices.Contains(g.ReadOnly, common+"/worktrees/w/gitdir") {
		t.Errorf("common %q, read-only %q", g.Common, g.ReadOnly)
	}
	put(t, top, map[string]string{"main/.git/config.worktree": "x"})
	if cleaned, err := g.Clean(t.Context(), everything); !slices.Equal(cleaned.Removed, []string{common + "/config.worktree"}) || err != nil {
		t.Errorf("removed %q, %v", cleaned.Removed, err)
	}
	w = tooltest.Open(t, New(filepath.Join(top, "other"), git.User{}, ""))
	if g, err := w.Guards(t.Context(), Scope{}); err != nil || g.Common != "" {
		t.Errorf("a folder that does not refer back: common %q, %v", g.Common, err)
	}
	w = tooltest.Open(t, New(filepath.Join(top, "relative"), git.User{}, ""))
	if g, err := w.Guards(t.Context(), Scope{}); err != nil || g.Common != common {
		t.Errorf("a worktree with relative paths: common %q, %v", g.Common, err)
	}
}

func TestNewRebaseCommandsAreRemoved(t *testing.T) {
	const before = "pick 1111111 one\nexec make test\n"
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/rebase-merge/git-rebase-todo": before,
		"other/.git/HEAD": "", "other/.git/objects/x": "", "other/.git/refs/x": "",
	})
	w := tooltest.Open(t, New(dir, user, ""))
	g, err := w.Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{
		".git/rebase-merge/git-rebase-todo":       before + "  exec ./evil\n# exec ./comment\n",
		"other/.git/rebase-merge/git-rebase-todo": "x\t./evil\npick 2222222 exec two\n",
		"new/.git/rebase-merge/git-rebase-todo":   "exec make test\n", "new/.git/HEAD": "", "new/.git/objects/x": "", "new/.git/refs/x": "",
	})
	cleaned, err := g.Clean(t.Context(), everything)
	want := []string{".git/rebase-merge/git-rebase-todo: exec ./evil", "new/.git/rebase-merge/git-rebase-todo: exec make test", "other/.git/rebase-merge/git-rebase-todo: x\t./evil"}
	if diff := cmp.Diff(want, cleaned.Removed); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	for name, want := range map[string]string{".git": before + "# exec ./comment\n", "other/.git": "pick 2222222 exec two\n", "new/.git": ""} {
		if got := tooltest.TextIn(t, filepath.Join(dir, name, "rebase-merge/git-rebase-todo")); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A name that the program has used in one folder says nothing about other folders.
func TestFilesInOtherFoldersAreKept(t *testing.T) {
	repository := map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/hooks/pre-commit": "", ".git/config": "[core]\n\tfsmonitor = x\n"}
	dir, user := place(t, map[string]string{"his/a": "", "hers/a": ""})
	tree := tooltest.Open(t, New(dir, user, ""))
	g, err := tree.Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"his", "hers"} {
		put(t, filepath.Join(dir, name), repository)
		put(t, filepath.Join(dir, name), map[string]string{".envrc": "", ".git/rebase-merge/git-rebase-todo": "exec x\n"})
	}
	var his []string
	for _, folder := range []string{"his", "his/.git", "his/.git/rebase-merge"} {
		k, err := tree.lookup(folder)
		if err != nil {
			t.Fatal(err)
		}
		his = append(his, k.ID)
	}
	cleaned, err := g.Clean(t.Context(), func(folder, _ string) bool { return slices.Contains(his, folder) })
	want := Cleaned{
		Removed: []string{"his/.envrc", "his/.git/config: core.fsmonitor", "his/.git/hooks/pre-commit", "his/.git/rebase-merge/git-rebase-todo: exec x"},
		Kept:    []string{"hers/.envrc", "hers/.git/config: core.fsmonitor", "hers/.git/hooks/pre-commit", "hers/.git/rebase-merge/git-rebase-todo: exec x"},
	}
	if diff := cmp.Diff(want, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if text := tooltest.TextIn(t, filepath.Join(dir, "hers/.git/config")); text != repository[".git/config"] {
		t.Errorf("her settings are %q", text)
	}
}

// git treats folders named after the parts of a repository as submodules and worktrees, too.
func TestSubmodulesNamedLikePartsOfRepositoriesAreGuarded(t *testing.T) {
	files := map[string]string{".git/HEAD": "", ".git/objects/ab/x": "", ".git/refs/x": "", ".git/config": "", ".git/worktrees/objects/HEAD": "", ".git/worktrees/objects/commondir": "../.."}
	want := []string{".git/worktrees/objects/commondir"}
	for _, name := range []string{"objects", "lib/objects", "objects/3d", "objects/pack"} {
		for _, part := range []string{"HEAD", "objects/x", "refs/x", "config"} {
			files[".git/modules/"+name+"/"+part] = ""
		}
		want = append(want, ".git/modules/"+name+"/config")
	}
	dir, user := place(t, files)
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range want {
		if !slices.Contains(g.ReadOnly, filepath.Join(dir, name)) {
			t.Errorf("%s is not among %q", name, g.ReadOnly)
		}
	}
}
