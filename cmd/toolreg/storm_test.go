//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// inProject creates a project with its own home, and returns a function that creates
// commands to run there. globals come before their arguments.
func inProject(t testing.TB, globals ...string) (dir string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	dir = t.TempDir()
	toolreg, err := exec.LookPath("toolreg")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) *exec.Cmd {
		cmd := exec.Command(toolreg, slices.Concat(globals, args)...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "PWD=" + dir, "GORACE=atexit_sleep_ms=0"}
		return cmd
	}
}

// Fifty people answer "always" at fifty terminals at once, each about another program.
// All fifty answers are stored.
func TestFiftyTerminalsAnswerAtOnce(t *testing.T) {
	const runs = 50
	dir, command := inProject(t)
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

// Fifty agents that have not seen the list write it at once. The first one's list is
// saved; all others are refused and shown that list.
func TestFiftyRunsWriteTodosAtOnce(t *testing.T) {
	const runs = 50
	_, command := inProject(t)
	var wg sync.WaitGroup
	var outs [runs]bytes.Buffer
	var errs [runs]error
	for i := range runs {
		cmd := command("call", "todo_write", "--yes", fmt.Sprintf("--context=agentId=a%d", i))
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"todos":[{"id":"%d","content":"by %d","status":"pending"}]}`, i, i))
		cmd.Stdout = &outs[i]
		wg.Go(func() { errs[i] = cmd.Run() })
	}
	wg.Wait()
	list, err := command("call", "todo_read").Output()
	if err != nil {
		t.Fatal(err)
	}
	saved := 0
	for i := range runs {
		want := "Not saved: another writer changed the list since you saw it."
		if errs[i] == nil {
			want = fmt.Sprintf("Saved. 1 todo: 0 in progress, 1 pending, 0 completed.\n[ ] %d (medium): by %d\n", i, i)
			saved++
		}
		if out := outs[i].String(); !strings.HasPrefix(out, want) || !strings.HasSuffix(out, string(list)) {
			t.Errorf("run %d: %v, %q; the list is %q", i, errs[i], out, list)
		}
	}
	if saved != 1 {
		t.Errorf("%d runs were saved", saved)
	}
}

// Thirty runs read and refresh the cache at once, and some are killed. The others all
// print the same, and what a killed run leaves causes no later warning.
func TestThirtyRunsShareTheCache(t *testing.T) {
	const runs = 30
	dir, command := inProject(t, "--settings", "s.yaml")
	text := "cache: {discovery: 1h}\nmcpServers:\n  a: {command: mcp-testserver, args: [--names, 'x,y']}\n  b: {command: mcp-testserver, args: [--names, 'y,z']}\n"
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := command("list", "--json").Output()
	if err != nil || !bytes.Contains(want, []byte(`"name":"b__y"`)) {
		t.Fatalf("%s, %v", want, err)
	}
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			args := [][]string{{"list", "--json"}, {"list", "--json", "--refresh"}, {"discover", "--refresh"}}[i%3]
			cmd := command(args...)
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			if i%3 == 2 { // kill it at some point
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				return
			}
			if err := cmd.Wait(); err != nil || errOut.Len() > 0 || !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%v: %v\n%s\n%s", args, err, errOut.String(), out.String())
			}
		})
	}
	wg.Wait()
	cmd := command("--cached", "list", "--json")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if out, err := cmd.Output(); err != nil || errOut.Len() > 0 || !bytes.Equal(out, want) {
		t.Errorf("afterwards: %v\n%s\n%s", err, errOut.String(), out)
	}
}
