//go:build unix

package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestCloseLeavesNoProcesses(t *testing.T) {
	tests := []struct {
		name  string
		flags []string
	}{
		{"grandchild", []string{"--grandchild"}},
		{"stubborn", []string{"--stubborn"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			s := source(t, stdioServer(t, append(tt.flags, "--pidfile", pidFile)...))
			discovered(t, s)
			pid, err := strconv.Atoi(lines(t, pidFile)[0])
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if running(pid) {
				t.Errorf("process %d still runs", pid)
			}
			if got := s.Info().State; got != StateDisconnected {
				t.Errorf("state %s", got)
			}
		})
	}
}

func TestFailedDiscoverLeavesNoProcesses(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	begun := func() bool { _, err := os.Stat(pidFile); return err == nil }
	for limit := 400 * time.Millisecond; !begun(); limit *= 2 {
		s := source(t, stdioServer(t, "--hang", "--stubborn", "--pidfile", pidFile), func(o *Options) { o.ConnectTimeout = limit })
		if _, _, err := s.Discover(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
	}
	pid, err := strconv.Atoi(lines(t, pidFile)[0])
	if err != nil {
		t.Fatal(err)
	}
	if running(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

// A server that is no longer needed ends before Close, and starts again if a call
// follows.
func TestUnneededServersEndBeforeClose(t *testing.T) {
	for _, listOnly := range []bool{true, false} {
		pidFile := filepath.Join(t.TempDir(), "pid")
		s := source(t, stdioServer(t, "--pidfile", pidFile), func(o *Options) { o.ListOnly = listOnly })
		tools, _ := discovered(t, s)
		call := registry.Call{Tool: "echo", Params: json.RawMessage(`{"text":"x"}`), Last: true}
		if !listOnly {
			if r, err := tools["echo"].Run(t.Context(), call); err != nil || r.IsError {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		pid, err := strconv.Atoi(lines(t, pidFile)[0])
		if err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(time.Millisecond)
		for running(pid) {
			<-tick.C
		}
		tick.Stop()
		if r, err := tools["echo"].Run(t.Context(), call); err != nil || r.IsError {
			t.Errorf("a call after the end: %+v, %v", r, err)
		}
	}
}

// running reports whether a process is running; a zombie is not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !errors.Is(err, fs.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
