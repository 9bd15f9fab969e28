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

// guardAfter is the age at which a child gets a guard, unless [Spec.Guard] gives it one
// from the beginning. Most children exit earlier.
const guardAfter = 250 * time.Millisecond

// guardScript reads the group from its stdin, which toolreg keeps open, waits for the end
// of stdin, and kills the group. The time of the log of a sandboxed program
// then shows until when the program ran. Then the script kills all processes with the child's mark
// in their environment: some may have left the group, and toolreg may have died before it knew the
// group. It looks until it found none twice, a second apart, because
// the environment of a process that is just being replaced by another program is empty.
const guardScript = `read -r group
read -r nothing
[ -z "$group" ] || { kill -s KILL -- "-$group"; [ -f "$2" ] && echo >>"$2"; }
empty=0
while [ $empty -lt 2 ]; do
	empty=$((empty + 1))
	for p in /proc/[0-9]*; do
		while read -r e || [ "$e" ]; do
			case $e in *"` + MarkVariable + `=$1"*) kill -s KILL "${p#/proc/}" && empty=0 ;; esac
		done <"$p/environ"
	done
	[ $empty != 1 ] || sleep 1
done 2>/dev/null`

// guard is a small process that kills a child and its group if toolreg dies without
// doing so, for example by SIGKILL. On Linux the kernel kills the child (endWithParent),
// but no system kills the processes that the child has started.
type guard struct {
	cmd  *osexec.Cmd
	pipe io.WriteCloser
}

// startGuard returns a guard for a child with a mark, or nil if there is no shell to run
// it. log is the file of [sandbox.Names], or "".
func startGuard(mark, log string) *guard {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	cmd := &osexec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", guardScript, "toolreg-guard", mark, log},
		Dir: "/", Env: []string{}, Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // so that it gets no signals from the terminal
	}
	sealDescriptors()
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil
	}
	return &guard{cmd: cmd, pipe: w}
}

// watch tells the guard which group the child leads.
func (g *guard) watch(pgid int) {
	if g != nil {
		_, _ = io.WriteString(g.pipe, strconv.Itoa(pgid)+"\n") // a guard that was killed protects nothing
	}
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
