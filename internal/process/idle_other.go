//go:build !linux

package process

// runTime cannot tell on this system, so a process is always busy.
func runTime(int) (ran int64, busy bool) { return 0, true }
