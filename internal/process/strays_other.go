//go:build !linux

package process

import "os"

// hasAncestor is not supported on this system.
func hasAncestor(string) bool { return false }

// ancestorVariable is not supported on this system.
func ancestorVariable(string) (string, bool) { return "", false }

func parentHasSameName() bool { return false }

// ParentFeedsStdin is not supported on this system.
func ParentFeedsStdin() bool { return false }

// FolderPath returns dir: open folders have no path on this system.
func FolderPath(_ *os.File, dir string) string { return dir }

// runTime cannot tell on this system, so a process is always busy.
func runTime(int) (ran int64, busy bool) { return 0, true }

// Adopt does nothing: init adopts orphans on this system.
func Adopt() {}

// EndOrphans does nothing: orphans cannot be found on this system.
func EndOrphans() {}

// EndStrays does nothing: the system does not show the environment of
// processes.
func EndStrays(int, string) {}

func endMarkedOrphans(string) {}
