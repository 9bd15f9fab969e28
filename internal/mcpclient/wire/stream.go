package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/webaddr"
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
		s.notify(webaddr.WhenWritten(ctx, c.written.close), method, json.RawMessage("{}"))
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
		s.listenUntil(webaddr.WhenWritten(ctx, c.requested.close), h.maxEvent,
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
		var before time.Time
		s.listenUntil(ctx, h.maxEvent, func(ctx context.Context, _ string) (io.ReadCloser, error) {
			m, err := s.begin(r, func(error) {})
			if err != nil {
				return nil, err
			}
			defer s.table.forget(r)
			stream, err := streamOf(h.post(ctx, h.endpoint, m))
			if err != nil {
				return nil, err
			}
			if !before.IsZero() && time.Since(before) >= lasting { // otherwise it comes and goes
				s.missed(&wanted)
			}
			before = time.Now()
			return stream, nil
		})
	})
}

// missed reports all changes that are wanted: what happened while their stream was away is never told.
func (s *Session) missed(wanted *mcp.NotificationSubscriptions) {
	for list, is := range map[string]bool{"tools": wanted.ToolsListChanged, "prompts": wanted.PromptsListChanged,
		"resources": wanted.ResourcesListChanged} {
		if is {
			s.changed(Change{List: list})
		}
	}
	for _, uri := range wanted.ResourceSubscriptions {
		s.changed(Change{URI: uri})
	}
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
	// maxAway is how often in a row a server that had a stream before may be unavailable. With
	// growing pauses, that is long enough for a restart.
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

// isAway reports whether a request has not reached the server, or an intermediary says that the
// server is unavailable.
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

const (
	// listenPause is the time before a stream that ended is reopened. The server can
	// set it between minListenPause, which prevents a busy loop, and maxListenPause.
	listenPause    = time.Second
	minListenPause = 100 * time.Millisecond
	maxListenPause = 30 * time.Second
)

// serverEvent is one event of an event stream (HTML, server-sent events). Fields
// that are missing or unusable are empty.
type serverEvent struct {
	name, id       string
	hasID, hasData bool
	retry          time.Duration
	data           []byte
}

// isMessage reports whether the event may carry a message: some servers send errors in events of that name.
func (e *serverEvent) isMessage() bool {
	return len(e.data) > 0 && (e.name == "" || e.name == "message" || e.name == "error")
}

// eventReader reads an event stream.
type eventReader struct {
	r     *bufio.Reader
	limit func() int64 // bytes of one event
	begun bool         // a line was read
}

func newEventReader(r io.Reader, limit func() int64) *eventReader {
	return &eventReader{r: bufio.NewReader(&lineEnds{r: r}), limit: limit}
}

// next returns the next event. At the end of the stream it returns the unterminated
// event, if any, together with the error.
func (r *eventReader) next() (e serverEvent, err error) {
	size := 0
	for {
		line, err := r.line(size)
		if len(line) > 0 {
			size += len(line) + 1
			e.field(line)
		}
		if len(line) == 0 || err != nil {
			return e, err
		}
	}
}

func (e *serverEvent) field(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if e.hasData {
			value = append(append(e.data, '\n'), value...)
		}
		e.data, e.hasData = value, true // a long line is not copied
	case "event":
		e.name = string(value)
	case "id":
		if e.id, e.hasID = string(value), true; len(value) > 1<<10 || !isVisible(e.id) {
			e.id = "" // no header can carry it
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			e.retry = min(max(time.Duration(min(ms, 1e9))*time.Millisecond, minListenPause), maxListenPause)
		}
	}
}

var errLongEvent = errors.New("an event larger than the limit")

// line returns the next line without its terminator. size is the size of the
// event so far.
func (r *eventReader) line(size int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if line = append(line, part...); int64(size+len(line)) > r.limit() {
			return nil, errLongEvent
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !r.begun {
			line, r.begun = text.WithoutMark(line), true
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// lineEnds converts line terminators (LF, CR LF or CR) to LF.
type lineEnds struct {
	r       io.Reader
	afterCR bool
}

func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		if n = l.convert(p[:n]); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (l *lineEnds) convert(p []byte) int {
	if !l.afterCR && bytes.IndexByte(p, '\r') < 0 {
		return len(p)
	}
	kept := p[:0]
	for _, b := range p {
		if b != '\n' || !l.afterCR {
			kept = append(kept, b)
		}
		if l.afterCR = b == '\r'; l.afterCR {
			kept[len(kept)-1] = '\n'
		}
	}
	return len(kept)
}

// eventStream is the state of a stream that may have several connections, one after the other.
type eventStream struct {
	last   string        // id of the last event
	pause  time.Duration // before the next connection
	stalls int           // how often in a row a connection has ended soon and without anything new
}

// read passes the data of each message event to use, until use returns false or the connection
// ends, and returns the reason. An unterminated event counts only if its data is complete. An event
// that is too long is not requested again.
func (s *eventStream) read(r io.Reader, limit func() int64, use func(data []byte) (more bool)) error {
	for events := newEventReader(r, limit); ; {
		e, err := events.next()
		whole := err == nil || e.isMessage() && jsonx.Valid(e.data)
		if e.hasID && (whole || errors.Is(err, errLongEvent)) {
			s.last = e.id
		}
		if e.retry > 0 {
			s.pause = e.retry
		}
		if whole && e.isMessage() && !use(e.data) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isVisible reports whether s has only the characters allowed in a session id,
// 0x21 to 0x7E.
func isVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7E }) < 0
}

// lasting is the least duration of a connection that may have been closed for idleness by an
// intermediary. Many load balancers do so after a minute, so its end says nothing about the server.
const lasting = 5 * time.Second

// ended counts the end of a connection that was opened at a time.
func (s *eventStream) ended(opened time.Time, hadNew bool) {
	s.stalls++
	if hadNew || time.Since(opened) >= lasting {
		s.stalls = 0
	}
}
