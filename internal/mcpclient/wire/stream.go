package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/timing"
)

// A server of a legacy revision sends messages that do not belong to any of our
// requests, such as roots/list or log messages, on a stream of the session's own
// (revision 2025-11-25, transports, "Listening for Messages from the Server").
// If the stream is not open when a server asks a question, the server drops the
// question and then waits for the answer. So the request for the stream is
// written first, before notifications/initialized, which makes some servers ask;
// and requests during which the server may ask wait until the stream is open or
// refused, but not for long. No other request waits: a server that has no
// stream, or cannot keep it open, loses nothing.

// confirm sends notifications/initialized. Over streamable HTTP it does not wait for the
// answer, which would cost a round trip.
func (s *Session) confirm(ctx context.Context) {
	const method = "notifications/initialized"
	h, ok := s.link.(*HTTP)
	if !ok {
		s.notify(ctx, method, json.RawMessage("{}"))
		return
	}
	c := &confirmation{requested: newSignal(), open: newSignal(), written: newSignal(), answered: newSignal()}
	s.mu.Lock()
	s.confirmed = c
	s.mu.Unlock()
	s.listenToOwn(ctx, h, c)
	select { // so that no other request takes the open connection
	case <-c.requested.c:
	case <-time.After(maxRequestWait):
	case <-ctx.Done():
	}
	s.whileOpen(ctx, func(ctx context.Context) {
		defer c.answered.close()
		defer c.written.close()
		s.notify(whenWritten(ctx, c.written), method, json.RawMessage("{}"))
	})
}

// listenToOwn opens the session's own stream in the background.
func (s *Session) listenToOwn(ctx context.Context, h *HTTP, c *confirmation) {
	s.whileOpen(ctx, func(ctx context.Context) {
		defer c.requested.close()
		defer c.open.close()
		if h.SessionID() == "" {
			return
		}
		s.listenUntil(whenWritten(ctx, c.requested), h.maxEvent,
			func(ctx context.Context, last string) (io.ReadCloser, error) {
				defer c.open.close()
				for taken := 0; ; taken++ {
					body, err := streamOf(h.getStream(ctx, s.Revision(), last))
					refused, ok := errors.AsType[*HTTPError](err)
					if !ok || refused.Status != http.StatusConflict || taken == maxTaken {
						if ok && refused.Status == http.StatusMethodNotAllowed {
							c.streamless.Store(true)
						}
						return body, err
					}
					waitFor(ctx.Done(), takenPause)
				}
			})
	})
}

// A session has one stream of its own. If that of an earlier run has just been closed, the server
// may not know yet, and refuses another one.
const (
	maxTaken   = 4
	takenPause = 5 * time.Millisecond
)

// ListenAgain opens the own stream of a session that was continued. It waits until the stream is
// open or refused, but not for long: the server gets a request that follows after it. It reports
// whether the server has said that it has no such stream.
func (s *Session) ListenAgain(ctx context.Context) (streamless bool) {
	h, ok := s.link.(*HTTP)
	if !ok || s.Modern() {
		return false
	}
	c := &confirmation{requested: newSignal(), open: newSignal()}
	s.listenToOwn(ctx, h, c)
	waitFor(c.open.c, maxAgainWait)
	return c.streamless.Load()
}

const (
	// maxAgainWait limits how long ListenAgain waits.
	maxAgainWait = 50 * time.Millisecond
	// maxRequestWait limits how long writing the request for the stream may take, which
	// may need a new connection.
	maxRequestWait = 5 * time.Second
)

// Listen subscribes to notifications of a modern server until stop is called (revision
// 2026-07-28, subscriptions/listen). If the server refuses, no notifications arrive.
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
			defer s.table.forget(r)
			return streamOf(h.post(ctx, h.endpoint, m))
		})
	})
}

// ListenToLists asks a modern server to report changes of the lists whose changes it can
// report, until the session ends. Legacy servers report them without being asked.
func (s *Session) ListenToLists(ctx context.Context) {
	caps := s.Server().Capabilities
	wanted := mcp.NotificationSubscriptions{
		ToolsListChanged:     caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: caps.Resources != nil && caps.Resources.ListChanged,
	}
	if s.Modern() && (wanted.ToolsListChanged || wanted.PromptsListChanged || wanted.ResourcesListChanged) {
		s.Listen(ctx, wanted)
	}
}

const (
	// maxListens is how many stalls end the attempts to listen.
	maxListens = 3
	// maxAway is how often in a row a server may be away that had a stream before, which with growing pauses is
	// long enough for it to start again.
	maxAway = 6
)

// listenUntil receives from streams that open returns, each after the event with the id
// last, until ctx is done or the stream is not available.
func (s *Session) listenUntil(ctx context.Context, maxEvent int64,
	open func(ctx context.Context, last string) (io.ReadCloser, error)) {
	var stream eventStream
	away := maxAway // before the first stream, an error means that there is none
	for stream.stalls < maxListens {
		opened := time.Now()
		body, err := open(ctx, stream.last)
		switch {
		case err == nil:
			away, stream.pause = 0, listenPause
			hadNew := false
			_ = stream.read(body, func() int64 { return maxEvent }, func(data []byte) bool {
				hadNew = true
				s.receiveUnasked(ctx, data)
				return true
			})
			stream.ended(opened, hadNew)
			_ = body.Close()
		case away < maxAway && isAway(err):
			away++
			stream.pause = min(2*stream.pause, maxListenPause)
		default:
			s.opts.Logger.Debug("no stream for messages from the server", "error", err)
			return
		}
		if timing.Pause(ctx, stream.pause) != nil {
			return
		}
	}
}

// isAway reports whether a request has not reached the server, or something on the way says that it is away.
func isAway(err error) bool {
	failed, ok := errors.AsType[*HTTPError](err)
	return ok && (failed.Status == 0 || failed.Status >= http.StatusInternalServerError)
}

// receiveUnasked receives messages from a stream that does not belong to a request, on
// which answers are invalid.
func (s *Session) receiveUnasked(ctx context.Context, data []byte) {
	var messages []jsonrpc.Message
	err := noMessage(data)
	if jsonx.Valid(data) {
		messages, err = decodeAll(data)
	}
	if err != nil {
		s.opts.Logger.Warn("malformed message from the server", "error", err)
	}
	for _, m := range messages {
		if _, answer := m.(*jsonrpc.Response); answer {
			s.opts.Logger.Debug("answer on the stream for messages from the server dropped")
		} else {
			s.receive(ctx, m)
		}
	}
}
