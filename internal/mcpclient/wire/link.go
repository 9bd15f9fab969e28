package wire

import (
	"context"
	"sync"
	"time"
)

// Link carries messages to a server and back. It is created by [NewStdio], [NewHTTP] or
// [NewSSE], and serves one session.
type Link interface {
	// run passes on what the server sends, until the connection ends or ctx is done. It
	// returns the reason.
	run(ctx context.Context, s *Session) error
	// send sends a message, and over streamable HTTP also receives the response. A nil
	// error means that the request in m, if there is one, has its answer or will get it
	// through run.
	send(ctx context.Context, s *Session, m message) error
}

// signal is a channel that is closed once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (s *signal) close() { s.once.Do(func() { close(s.c) }) }

// waitFor waits up to d for c to be closed.
func waitFor(c <-chan struct{}, d time.Duration) {
	select {
	case <-c:
	case <-time.After(d):
	}
}
