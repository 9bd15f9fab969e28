//go:build unix && !linux

package process

import (
	"os"
	osexec "os/exec"
	"syscall"
)

// endWithParent does nothing: only Linux can end a child with its parent.
func endWithParent(*syscall.SysProcAttr) {}

// sealDescriptors does nothing: what we inherited ourselves is passed on.
func sealDescriptors() {}

// allDead does not know.
func allDead(int) bool { return false }

func (group) adopt(*os.Process) {}

// awaitExit blocks until the child has ended, and reaps it. A system gives no
// pid away that still names a group, so that only the signals to an empty group
// could go astray, in the moment between two calls.
func awaitExit(cmd *osexec.Cmd) { _ = cmd.Wait() }

func reapGroup(int) {}

// KillChildren does nothing here: which children there are nobody tells, and
// each ends when its streams do.
func KillChildren() {}
