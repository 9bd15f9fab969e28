package transport

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A server of a legacy revision asks and tells on a stream of its own what
// belongs to no request of ours: its wish for the roots, log messages (revision
// 2025-11-25, transports, "Listening for Messages from the Server"). Without the
// stream it waits for an answer that never comes. The SDK opens it only on a
// connection that nobody stands between, and waits for its headers without a
// limit, so the stream is opened here, in the background: no request waits for
// it, and a server that has none, or fails to keep it, loses nothing else.

// maxListens is how often a stream is opened in a row that brings nothing.
const maxListens = 3

// listen receives from the server's own stream until the Conn ends or the stream
// cannot be had.
func (c *Conn) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	c.spawn(func() {
		defer cancel()
		select {
		case <-c.done.c:
		case <-c.eof:
		}
	})
	c.spawn(func() { c.listenUntil(ctx) })
}

func (c *Conn) listenUntil(ctx context.Context) {
	var s eventStream
	for empty := 0; empty < maxListens; empty++ {
		body, err := c.opts.HTTP.listen(ctx, c.SessionID(), s.last)
		if err != nil {
			c.opts.Logger.Debug("no stream of the server's own messages", "error", err)
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
		c.opts.Logger.Warn("malformed message of the server", "error", err)
		return
	}
	if _, ok := m.(*jsonrpc.Response); ok {
		c.opts.Logger.Debug("answer on the stream of the server's own messages dropped")
		return
	}
	c.receive(ctx, m)
}
