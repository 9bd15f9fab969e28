package policy

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolreg/toolreg/internal/state"
)

const (
	processes = 20
	kills     = 25
)

// TestMain lets the test binary act as a process that remembers answers.
func TestMain(m *testing.M) {
	if dir := os.Getenv("POLICY_TEST_DIR"); dir != "" {
		os.Exit(runHelper(dir, os.Getenv("POLICY_TEST_PREFIX"), os.Getenv("POLICY_TEST_ANSWERS") == "one"))
	}
	os.Exit(m.Run())
}

// runHelper remembers one answer, or one after the other until it is killed, and
// prints each answer after saving it.
func runHelper(path, prefix string, one bool) int {
	d, err := state.OpenDir(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	a := &Approvals{Dir: d, Project: "/p"}
	for i := 0; ; i++ {
		program := fmt.Sprintf("%s-%d", prefix, i)
		if err := a.Remember(context.Background(), shellTool(program), Scope{Kind: ScopeCommand, Values: []string{program}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(program)
		if one {
			return 0
		}
	}
}

func helperCommand(t *testing.T, dir, prefix, answers string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "POLICY_TEST_DIR="+dir, "POLICY_TEST_PREFIX="+prefix, "POLICY_TEST_ANSWERS="+answers)
	cmd.Stderr = os.Stderr
	return cmd
}

// programs returns the commands that the approvals in dir cover.
func programs(t *testing.T, dir string) []string {
	t.Helper()
	d, err := state.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := (&Approvals{Dir: d, Project: "/p"}).List(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range list {
		out = append(out, x.Value)
	}
	return out
}

func TestConcurrentProcessesLoseNoApproval(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	dir := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for i := range processes {
		cmd := helperCommand(t, dir, fmt.Sprintf("p%d", i), "one")
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := programs(t, dir); len(got) != processes {
		t.Errorf("%d answers of %d are left: %q", len(got), processes, got)
	}
}

// Processes are killed while they remember answers. Answers that were saved before
// remain, and the file stays valid.
func TestKilledProcessesLoseNoApproval(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	dir := filepath.Join(t.TempDir(), "state")
	var kept []string
	for i := range kills {
		cmd := helperCommand(t, dir, fmt.Sprintf("k%d", i), "many")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + i%3 {
			if lines.Scan() {
				kept = append(kept, strings.TrimSpace(lines.Text()))
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // output that was still in the pipe
			kept = append(kept, strings.TrimSpace(lines.Text()))
		}
		_ = cmd.Wait() // it was killed
	}
	found := programs(t, dir)
	for _, program := range kept {
		if !slices.Contains(found, program) {
			t.Errorf("%q is lost", program)
		}
	}
	if len(kept) < kills || len(found) > len(kept)+kills {
		t.Errorf("%d answers were kept, %d found", len(kept), len(found))
	}
	t.Logf("%d kills, %d answers kept, %d found", kills, len(kept), len(found))
}
