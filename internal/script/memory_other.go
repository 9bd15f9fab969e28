//go:build !linux

package script

// resident is only known on Linux.
func resident(string) (used func() uint64, closeFile func()) {
	return func() uint64 { return 0 }, func() {}
}
