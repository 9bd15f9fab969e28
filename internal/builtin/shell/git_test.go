//go:build unix

package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Files that look like a repository, such as a file tool can write, must not
// make git run anything when it is called in their folder.
func TestGitRunsNothingFromEmbeddedRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, count := range []string{"", "1"} {
		opts, dir := shellPlace(t, map[string]string{
			"sub/HEAD":   "ref: refs/heads/main\n",
			"sub/config": "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch ran; false\n",
			"sub/keep":   "",
		})
		for _, d := range []string{"sub/objects", "sub/refs"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if count != "" {
			opts.Env = append(opts.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=jane")
		}
		r := run(t, opts, "run_shell_command", `{"command":"git status; git config user.name; find . -name ran","directory":"sub"}`)
		if text := r.Text(); strings.Contains(text, "./ran") || !strings.Contains(text, "safe.bareRepository") || strings.Contains(text, "jane") != (count != "") {
			t.Errorf("with %q settings in the environment: %s", count, text)
		}
	}
}
