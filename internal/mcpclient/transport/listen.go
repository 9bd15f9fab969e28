package transport

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A server of a legacy revision sends messages that belong to none of our
// requests, such as roots/list or log messages, on a separate stream (revision
// 2025-11-25, transports, "Listening for Messages from the Server"). Without the
// stream it waits for an answer that never comes. The SDK opens the stream only
// on a connection that nothing wraps, and waits for its headers without a limit,
// so the stream is opened here, in the background: a server that has none, or
// cannot keep it open, loses nothing else. Only a request during which the server
// may ask waits for the stream, and not for long: a server drops a question for
// which there is no stream, and then waits for the answer.

// maxListens is how often in a row a stream that delivers nothing is reopened.
const maxListens = 3

// maxStreamWait is how long requests wait for the stream. It is opened when the
// handshake ends, and the listing that precedes a call usually takes as long.
const maxStreamWait = 250 * time.Millisecond

// listen receives from the server's own stream until the Conn ends or the stream
// is not available.
func (c *Conn) listen(ctx context.Context) {
	tried := &signal{c: make(chan struct{})}
	c.mu.Lock()
	c.handshake.listening = tried
	c.mu.Unlock()
	c.whileOpen(ctx, func(ctx context.Context) {
		c.listenUntil(ctx, func(last string) (io.ReadCloser, error) {
			defer tried.give()
			return c.opts.HTTP.listen(ctx, c.SessionID(), last)
		})
	})
}

// awaitStream waits until the server's own stream is open or not available, if
// the server may ask something during the exchange. After maxStreamWait no
// request waits any more.
func (c *Conn) awaitStream(ctx context.Context, x *Exchange) {
	c.mu.Lock()
	tried := c.handshake.listening
	c.mu.Unlock()
	if tried == nil || x == nil || x.request == nil {
		return
	}
	timer := time.NewTimer(maxStreamWait)
	defer timer.Stop()
	select {
	case <-tried.c:
	case <-timer.C:
		tried.give()
	case <-c.done.c:
	case <-ctx.Done():
	}
}

// whileOpen runs f in the background with a context that ends with the Conn.
func (c *Conn) whileOpen(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	c.spawn(func() {
		defer cancel()
		select {
		case <-c.done.c:
		case <-c.eof:
		}
	})
	c.spawn(func() { f(ctx) })
}

// listenID is the id of the request for the notifications of a modern server.
const listenID = "toolreg-changes"

// ListenForChanges asks a modern server for notifications of changes: params are
// those of subscriptions/listen (revision 2026-07-28). If the server refuses, there
// are none.
func (c *Conn) ListenForChanges(ctx context.Context, revision string, params json.RawMessage) {
	id, err := jsonrpc.MakeID(listenID)
	if err != nil {
		return
	}
	request := &jsonrpc.Request{ID: id, Method: "subscriptions/listen", Params: params}
	if c.opts.HTTP == nil {
		if err := c.inner.Write(ctx, request); err != nil {
			c.opts.Logger.Debug("changes are not requested", "error", err)
		}
		return
	}
	body, err := jsonrpc.EncodeMessage(request)
	if err != nil {
		return
	}
	c.whileOpen(ctx, func(ctx context.Context) {
		c.listenUntil(ctx, func(string) (io.ReadCloser, error) {
			return c.opts.HTTP.listenForChanges(ctx, revision, request.Method, body)
		})
	})
}

// listenUntil receives from a stream that open opens after the event with the id
// last, until ctx is done or the stream is not available.
func (c *Conn) listenUntil(ctx context.Context, open func(last string) (io.ReadCloser, error)) {
	var s eventStream
	for empty := 0; empty < maxListens; empty++ {
		body, err := open(s.last)
		if err != nil {
			c.opts.Logger.Debug("no stream for messages from the server", "error", err)
			return
		}
		s.pause = listenPause
		if s.read(body, c.opts.MaxEvent, func(data []byte) { c.event(ctx, data) }) {
			empty = 0
		}
		_ = body.Close()
		select {
		case <-time.After(s.pause):
		case <-ctx.Done():
			return
		}
	}
}

// event receives the message of one event.
func (c *Conn) event(ctx context.Context, data []byte) {
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		c.opts.Logger.Warn("malformed message from the server", "error", err)
		return
	}
	if _, ok := m.(*jsonrpc.Response); ok {
		c.opts.Logger.Debug("answer on the stream for messages from the server dropped")
		return
	}
	c.receive(ctx, m)
}
