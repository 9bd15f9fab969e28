//go:build !linux

package process

// Adopt does nothing: orphans are init's.
func Adopt() {}

// EndOrphans does nothing: there is no telling what our children left behind.
func EndOrphans() {}
