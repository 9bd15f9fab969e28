//go:build unix

package mcpclient

import (
	"context"
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
)

func TestCloseLeavesNothingBehind(t *testing.T) {
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

func TestFailedDiscoverLeavesNothingBehind(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := source(t, stdioServer(t, "--hang", "--stubborn", "--pidfile", pidFile), func(o *Options) { o.ConnectTimeout = 400 * time.Millisecond })
	if _, _, err := s.Discover(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	pid, err := strconv.Atoi(lines(t, pidFile)[0])
	if err != nil {
		t.Fatal(err)
	}
	if running(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

// running reports whether a process runs; a zombie does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !errors.Is(err, fs.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
