package wire

import (
	"fmt"
	"sync/atomic"
)

// Limit is the maximum size of one message in bytes, and the setting that
// defines it.
type Limit struct {
	Bytes   int64
	Setting string
}

// Exceeded returns the error for a message or a body that is larger than the limit.
func (l Limit) Exceeded(what string) error {
	return fmt.Errorf("a %s larger than the limit of %s (%s)", what, size(l.Bytes), l.Setting)
}

// CurrentLimit is the limit in force: the answer to a call may be larger than
// messages during connecting and listing. Call Store before Load. It is safe
// for concurrent use.
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
