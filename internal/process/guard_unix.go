//go:build unix

package process

import (
	"io"
	"os"
	osexec "os/exec"
	"strconv"
	"syscall"
	"time"
)

// guardAfter is the age at which a child gets a guard. Most children exit
// before.
const guardAfter = 250 * time.Millisecond

// guardScript waits for the end of its stdin, which toolreg keeps open without
// writing, and then kills the group.
const guardScript = `read -r nothing; kill -s KILL -- "-$1"`

// guard is a small process that kills a group if toolreg dies without doing so,
// for example by SIGKILL. On Linux the kernel kills the child (endWithParent),
// but no system kills what the child has started.
type guard struct {
	cmd  *osexec.Cmd
	pipe io.Closer
}

// startGuard returns a guard for a group; nil if there is no shell to run it.
func startGuard(pgid int) *guard {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	cmd := &osexec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", guardScript, "toolreg-guard", strconv.Itoa(pgid)},
		Dir: "/", Env: []string{}, Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // keys pressed at the terminal do not reach it
	}
	sealDescriptors()
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil
	}
	return &guard{cmd: cmd, pipe: w}
}

// dismiss stops the guard and reaps it.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill() // before its stdin ends
	_ = g.pipe.Close()
	_ = g.cmd.Wait() // its exit state does not matter
}
