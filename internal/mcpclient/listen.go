package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
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

const (
	// listenPause is the time before a stream that ended is opened anew, unless
	// the server names one, which may be from minListenPause, or it would have us
	// ask without end, to maxListenPause.
	listenPause    = time.Second
	minListenPause = 100 * time.Millisecond
	maxListenPause = 30 * time.Second
	// maxListens is how often a stream is opened in a row that brings nothing.
	maxListens = 3
)

// listener opens a session's stream and hears what comes.
type listener struct {
	guard    *httpGuard
	endpoint string
	limit    int64 // bytes of one event
	log      *slog.Logger
	hear     func(jsonrpc.Message)
}

// listen hears the server until ctx ends or the stream cannot be had.
func (l *listener) listen(ctx context.Context, session string) {
	var s eventStream
	for vain := 0; vain < maxListens; vain++ {
		body, err := l.open(ctx, session, s.last)
		if err != nil {
			l.log.Debug("no stream of the server's own messages", "error", err)
			return
		}
		s.pause = listenPause
		if s.read(body, l.limit, l.heard) {
			vain = 0
		}
		_ = body.Close()
		select {
		case <-time.After(s.pause):
		case <-ctx.Done():
			return
		}
	}
}

func (l *listener) open(ctx context.Context, session, last string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(listening(ctx), http.MethodGet, l.endpoint, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := l.guard.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s, content type %q", resp.Status, cut(kind, 100))
	}
	return resp.Body, nil
}

func (l *listener) heard(data []byte) {
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		l.log.Warn("malformed message of the server", "error", err)
		return
	}
	if _, ok := m.(*jsonrpc.Response); ok {
		l.log.Debug("answer on the stream of the server's own messages dropped")
		return
	}
	l.hear(m)
}

// listeningKey marks the requests of a listener: their failure explains no
// other.
type listeningKey struct{}

func listening(ctx context.Context) context.Context {
	return context.WithValue(ctx, listeningKey{}, true)
}

func isListening(ctx context.Context) bool { return ctx.Value(listeningKey{}) != nil }

// eventStream is what outlives one connection of an event stream (HTML, server-
// sent events).
type eventStream struct {
	last  string        // id of the last event
	pause time.Duration // before the next connection
}

// read hands on the data of each message event until the stream ends, and
// reports whether there was any.
func (s *eventStream) read(r io.Reader, limit int64, hear func([]byte)) bool {
	lines := bufio.NewReader(r)
	var data []byte
	name, any := "", false
	for {
		line, err := readLine(lines, limit-int64(len(data)))
		if err != nil {
			return any // an event that was not ended is none
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			if len(line) > 0 {
				continue // a comment
			}
			if data = bytes.TrimSuffix(data, []byte("\n")); len(data) > 0 && (name == "" || name == "message") {
				any = true
				hear(data)
			}
			data, name = nil, ""
		case "data":
			data = append(append(data, value...), '\n')
		case "event":
			name = string(value)
		case "id":
			s.last = headerValue(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 32); err == nil {
				s.pause = min(max(time.Duration(ms)*time.Millisecond, minListenPause), maxListenPause)
			}
		}
	}
}

// headerValue returns an event's id as a header can carry it, "" otherwise.
func headerValue(id []byte) string {
	if len(id) > 1<<10 || !isVisible(string(id)) {
		return ""
	}
	return string(id)
}

var errLongEvent = errors.New("an event over the limit")

// readLine returns the next line without its end, which is LF or CR LF.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); int64(len(line)) > limit {
			return nil, errLongEvent
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
}
