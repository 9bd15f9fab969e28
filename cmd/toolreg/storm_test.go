//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Fifty people answer "always" at fifty terminals at once, each about another
// program: fifty answers are kept.
func TestFiftyTerminalsAnswerAtOnce(t *testing.T) {
	const runs = 50
	dir := t.TempDir()
	toolreg, err := exec.LookPath("toolreg")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(toolreg, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "PWD=" + dir}
		return cmd
	}
	var wg sync.WaitGroup
	for i := range runs {
		program := filepath.Join(dir, fmt.Sprintf("p%d", i))
		if err := os.Symlink("/bin/true", program); err != nil {
			t.Fatal(err)
		}
		cmd := command("call", "run_shell_command", "command="+program)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		wg.Go(func() {
			if shown, err := atTerminal(cmd, []string{"a\n"}); err != nil || errOut.Len() > 0 {
				t.Errorf("%v\n%s\n%s", err, shown, errOut.String())
			}
		})
	}
	wg.Wait()
	list, err := command("approvals", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		if !strings.Contains(string(list), fmt.Sprintf("/p%d\t", i)) {
			t.Errorf("the answer of run %d is lost", i)
		}
	}
	if n := strings.Count(string(list), "\n"); n != runs {
		t.Errorf("%d answers of %d are left", n, runs)
	}
}
