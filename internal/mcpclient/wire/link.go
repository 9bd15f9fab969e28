package wire

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Link carries messages to a server and back. It is created by [NewStdio], [NewHTTP] or
// [NewSSE], and serves one session.
type Link interface {
	// run passes on what the server sends, until the connection ends or ctx is done. It
	// returns the reason.
	run(ctx context.Context, to receiver) error
	// send sends a message, and over streamable HTTP also receives the response. A nil
	// error means that the request in m, if there is one, has its answer or will get it
	// through run.
	send(ctx context.Context, to receiver, m message) error
}

// receiver is what a link knows of its [Session].
type receiver interface {
	// receiveAll receives a valid JSON text, and receiveResponse one that is the response to a
	// request. Both return an error for what is not a message.
	receiveAll(ctx context.Context, data json.RawMessage) error
	receiveResponse(ctx context.Context, r *Request, data json.RawMessage) error
	// receiveMalformed is told of such errors. It returns false if an unknown one of several
	// requests may wait for the message.
	receiveMalformed(err error) bool

	Revision() string
	Done() <-chan struct{}
	spawn(f func()) bool
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
