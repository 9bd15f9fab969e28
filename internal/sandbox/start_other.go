//go:build !darwin && !(linux && (amd64 || arm64))

package sandbox

import (
	"errors"
	"syscall"
)

// Probe reports that this system has no sandbox.
func Probe() Support {
	return Support{Parts: []Part{{Name: "a sandbox", Detail: "not supported on this system"}}}
}

// Start is the prepared start of a [Command].
type Start struct{ Command }

// Prepare fails: this system has no sandbox.
func Prepare(Profile, Program) (*Start, error) {
	return nil, &Error{"preparing", errors.New("this system has no sandbox")}
}

// Attributes sets further process attributes that the start needs.
func (*Start) Attributes(*syscall.SysProcAttr) {}

// Started waits until the program runs.
func (*Start) Started() error { return nil }

// Ended returns nothing: the process itself reports how it ended.
func (*Start) Ended() (status int, ok bool) { return 0, false }

// Refused returns nothing: there is no proxy.
func (*Start) Refused() []string { return nil }

// Close does nothing.
func (*Start) Close() {}
