//go:build unix && !linux && !darwin

package shell

import "golang.org/x/sys/unix"

// birthOf cannot determine when a process was started; its group is checked
// instead.
func birthOf(int) (birth string, ok bool) { return "", true }

// groupIsAlive reports whether a process of the group exists.
func groupIsAlive(group int) bool { return unix.Kill(-group, 0) == nil }
