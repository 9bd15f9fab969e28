//go:build unix

package trust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/state"
)

// TestMain lets the test binary act as one of several processes, which share
// nothing but the files.
func TestMain(m *testing.M) {
	role := os.Getenv("TRUST_TEST_ROLE")
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := runHelper(role, os.Getenv("TRUST_TEST_STATE"), os.Getenv("TRUST_TEST_ROOT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// background is the context of these processes.
var background = context.Background()

// variant returns the files of a project in one of two versions.
func variant(letter string) []File {
	text := strings.Repeat(letter, maxText/2)
	return []File{{Name: ".toolreg/settings.yaml", Path: "/p/settings.yaml", Sum: letter, Size: int64(len(text)), Data: []byte(text)}}
}

func runHelper(role, path, root string) error {
	dir, err := state.OpenDir(path)
	if err != nil {
		return err
	}
	dir.Wait = time.Minute
	s := NewStore(dir)
	for i := 0; ; i++ {
		switch role {
		case "grant": // its own project and one that all processes share
			if i == 5 {
				return nil
			}
			err = errors.Join(grantAnd(s, root), grantAnd(s, filepath.Dir(root)))
		case "revoke":
			if i == 5 {
				return nil
			}
			_, err = s.Revoke(background, filepath.Dir(root))
		case "read":
			if i == 50 {
				return nil
			}
			_, err = s.Check(filepath.Dir(root), variant("a"))
		case "loop": // until it is killed
			_, err = s.Grant(background, root, variant(string("ab"[i%2])), time.Unix(1, 0))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", role, err)
		}
	}
}

func grantAnd(s *Store, root string) error {
	aside, err := s.Grant(background, root, variant("a"), time.Unix(1, 0))
	if err == nil && aside != "" {
		err = fmt.Errorf("%s was set aside as damaged", aside)
	}
	return err
}

func helperCommand(t *testing.T, role, stateDir, root string) *exec.Cmd {
	t.Helper()
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TRUST_TEST_ROLE="+role, "TRUST_TEST_STATE="+stateDir, "TRUST_TEST_ROOT="+root)
	cmd.Stderr = os.Stderr
	return cmd
}

// Twenty processes grant, read and revoke concurrently: none fails, and no grant of
// another project is lost.
func TestConcurrentProcessesLoseNoGrant(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	base := tempDir(t)
	stateDir := filepath.Join(base, "state")
	roles := []string{"grant", "grant", "read", "grant", "revoke"}
	var wg sync.WaitGroup
	for i := range 20 {
		cmd := helperCommand(t, roles[i%len(roles)], stateDir, filepath.Join(base, "shared", fmt.Sprint(i)))
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	dir, err := state.OpenDir(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(dir)
	for i := range 20 {
		want := roles[i%len(roles)] == "grant"
		st, err := s.Check(filepath.Join(base, "shared", fmt.Sprint(i)), variant("a"))
		if err != nil || st.Trusted != want {
			t.Errorf("process %d: trusted %v, %v; want %v", i, st.Trusted, err, want)
		}
	}
	if st, err := s.Check(filepath.Join(base, "shared"), variant("b")); err != nil || st.Trusted {
		t.Errorf("files without a grant are trusted: %+v, %v", st, err)
	}
}

// A process that is killed while it grants leaves either the old grant or the new
// one.
func TestKilledProcessLeavesOldOrNewGrant(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	base := tempDir(t)
	stateDir, root := filepath.Join(base, "state"), filepath.Join(base, "p")
	dir, err := state.OpenDir(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(dir)
	seen := map[string]bool{}
	for i := range 30 {
		cmd := helperCommand(t, "loop", stateDir, root)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Wait until the process has written once, then a little longer each time,
		// so that the kills hit every stage.
		last := filepath.Join(stateDir, fileName(root))
		before, _ := os.Stat(last)
		for deadline := time.Now().Add(time.Minute); ; {
			now, err := os.Stat(last)
			if err == nil && (before == nil || !os.SameFile(before, now)) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the process writes nothing")
			}
		}
		for range i % 20 * 10 {
			_, _ = os.Stat(last)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		a, errA := s.Check(root, variant("a"))
		b, errB := s.Check(root, variant("b"))
		if errA != nil || errB != nil || a.Trusted == b.Trusted {
			t.Fatalf("kill %d: a %v %v, b %v %v", i, a.Trusted, errA, b.Trusted, errB)
		}
		seen[fmt.Sprint(a.Trusted)] = true
	}
	if len(seen) != 2 {
		t.Error("every kill left the same grant: the test proves nothing")
	}
}
