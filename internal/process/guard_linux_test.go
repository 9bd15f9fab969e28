package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nor does what the server has started outlive a toolreg that cannot react,
// though it heeds no signal, and holds no pipe of ours that would tell it.
func TestGroupDiesWithAKilledParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT=guarded",
		fmt.Sprintf("PROCESS_TEST_SCRIPT=(trap '' TERM HUP INT; exec sleep 600 </dev/null >/dev/null 2>&1) & echo $! >%s; wait", file))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("read %q, %v", line, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || gone(t, pid) {
		t.Fatalf("the grandchild never ran: %q", text)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	deadline := time.Now().Add(long)
	for !gone(t, pid) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the grandchild outlived toolreg")
		}
		_ = exec.Command("/bin/true").Run() // lets the kernel get on with it
	}
}

// A child that is seen to its end takes its guard along.
func TestGuardIsDismissed(t *testing.T) {
	c := start(t, "cat >/dev/null")
	awaitGuard(c)
	c.launched.mu.Lock()
	pid := c.launched.guard.cmd.Process.Pid
	c.launched.mu.Unlock()
	if gone(t, pid) {
		t.Fatal("the guard never ran")
	}
	c.Stop(long, long)
	if c.Exit() != "exit status 0" || !gone(t, pid) {
		t.Errorf("exit %q; the guard is gone: %v", c.Exit(), gone(t, pid))
	}
}
