package script

import (
	"sync"
	"time"
)

// Clock measures the time that a script takes. The zero value is ready for one [Run]. It is
// safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	left    time.Duration
	begun   time.Time // zero while it is paused or not used
	paused  int
	timer   *time.Timer // nil means there is no limit
	expired bool
}

// start calls expire when the limit is reached.
func (c *Clock) start(limit time.Duration, expire func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.begun = limit, time.Now()
	c.timer = time.AfterFunc(limit, func() {
		c.mu.Lock()
		c.expired = c.paused == 0
		expired := c.expired
		c.mu.Unlock()
		if expired {
			expire()
		}
	})
}

// Pause stops the clock until the returned function is called.
func (c *Clock) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 && c.timer != nil {
		c.timer.Stop()
		c.left -= time.Since(c.begun)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.paused == 0 && c.timer != nil && !c.expired {
			c.begun = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
	})
}

// over reports whether the limit was reached.
func (c *Clock) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

// end stops the clock for good.
func (c *Clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}
