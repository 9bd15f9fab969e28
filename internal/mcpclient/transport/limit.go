package transport

import (
	"fmt"
	"sync/atomic"
)

// Limit is how many bytes one message may have, and the setting that says so.
type Limit struct {
	Bytes   int64
	Setting string
}

// Exceeded tells that what came, a message or a body, went over the limit.
func (l Limit) Exceeded(what string) error {
	return fmt.Errorf("a %s of more than %s, which is the limit (%s)", what, size(l.Bytes), l.Setting)
}

// CurrentLimit is the limit that holds at the moment: the answer to a call may
// be larger than what belongs to connecting and listing. Store comes before
// Load. It is safe for concurrent use.
type CurrentLimit struct{ now atomic.Pointer[Limit] }

// Load returns the limit.
func (c *CurrentLimit) Load() Limit { return *c.now.Load() }

// Store changes the limit.
func (c *CurrentLimit) Store(l Limit) { c.now.Store(&l) }

// size shows a number of bytes.
func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
