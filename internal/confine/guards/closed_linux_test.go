package guards

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// A program cannot keep files from being cleaned by removing permissions: other programs
// need no permission to list a folder if they know the name of a file.
func TestClosedFoldersAreCleaned(t *testing.T) {
	if os.Geteuid() == 0 { // permissions do not apply to root
		const nobody = 65534
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestClosedFoldersAreCleaned$")
		cmd.Env, cmd.Dir = []string{"TMPDIR=/tmp"}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	dir, user := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "", ".git/modules/a": "", "sub/a.txt": "", "mine/.envrc": "mine", "other/locked/a": "",
	})
	chmod := func(mode os.FileMode, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	chmod(0, "mine")
	chmod(0o500, "other/locked", "other")
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(g.ReadOnly, filepath.Join(dir, "mine")) {
		t.Errorf("a folder that cannot be read is writable: %q", g.ReadOnly)
	}
	put(t, dir, map[string]string{
		"sub/.envrc": "", "sub/deep/er/.envrc": "", "fixed/.envrc": "", "shut/.claude/a": "", "link/": "", ".husky/a/b/c": "",
		"new/.git/HEAD": "", "new/.git/objects/": "", "new/.git/refs/": "", "new/.git/hooks/post-commit": "", "new/.git/config": "[core]\n\tfsmonitor = x\n",
		".git/modules/m/HEAD": "", ".git/modules/m/objects/": "", ".git/modules/m/refs/": "", ".git/modules/m/hooks/post-commit": "",
	})
	chmod(0o311, "sub/deep/er", "sub/deep", "sub", "new/.git/hooks", "new/.git", ".git/modules/m/hooks", ".git/modules", ".git")
	tooltest.Link(t, "../other", filepath.Join(dir, "link/.vscode"))
	chmod(0o555, "fixed", "link", "shut/.claude", "shut", ".husky/a/b", ".husky/a", ".husky")
	chmod(0, "new/.git/config")
	cleaned, err := g.Clean(t.Context(), everything)
	want := []string{
		".git/modules/m/hooks/post-commit", ".husky", "fixed/.envrc", "link/.vscode", "new/.git/config: core.fsmonitor", "new/.git/hooks/post-commit", "shut/.claude", "sub/.envrc", "sub/deep/er/.envrc",
	}
	if diff := cmp.Diff(want, cleaned.Removed); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, name := range []string{"other", "other/locked"} { // a link to it is removed
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o500 {
			t.Errorf("%s has other permissions: %v, %v", name, info, err)
		}
	}
	chmod(0o700, "other", "other/locked")
	chmod(0o700, "mine") // make it readable for the check and the cleanup
	if text, err := os.ReadFile(filepath.Join(dir, "mine/.envrc")); string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// A folder that is removed or replaced during a scan is not one that cannot be read.
func TestFoldersThatAreGoneAreNotClosed(t *testing.T) {
	dir, user := place(t, map[string]string{"file": ""})
	tooltest.Link(t, "loop", filepath.Join(dir, "loop"))
	tree := tooltest.Open(t, New(dir, user, ""))
	if err := tree.open(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"missing", "file", "loop"} {
		s := &guarded{unlock: func(string) error { return nil }}
		if err := tree.scanFolder(t.Context(), s, name, true); err == nil || len(s.closed) > 0 {
			t.Errorf("%s: %v, closed %q", name, err, s.closed)
		}
	}
}
