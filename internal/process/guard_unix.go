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

// guardAfter is the age from which on a child has a guard. Most children do not
// get so old, and cost nothing more.
const guardAfter = 250 * time.Millisecond

// guardScript waits for the end of its stdin, which toolreg holds open and
// writes nothing to, and kills the group then.
const guardScript = `read -r nothing; kill -s KILL -- "-$1"`

// guard is a small process that kills a group when toolreg dies without having
// done so itself, by SIGKILL say: the kernel ends the child with us on Linux
// (endWithParent), but nowhere what the child has started.
type guard struct {
	cmd  *osexec.Cmd
	pipe io.Closer
}

// startGuard returns a guard for a group, nil where there is no shell to be it.
func startGuard(pgid int) *guard {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	cmd := &osexec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", guardScript, "toolreg-guard", strconv.Itoa(pgid)},
		Dir: "/", Env: []string{}, Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no key pressed at the terminal ends it
	}
	sealDescriptors()
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil
	}
	return &guard{cmd: cmd, pipe: w}
}

// dismiss ends the guard and reaps it: there is nothing left to guard.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill() // before its stdin ends
	_ = g.pipe.Close()
	_ = g.cmd.Wait() // how it ended tells nothing
}
