package wire

import (
	"sync"
	"time"
)

// signal is a channel that is closed once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (s *signal) close() { s.once.Do(func() { close(s.c) }) }

// waitFor waits up to d for c to be closed.
func waitFor(c <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}
