//go:build !linux

package process

// HasAncestor is not supported on this system.
func HasAncestor(string) bool { return false }

// ParentFeedsStdin is not supported on this system.
func ParentFeedsStdin() bool { return false }
