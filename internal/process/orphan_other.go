//go:build !linux

package process

// Adopt does nothing: init adopts orphans on this system.
func Adopt() {}

// EndOrphans does nothing: orphans cannot be found on this system.
func EndOrphans() {}
