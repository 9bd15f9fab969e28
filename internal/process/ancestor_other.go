//go:build !linux

package process

// HasAncestor is not supported on this system.
func HasAncestor(string) bool { return false }
