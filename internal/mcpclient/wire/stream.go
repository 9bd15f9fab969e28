package wire

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// A server of a legacy revision sends messages that belong to none of our
// requests, such as roots/list or log messages, on a stream of the session's own
// (revision 2025-11-25, transports, "Listening for Messages from the Server"). A
// server that asks something while the stream is not open drops its question,
// and then waits for the answer. So the request for the stream is written first
// of all, before notifications/initialized, which makes some servers ask; and
// what the server may ask during waits until the stream is open or refused, but
// not for long. Nothing else waits: a server that has no stream, or cannot keep
// it open, loses nothing.

// confirmation is the end of a legacy handshake over streamable HTTP. What fails counts as
// done.
type confirmation struct {
	requested *signal // the request for the session's own stream was written
	open      *signal // and answered
	written   *signal // notifications/initialized was written
	answered  *signal // and answered
}

// confirm sends notifications/initialized. Over streamable HTTP it does not wait for the
// answer, which would cost a round trip.
func (s *Session) confirm(ctx context.Context) {
	const method = "notifications/initialized"
	h, ok := s.link.(*HTTP)
	if !ok {
		s.notify(ctx, method, json.RawMessage("{}"))
		return
	}
	c := &confirmation{newSignal(), newSignal(), newSignal(), newSignal()}
	s.mu.Lock()
	s.opening.confirmed = c
	s.mu.Unlock()
	s.whileOpen(ctx, func(ctx context.Context) {
		defer c.requested.give()
		defer c.open.give()
		if h.sessionID() == "" {
			return
		}
		s.listenUntil(whenWritten(ctx, c.requested), h.maxEvent, func(ctx context.Context, last string) (io.ReadCloser, error) {
			defer c.open.give()
			return h.openOwn(ctx, s, last)
		})
	})
	limit := time.NewTimer(maxRequestWait)
	defer limit.Stop()
	select { // no other request takes the connection that is open
	case <-c.requested.c:
	case <-limit.C:
	case <-ctx.Done():
	}
	s.whileOpen(ctx, func(ctx context.Context) {
		defer c.answered.give()
		defer c.written.give()
		s.notify(whenWritten(ctx, c.written), method, json.RawMessage("{}"))
	})
}

const (
	// maxRequestWait is how long the request for the stream may take to be written, which
	// may need a new connection.
	maxRequestWait = 5 * time.Second
	// maxStreamWait is how long the stream may then take to open.
	maxStreamWait = 250 * time.Millisecond
)

// awaitOpen waits until the server is ready for a request. A request for a list does not
// wait for the answer to notifications/initialized, because it can be repeated: early is
// closed when that answer has come, and nil if it has.
func (s *Session) awaitOpen(ctx context.Context, r *Request) (early <-chan struct{}) {
	s.mu.Lock()
	c := s.opening.confirmed
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	before := c.answered
	if strings.HasSuffix(r.Method, "/list") {
		before = c.written
	}
	select {
	case <-before.c:
	case <-ctx.Done():
	}
	select {
	case <-c.answered.c:
	default:
		return c.answered.c
	}
	if r.Asked == nil {
		return nil
	}
	timer := time.NewTimer(maxStreamWait)
	defer timer.Stop()
	select {
	case <-c.open.c:
	case <-timer.C:
		c.open.give() // no request waits any more
	case <-ctx.Done():
	}
	return nil
}

// Listen asks a modern server for notifications until stop is called (revision 2026-07-28,
// subscriptions/listen). If the server refuses, there are none.
func (s *Session) Listen(ctx context.Context, wanted mcp.NotificationSubscriptions) (stop func()) {
	r := &Request{Method: methodListen, Params: marshal(map[string]any{"notifications": &wanted})}
	h, ok := s.link.(*HTTP)
	return s.whileOpen(ctx, func(ctx context.Context) {
		if !ok {
			if _, err := s.Do(ctx, r); err != nil {
				s.opts.Logger.Debug("changes are not reported", "error", err)
			}
			return
		}
		s.listenUntil(ctx, h.maxEvent, func(ctx context.Context, _ string) (io.ReadCloser, error) {
			m, err := s.begin(r, func(error) {})
			if err != nil {
				return nil, err
			}
			defer s.forget(r)
			return h.openFor(ctx, m)
		})
	})
}

// whenWritten returns a context whose request gives a signal when it is written.
func whenWritten(ctx context.Context, written *signal) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written.give() }})
}

// maxListens is how often in a row a stream that delivers nothing is reopened.
const maxListens = 3

// listenUntil receives from a stream that open opens after the event with the id last, until
// ctx is done or the stream is not available.
func (s *Session) listenUntil(ctx context.Context, maxEvent int64, open func(ctx context.Context, last string) (io.ReadCloser, error)) {
	var stream eventStream
	for empty := 0; empty < maxListens; empty++ {
		body, err := open(ctx, stream.last)
		if err != nil {
			s.opts.Logger.Debug("no stream for messages from the server", "error", err)
			return
		}
		stream.pause = listenPause
		if stream.read(body, maxEvent, func(data []byte) { s.receiveUnasked(ctx, data) }) {
			empty = 0
		}
		_ = body.Close()
		select {
		case <-time.After(stream.pause):
		case <-ctx.Done():
			return
		}
	}
}

// receiveUnasked receives what came on a stream of no request, where no answer belongs.
func (s *Session) receiveUnasked(ctx context.Context, data []byte) {
	var m jsonrpc.Message
	err := noMessage(data)
	if jsonx.Valid(data) {
		m, err = decodeMessage(data)
	}
	_, answer := m.(*jsonrpc.Response)
	switch {
	case err != nil:
		s.opts.Logger.Warn("malformed message from the server", "error", err)
	case answer:
		s.opts.Logger.Debug("answer on the stream for messages from the server dropped")
	default:
		s.receive(ctx, m)
	}
}
