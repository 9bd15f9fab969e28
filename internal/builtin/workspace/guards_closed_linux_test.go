package workspace

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
	opts, dir := place(t, map[string]string{
		".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "", ".git/modules/a": "", "sub/a.txt": "", "mine/.envrc": "mine",
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
	g, err := tooltest.Open(t, New(opts)).Guards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(g.ReadOnly, filepath.Join(dir, "mine")) {
		t.Errorf("a folder that cannot be read is writable: %q", g.ReadOnly)
	}
	put(t, dir, map[string]string{
		"sub/.envrc": "", "sub/deep/er/.envrc": "", "fixed/.envrc": "", ".husky/a/b": "",
		"new/.git/HEAD": "", "new/.git/objects/": "", "new/.git/refs/": "", "new/.git/hooks/post-commit": "", "new/.git/config": "[core]\n\tfsmonitor = x\n",
		".git/modules/m/HEAD": "", ".git/modules/m/objects/": "", ".git/modules/m/refs/": "", ".git/modules/m/hooks/post-commit": "",
	})
	chmod(0o311, "sub/deep/er", "sub/deep", "sub", "new/.git/hooks", "new/.git", ".git/modules/m/hooks", ".git/modules", ".git")
	chmod(0o555, "fixed", ".husky/a", ".husky")
	chmod(0, "new/.git/config")
	cleaned, err := g.Clean(t.Context(), everything)
	want := []string{
		".git/modules/m/hooks/post-commit", ".husky", "fixed/.envrc", "new/.git/config: core.fsmonitor", "new/.git/hooks/post-commit", "sub/.envrc", "sub/deep/er/.envrc",
	}
	if diff := cmp.Diff(want, cleaned.Removed); diff != "" || err != nil {
		t.Error(diff, err)
	}
	chmod(0o700, "mine") // make it readable for the check and the cleanup
	if text, err := os.ReadFile(filepath.Join(dir, "mine/.envrc")); string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}
