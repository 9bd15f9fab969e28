//go:build unix && !linux

package process

import (
	"errors"
	osexec "os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent does nothing: only Linux can kill a child with its parent.
func endWithParent(*syscall.SysProcAttr) {}

// sealDescriptors does nothing: inherited descriptors are passed on.
func sealDescriptors() {}

// GroupIsAlive reports whether a process of the group exists.
func GroupIsAlive(group int) bool { return !errors.Is(unix.Kill(-group, 0), unix.ESRCH) }

// awaitExit blocks until the child has exited, and reaps it. The system does
// not reuse a pid that still identifies a group, so only signals to an empty
// group could hit the wrong process, in the moment between two calls.
func awaitExit(cmd *osexec.Cmd) { _ = cmd.Wait() }

func reapGroup(int) {}

// KillChildren does nothing: the system does not list children. Each child
// exits when its streams are closed.
func KillChildren() {}

func dup(from, to int) error { return unix.Dup2(from, to) }
