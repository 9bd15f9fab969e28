package process

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If toolreg is killed with SIGKILL, descendants of the server do not keep
// running either, even if they have left its group, ignore signals and hold none of our pipes.
func TestGroupDiesWithAKilledParent(t *testing.T) {
	defer EndOrphans() // that this process adopts
	file := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT=1",
		fmt.Sprintf("PROCESS_TEST_SCRIPT=(trap '' TERM HUP INT; exec setsid sh -c 'echo $$ >%s; exec sleep 600' </dev/null >/dev/null 2>&1) & wait", file))
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
	var text []byte
	for deadline := time.Now().Add(long); !strings.HasSuffix(string(text), "\n"); {
		if text, err = os.ReadFile(file); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
		_ = exec.Command("/bin/true").Run()
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
		_ = exec.Command("/bin/true").Run() // gives the kernel time
	}
}

// When a child ends, its guard is stopped, whether it was started at the beginning or
// later.
func TestGuardIsDismissed(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		spec := sh("cat >/dev/null")
		spec.Guard = guarded
		c, err := Start(spec)
		if err != nil {
			t.Fatal(err)
		}
		pid := awaitGuard(c)
		if gone(t, pid) {
			t.Fatal("the guard never ran")
		}
		c.Stop(long, long)
		if !gone(t, pid) {
			t.Errorf("the guard still runs after %q", c.Exit())
		}
	}
}

// awaitGuard waits for the child's guard and returns its process.
func awaitGuard(c *Child) int {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		c.launched.mu.Lock()
		g := c.launched.guard
		c.launched.mu.Unlock()
		if g != nil {
			return g.cmd.Process.Pid
		}
		<-tick.C
	}
}

// stubborn starts a process that ignores signals and holds none of our pipes, whose
// end would tell it that toolreg has exited.
const stubborn = "(trap '' TERM HUP INT; exec sleep 600 </dev/null >/dev/null 2>&1) & "

// The group is killed even if toolreg is killed while it is starting the child.
func TestGroupDiesWithAParentKilledAtAnyMoment(t *testing.T) {
	defer EndOrphans() // which this process adopts
	for i := range 24 {
		mark := fmt.Sprintf("PROCESS_TEST_MARK=%d-%d", os.Getpid(), i)
		parent := exec.Command(os.Args[0])
		parent.Env = append(os.Environ(), "PROCESS_TEST_PARENT=1", mark, "PROCESS_TEST_SCRIPT="+stubborn+stubborn+"wait")
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(rand.N(300*time.Millisecond), func() { _ = parent.Process.Kill() })
		_ = parent.Wait()
		kill.Stop()
		awaitNone(t, mark)
	}
}

// A guard that was not told the group kills the processes with the mark, in every shell
// that may be /bin/sh.
func TestGuardFindsTheMark(t *testing.T) {
	t.Cleanup(EndOrphans) // which this process adopts
	for _, shell := range []string{"/bin/sh", "bash", "busybox sh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel() // the guard sleeps
			words := strings.Fields(shell)
			if _, err := exec.LookPath(words[0]); err != nil {
				t.Skip(err)
			}
			mark := fmt.Sprintf("GUARDED%dx%s", os.Getpid(), filepath.Base(words[0]))
			entry := MarkVariable + "=" + mark
			child := exec.Command("/bin/sh", "-c", stubborn+"setsid sh -c 'exec sleep 600' & echo started; wait")
			child.Env = append(os.Environ(), "TWO_LINES=a\nb", entry)
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			guard := exec.Command(words[0], append(words[1:], "-c", guardScript, "toolreg-guard", mark)...)
			if out, err := guard.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
			_ = child.Wait()
			awaitNone(t, entry)
		})
	}
}

// awaitNone waits until no process has a variable in its initial environment.
func awaitNone(t *testing.T, entry string) {
	t.Helper()
	for deadline := time.Now().Add(long); ; {
		var left []int
		names, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			pid, _ := strconv.Atoi(filepath.Base(name))
			if pid != os.Getpid() && hasEntry(environOf(pid), []byte(entry)) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			t.Fatalf("%d processes outlived toolreg", len(left))
		}
		_ = exec.Command("/bin/true").Run() // gives the kernel time
	}
}

// A tool must not approve its own calls by the same program under another name.
func TestAdoptedProcessHasName(t *testing.T) {
	out, err := Run(t.Context(), Spec{Argv: []string{"/bin/sh", "-c", "cat /proc/$PPID/comm"}, Env: os.Environ()})
	if got := string(out.Stdout); err != nil || got != programName+"\n" {
		t.Errorf("a child sees its parent as %q, %v", got, err)
	}
}
