package mcpclient

import (
	"fmt"
	"sync/atomic"
)

// bound is a limit on the bytes of one message, with the setting that sets it.
type bound struct {
	bytes   int64
	setting string
}

// exceeded tells that what came, a message or a body, went over the bound.
func (b bound) exceeded(what string) error {
	return fmt.Errorf("a %s of more than %s, which is the limit (%s)", what, size(b.bytes), b.setting)
}

// limit is the bound that holds at the moment: the answer to a call may be
// larger than what belongs to connecting and listing.
type limit struct{ now atomic.Pointer[bound] }

func (l *limit) load() bound   { return *l.now.Load() }
func (l *limit) store(b bound) { l.now.Store(&b) }

func (l Limits) frame() bound  { return bound{l.Frame, "limits.frame"} }
func (l Limits) result() bound { return bound{l.Result, "limits.result"} }

// size shows a number of bytes.
func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
