//go:build !linux

package process

// hasAncestor is not supported on this system.
func hasAncestor(string) bool { return false }

// ParentFeedsStdin is not supported on this system.
func ParentFeedsStdin() bool { return false }
