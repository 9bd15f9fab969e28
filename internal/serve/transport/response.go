package transport

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// stallTime is how long a client may leave a response unread.
	stallTime = 30 * time.Second
	// headTime is how long a stream waits for an event before it sends its headers.
	headTime = 100 * time.Millisecond
)

// Response closes its connection if the client does not read it. A stream that has nothing to send
// sends comments, because proxies close silent connections, and because clients then notice a lost
// connection. Create it with [NewResponse], and call End when the handler has returned.
type Response struct {
	http.ResponseWriter
	timing    *http.ResponseController
	keepAlive time.Duration // interval of comments. Zero means none
	header    http.Header   // as the handler sets it, without s.mu

	mu    sync.Mutex
	begun http.Header // a copy of header for the timer, made by [Response.Begin]
	sent  bool        // the headers
	open  bool        // the headers that were sent are those of a stream
	beat  *time.Timer // sends the next comment, if the response is a stream
	ended bool
	void  bool // drop everything that is written from now on
}

// NewResponse returns the response to a request. keepAlive is the interval of comments. Zero means
// none.
func NewResponse(w http.ResponseWriter, keepAlive time.Duration) *Response {
	return &Response{ResponseWriter: w, timing: http.NewResponseController(w),
		keepAlive: keepAlive, header: w.Header().Clone()}
}

// Header implements http.ResponseWriter.
func (s *Response) Header() http.Header { return s.header }

// limit limits the time of one write. The returned function lifts the limit, because a
// stream may be silent for longer.
func (s *Response) limit() func() {
	_ = s.timing.SetWriteDeadline(time.Now().Add(stallTime))
	return func() { _ = s.timing.SetWriteDeadline(time.Time{}) }
}

// drop drops everything that is written from now on, because the request was canceled and must not
// be answered (revision 2025-11-25, utilities, "Cancellation").
func (s *Response) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.void = true
}

// Begin is called when the headers of the response are set and its first event may take a while.
func (s *Response) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = s.header.Clone()
	s.follow(headTime)
}

// follow makes a stream send a comment if it has no event within d. s.mu is held.
func (s *Response) follow(d time.Duration) {
	stream := s.open || !s.sent && hasEvents(s.header)
	switch {
	case s.ended:
	case s.beat == nil && stream && d > 0:
		s.beat = time.AfterFunc(d, s.comment)
	case stream && d > 0:
		s.beat.Reset(d)
	case s.beat != nil:
		s.beat.Stop()
	}
}

func hasEvents(header http.Header) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")
}

// comment sends the headers of the stream or, after them, a comment.
func (s *Response) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.sent && !s.open {
		return
	}
	defer s.limit()()
	if s.sent {
		_, _ = io.WriteString(s.ResponseWriter, ": keep-alive\n\n")
	} else {
		s.head(http.StatusOK, s.begun)
	}
	_ = s.timing.Flush()
	s.follow(s.keepAlive)
}

// head sends the headers. s.mu is held.
func (s *Response) head(status int, header http.Header) {
	s.sent, s.open = true, hasEvents(header)
	to := s.set(header)
	if s.void && !s.open {
		to.Del("Content-Type")
		status = http.StatusAccepted
	}
	if s.open {
		to.Set("X-Accel-Buffering", "no") // nginx would buffer events
	}
	s.ResponseWriter.WriteHeader(status)
}

// set sets the headers that are sent, and returns them. s.mu is held.
func (s *Response) set(header http.Header) http.Header {
	to := s.ResponseWriter.Header()
	clear(to)
	maps.Copy(to, header)
	return to
}

// WriteHeader implements http.ResponseWriter.
func (s *Response) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sent {
		s.head(status, s.header)
	}
	s.follow(s.keepAlive)
}

// Write implements http.ResponseWriter. The SDK writes each event at once. It writes a
// protocol error as the whole response, with a status; if the stream is open by then, the
// error is an event.
func (s *Response) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.limit()()
	if !s.sent {
		s.head(http.StatusOK, s.header)
	}
	var n int
	var err error
	if s.void {
		n = len(p)
	} else if s.open && !hasEvents(s.header) {
		if _, err = fmt.Fprintf(s.ResponseWriter, "event: message\ndata: %s\n\n", p); err == nil {
			n = len(p)
		}
	} else {
		n, err = s.ResponseWriter.Write(p)
	}
	s.follow(s.keepAlive)
	return n, err
}

// Flush implements http.Flusher.
func (s *Response) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.limit()()
	if !s.sent {
		s.head(http.StatusOK, s.header)
	}
	_ = s.timing.Flush()
}

// End is called when the handler has returned.
func (s *Response) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if !s.sent { // net/http sends them
		s.set(s.header)
	}
	if s.beat != nil {
		s.beat.Stop()
	}
}

// Unwrap returns the wrapped writer to http.ResponseController.
func (s *Response) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// BeforeAnswer calls a function before anything of a response is written.
type BeforeAnswer struct {
	http.ResponseWriter
	Do func()
}

// WriteHeader implements http.ResponseWriter.
func (b BeforeAnswer) WriteHeader(status int) {
	b.Do()
	b.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (b BeforeAnswer) Write(p []byte) (int, error) {
	b.Do()
	return b.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer to http.ResponseController.
func (b BeforeAnswer) Unwrap() http.ResponseWriter { return b.ResponseWriter }
