//go:build linux

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Child {
	t.Helper()
	c, err := Start(sh(script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(0, 0) })
	return c
}

func TestChildExchangesData(t *testing.T) {
	c := start(t, `while read line; do echo "got $line"; done; echo end; echo log >&2; exit 4`)
	r := bufio.NewReader(c.Stdout)
	for _, word := range []string{"a", "b"} {
		if _, err := io.WriteString(c.Stdin, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadString('\n'); got != "got "+word+"\n" {
			t.Fatalf("answer %q, %v", got, err)
		}
	}
	if c.Exit() != "" {
		t.Errorf("exit %q of a running child", c.Exit())
	}
	c.Stop(long, long) // closing stdin is enough
	if c.Exit() != "exit status 4" || c.StderrTail() != "log\n" {
		t.Errorf("exit %q, stderr %q", c.Exit(), c.StderrTail())
	}
	c.Stop(long, long)
}

// A child that ignores the end of its stdin is stopped, even if a child of its
// own sleeps; one that is busy gets time to finish.
func TestChildStopWaitsForWork(t *testing.T) {
	for script, want := range map[string]string{
		`exec sleep 600`:    "signal: SIGTERM",
		`sleep 600; exit 3`: "signal: SIGTERM",
		`cat >/dev/null; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3`:         "exit status 3",
		`cat >/dev/null; sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; exit 3`: "exit status 3",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			c := start(t, script)
			c.Stop(long, long)
			if c.Exit() != want {
				t.Errorf("%s, want %s", c.Exit(), want)
			}
		})
	}
}

// The output of a child can be read after it died.
func TestChildStdoutIsReadableAfterTheEnd(t *testing.T) {
	c := start(t, "echo last words; kill -9 $$")
	<-c.Done()
	if c.Exit() != "signal: SIGKILL" {
		t.Errorf("exit %q", c.Exit())
	}
	out, err := io.ReadAll(c.Stdout)
	if string(out) != "last words\n" || err != nil {
		t.Errorf("read %q, %v", out, err)
	}
}

func TestChildStopEscalates(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"ends with stdin", "echo ready; cat >/dev/null", "exit status 0"},
		{"ends with SIGTERM", "echo ready; exec sleep 600", "signal: SIGTERM"},
		{"ends with SIGKILL", "trap '' TERM; echo ready; while :; do sleep 0.02; done", "signal: SIGKILL"},
		{"a wrapper with a grandchild that ignores SIGTERM", "(trap '' TERM; echo ready; while :; do sleep 0.02; done); true", "signal: SIGTERM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, tt.script)
			if line, err := bufio.NewReader(c.Stdout).ReadString('\n'); line != "ready\n" {
				t.Fatalf("read %q, %v", line, err)
			}
			quiet, grace := time.Millisecond, long
			switch tt.want {
			case "exit status 0":
				quiet = long
			case "signal: SIGKILL":
				grace = time.Millisecond
			}
			done := make(chan struct{})
			go func() { // Stop can be called concurrently
				c.Stop(quiet, grace)
				close(done)
			}()
			c.Stop(quiet, grace)
			<-done
			if c.Exit() != tt.want {
				t.Errorf("exit %q, want %q", c.Exit(), tt.want)
			}
			if syscall.Kill(-c.PID(), 0) == nil && !onlyZombies(t, c.PID()) {
				t.Error("the group lives on")
			}
		})
	}
}

func TestChildExitKillsItsGroup(t *testing.T) {
	c := start(t, "sleep 600 & echo $!")
	line, err := bufio.NewReader(c.Stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if !gone(t, pid) {
		t.Errorf("sleep %d lives on", pid)
	}
}

// A server that stops reading its stdin must not block the caller.
func TestChildStopReleasesBlockedWriteAndRead(t *testing.T) {
	c := start(t, "trap '' TERM; while :; do sleep 0.02; done")
	written, read := make(chan error), make(chan error)
	go func() {
		_, err := c.Stdin.Write(make([]byte, 8<<20))
		written <- err
	}()
	go func() {
		_, err := c.Stdout.Read(make([]byte, 1))
		read <- err
	}()
	c.Stop(time.Millisecond, time.Millisecond)
	if err := <-written; err == nil {
		t.Error("8 MiB were written to a child that does not read")
	}
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("read: %v", err)
	}
}

func TestChildStderrIsDrainedAndItsTailKept(t *testing.T) {
	c := start(t, "seq 1 100000 >&2; echo done")
	out, err := io.ReadAll(c.Stdout)
	if string(out) != "done\n" || err != nil {
		t.Errorf("stdout %q, %v", out, err)
	}
	<-c.Done()
	tail := c.StderrTail()
	if len(tail) > stderrTail || len(tail) < stderrTail-10 || !strings.HasSuffix(tail, "99999\n100000\n") {
		t.Errorf("tail of %d bytes ends with %q", len(tail), tail[max(0, len(tail)-20):])
	}
	if first, _, _ := strings.Cut(tail, "\n"); len(first) != 5 {
		t.Errorf("the tail begins within a line: %q", first)
	}
}

// If toolreg is killed with SIGKILL, its server must not keep running.
func TestChildDiesWithAKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT=plain", "PROCESS_TEST_SCRIPT=exec sleep 600")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("no pid: %q", line)
	}
	if gone(t, pid) {
		t.Fatal("the child never ran")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	deadline := time.Now().Add(long)
	for !gone(t, pid) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the child outlived its parent")
		}
		_ = exec.Command("/bin/true").Run() // gives the kernel time
	}
}

func TestStartReportsTheReason(t *testing.T) {
	_, err := Start(Spec{Argv: []string{"toolreg-absent"}, Env: []string{"PATH=/bin"}})
	var se *StartError
	if !errors.As(err, &se) || se.Program != "toolreg-absent" {
		t.Errorf("error %v", err)
	}
}
