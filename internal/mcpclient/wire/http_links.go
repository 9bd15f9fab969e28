package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// send implements [Link]: it sends a message in a request of its own, and receives the
// response. A refusal applies to this message alone, since other clients may have calls
// running in the session, unless it says that the session is lost.
func (h *HTTP) send(ctx context.Context, s *Session, m message) error {
	resp, err := h.post(ctx, h.endpoint, m)
	switch {
	case err != nil:
		return err
	case m.request == nil:
		return resp.Body.Close()
	case contentType(resp) == eventStreamType:
		err = h.receiveStream(ctx, s, m, resp)
	default:
		err = h.receiveBody(ctx, s, m.request, resp)
		_ = resp.Body.Close()
	}
	if failed, ok := errors.AsType[*HTTPError](err); ok {
		failed.MayHaveRun = true
	}
	return err
}

// receiveBody receives an answer that is not a stream.
func (h *HTTP) receiveBody(ctx context.Context, s *Session, r *Request, resp *http.Response) error {
	limit := h.limit.Load()
	body, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, limit.Bytes))
	if _, exceeded := errors.AsType[*http.MaxBytesError](err); exceeded {
		err = limit.Exceeded("body")
	}
	body = text.WithoutMark(body)
	switch {
	case err != nil:
		return httpError(err)
	case len(body) == 0:
		return httpError(fmt.Errorf("its answer (%s) is empty", resp.Status))
	case !jsonx.Valid(body) && contentType(resp) != "application/json":
		return httpError(fmt.Errorf("its answer (%s) has the content type %q instead of application/json",
			resp.Status, contentType(resp)))
	case !jsonx.Valid(body):
		return httpError(noMessage(body))
	}
	err = s.receiveResponse(ctx, r, body)
	switch {
	case r.isAnswered():
		return nil
	case err != nil:
		return httpError(noMessage(body))
	}
	return httpError(errors.New("its answer is not for this request: " + text.Valid(text.Head(body, 100))))
}

// run implements [Link]. It ends the session with ctx.
func (h *HTTP) run(ctx context.Context, s *Session) error {
	<-ctx.Done()
	h.mu.Lock()
	over := h.session == "" || h.lost || h.stays
	h.mu.Unlock()
	if !over {
		h.deleteSession(context.WithoutCancel(ctx), s.Revision())
	}
	return ErrClosed
}

// maxStalls is how many stalls end the wait for an answer.
const maxStalls = 2

// receiveStream receives the stream of an answer, and resumes it after its last event if it
// ends early.
func (h *HTTP) receiveStream(ctx context.Context, s *Session, m message, resp *http.Response) error {
	stream := eventStream{pause: listenPause}
	var bad error // of the last event that was not a valid message
	for {
		last, opened := stream.last, time.Now()
		end := stream.read(resp.Body, h.maxAnswer, func(data []byte) bool {
			if !jsonx.Valid(data) || s.receiveResponse(ctx, m.request, data) != nil {
				bad = noMessage(data)
			}
			return !m.request.isAnswered()
		})
		drain(resp.Body)
		stream.ended(opened, stream.last != last)
		switch {
		case m.request.isAnswered():
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(end, errLongEvent):
			return httpError(h.limit.Load().Exceeded("message"))
		case stream.last == "" || stream.stalls >= maxStalls:
			return httpError(cmp.Or(bad, errors.New("the response ended without a result")))
		}
		var err error
		if resp, err = h.resume(ctx, m.revision, &stream); err != nil {
			return err
		}
	}
}

// resume requests the rest of a stream.
func (h *HTTP) resume(ctx context.Context, revision string, stream *eventStream) (*http.Response, error) {
	for {
		if timing.Pause(ctx, stream.pause) != nil {
			return nil, ctx.Err()
		}
		resp, err := h.getStream(ctx, revision, stream.last)
		if lost, ok := errors.AsType[*SessionLostError](err); ok {
			lost.MayHaveRun = true
		}
		if failed, ok := errors.AsType[*HTTPError](err); ok && failed.Status == 0 && stream.stalls+1 < maxStalls {
			// The server was not reached.
			stream.stalls++
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

// maxAnswer returns the current size limit of an event in an answer's stream.
func (h *HTTP) maxAnswer() int64 { return h.limit.Load().Bytes }

// afterAnswer is how long to wait for the end of a stream that has delivered its answer,
// so that the connection can be reused.
const afterAnswer = 5 * time.Millisecond

// drain reads the end of a body, which has usually arrived, and closes the
// body.
func drain(body io.ReadCloser) {
	late := time.AfterFunc(afterAnswer, func() { _ = body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, maxErrorBody)
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

func (l *SSE) run(ctx context.Context, s *Session) error {
	resp, err := l.http.getStream(ctx, "", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events := newEventReader(resp.Body, l.http.maxAnswer)
	for {
		e, err := events.next()
		switch {
		case errors.Is(err, errLongEvent):
			return httpError(l.http.limit.Load().Exceeded("message"))
		case err != nil:
			return io.EOF
		case e.name == "endpoint" && l.address == "":
			u, err := url.Parse(l.http.endpoint)
			if err == nil {
				u, err = u.Parse(string(e.data)) // the origin is checked with each request
			}
			if err != nil {
				return httpError(errors.New("its endpoint event contains a malformed URL"))
			}
			l.address = u.String()
			l.named.close()
		case e.isMessage() && jsonx.Valid(e.data):
			if err := s.receiveAll(ctx, e.data); err != nil {
				s.receiveMalformed(err)
			}
		case e.isMessage():
			s.receiveMalformed(invalidMessage(e.data))
		}
	}
}

func (l *SSE) send(ctx context.Context, s *Session, m message) error {
	select {
	case <-l.named.c:
	case <-s.Done(): // it has the reason
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
