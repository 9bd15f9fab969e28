package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/webaddr"
)

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

// isMessage reports whether the event may carry a message.
func (e *serverEvent) isMessage() bool {
	return len(e.data) > 0 && (e.name == "" || e.name == "message")
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
			line, r.begun = bytes.TrimPrefix(line, []byte(byteOrderMark)), true
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// lineEnds converts line terminators (LF, CR LF or CR) to LF.
type lineEnds struct {
	r       io.Reader
	afterCR bool
}

// Read implements [io.Reader].
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

// eventStream is the state of a stream of the server's own messages that outlives one
// connection.
type eventStream struct {
	last  string        // id of the last event
	pause time.Duration // before the next connection
}

// readEvents passes on the data of each message event until the stream ends, and
// reports whether there was any. It discards an event that is not terminated.
func (s *eventStream) readEvents(r io.Reader, limit int64, event func([]byte)) bool {
	any := false
	for events := newEventReader(r, func() int64 { return limit }); ; {
		e, err := events.next()
		if e.hasID && (err == nil || errors.Is(err, errLongEvent)) {
			s.last = e.id
		}
		if e.retry > 0 {
			s.pause = e.retry
		}
		if err != nil {
			return any
		}
		if e.isMessage() {
			any = true
			event(e.data)
		}
	}
}

// isVisible reports whether s has only the characters allowed in a session id,
// 0x21 to 0x7E.
func isVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7E }) < 0
}

// lasting is how long a stream is open that ends because something on the way closes what is
// idle. Many balancers do after a minute, so the end of such a stream says nothing about the server.
const lasting = 5 * time.Second

// stalls counts how often in a row a stream has ended soon and without anything new.
type stalls int

// ended counts the end of a stream that was opened at a time.
func (n *stalls) ended(opened time.Time, hadNew bool) {
	*n++
	if hadNew || time.Since(opened) >= lasting {
		*n = 0
	}
}

// maxStalls is how many stalls end the wait for an answer.
const maxStalls = 2

// receiveStream receives the stream of an answer, and resumes it after its last event if it
// ends early.
func (h *HTTP) receiveStream(ctx context.Context, s *Session, m message, resp *http.Response) error {
	a := answerStream{pause: listenPause}
	for {
		last, opened := a.last, time.Now()
		end := a.readAnswer(ctx, s, m.request, resp.Body, h.limit)
		s.drain(resp.Body)
		a.stalls.ended(opened, a.last != last)
		switch {
		case m.request.isAnswered():
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(end, errLongEvent):
			return httpError(h.limit.Load().Exceeded("message"))
		case (a.last == "" || a.stalls >= maxStalls) && a.bad != nil:
			return httpError(a.bad)
		case a.last == "" || a.stalls >= maxStalls:
			return httpError(errors.New("the response ended without a result"))
		}
		var err error
		if resp, err = h.resume(ctx, m.revision, &a); err != nil {
			return err
		}
	}
}

// resume requests the rest of a stream.
func (h *HTTP) resume(ctx context.Context, revision string, a *answerStream) (*http.Response, error) {
	for {
		if timing.Pause(ctx, a.pause) != nil {
			return nil, ctx.Err()
		}
		resp, err := h.getStream(ctx, revision, a.last)
		if lost, ok := errors.AsType[*SessionLostError](err); ok {
			lost.MayHaveRun = true
		}
		if failed, ok := errors.AsType[*HTTPError](err); ok && failed.Status == 0 && a.stalls+1 < maxStalls {
			// The server was not reached.
			a.stalls++
			continue
		}
		if err == nil && contentType(resp) != eventStreamType {
			_ = resp.Body.Close()
			err = httpError(fmt.Errorf("it did not resume its answer (%s, content type %q)",
				resp.Status, contentType(resp)))
		}
		return resp, err
	}
}

// answerStream is the state of the stream of an answer, over all its connections.
type answerStream struct {
	last   string        // id of the last event
	pause  time.Duration // before the next connection
	stalls stalls        // without a new event
	bad    error         // error of the last event that was not a valid message
}

// readAnswer receives events until the request has its answer or the connection ends. It returns the
// reason for the end.
func (a *answerStream) readAnswer(ctx context.Context, s *Session, r *Request, body io.Reader,
	limit *CurrentLimit) error {
	events := newEventReader(body, func() int64 { return limit.Load().Bytes })
	for !r.isAnswered() {
		e, err := events.next()
		if err == nil || e.isMessage() && jsonx.Valid(e.data) {
			if e.id != "" {
				a.last = e.id
			}
			if e.retry > 0 {
				a.pause = e.retry
			}
			if e.isMessage() && (!jsonx.Valid(e.data) || s.receiveResponse(ctx, r, e.data) != nil) {
				a.bad = noMessage(e.data)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drain reads the end of a body, which has usually arrived, and closes the
// body.
func (s *Session) drain(body io.ReadCloser) {
	ended := make(chan struct{})
	started := s.spawn(func() {
		defer close(ended)
		_, _ = io.CopyN(io.Discard, body, maxErrorBody)
	})
	if started {
		waitFor(ended, afterAnswer)
	}
	_ = body.Close()
}

// SSE is the [Link] over HTTP of revision 2024-11-05: one stream delivers all messages of
// the server, and its first event contains the URL to which ours are posted.
type SSE struct {
	http    *HTTP
	address string  // for our messages
	named   *signal // address is set
}

// NewSSE returns the link over h, which must not be used otherwise.
func NewSSE(h *HTTP) *SSE { return &SSE{http: h, named: newSignal()} }

// run implements [Link].
func (l *SSE) run(ctx context.Context, s *Session) error {
	resp, err := l.http.getStream(ctx, "", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events := newEventReader(resp.Body, func() int64 { return l.http.limit.Load().Bytes })
	for {
		e, err := events.next()
		switch {
		case errors.Is(err, errLongEvent):
			return httpError(l.http.limit.Load().Exceeded("message"))
		case err != nil:
			return io.EOF
		case e.name == "endpoint" && l.address == "":
			if l.address, err = l.resolve(string(e.data)); err != nil {
				return httpError(err)
			}
			l.named.close()
		case e.isMessage() && jsonx.Valid(e.data):
			if err := s.receiveAll(ctx, e.data); err != nil {
				s.receiveMalformed(err)
			}
		case e.isMessage():
			s.receiveMalformed(noMessage(e.data))
		}
	}
}

// resolve returns the URL that a server specifies for our messages.
func (l *SSE) resolve(reference string) (string, error) {
	base, err := url.Parse(l.http.endpoint)
	if err != nil {
		return "", err
	}
	u, err := base.Parse(reference)
	if err != nil {
		return "", errors.New("its endpoint event contains a malformed URL")
	}
	if webaddr.Origin(u) != l.http.origin {
		return "", fmt.Errorf("it refers to an address at another origin, %s; nothing was sent there",
			webaddr.Origin(u))
	}
	return u.String(), nil
}

// send implements [Link].
func (l *SSE) send(ctx context.Context, s *Session, m message) error {
	select {
	case <-l.named.c:
	case <-s.over: // the session has the reason
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	resp, err := l.http.post(ctx, l.address, m)
	if err != nil {
		return err
	}
	l.http.mu.Lock()
	l.http.older = true // the server has accepted a message
	l.http.mu.Unlock()
	return resp.Body.Close()
}
