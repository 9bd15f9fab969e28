//go:build !linux

package process

// EndStrays does nothing: the system does not show the environment of
// processes.
func EndStrays(int, string) {}

func endMarkedOrphans(string) {}
