package wire

import (
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
	"github.com/toolreg/toolreg/internal/webaddr"
)

// send implements [Link]: it sends a message in a request of its own, and receives the
// response. A refusal applies to this message alone, since other clients may have calls
// running in the session, unless it says that the session is lost.
func (h *HTTP) send(ctx context.Context, to receiver, m message) error {
	resp, err := h.post(ctx, h.endpoint, m)
	switch {
	case err != nil:
		return err
	case m.request == nil:
		return resp.Body.Close()
	case contentType(resp) == eventStreamType:
		err = h.receiveStream(ctx, to, m, resp)
	default:
		err = h.receiveBody(ctx, to, m.request, resp)
		_ = resp.Body.Close()
	}
	if failed, ok := errors.AsType[*HTTPError](err); ok {
		failed.MayHaveRun = true
	}
	return err
}

// receiveBody receives an answer that is not a stream.
func (h *HTTP) receiveBody(ctx context.Context, to receiver, r *Request, resp *http.Response) error {
	body, err := io.ReadAll(resp.Body)
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
	err = to.receiveResponse(ctx, r, body)
	switch {
	case r.isAnswered():
		return nil
	case err != nil:
		return httpError(noMessage(body))
	}
	return httpError(errors.New("its answer is not for this request: " + text.Valid(text.Head(body, 100))))
}

// run implements [Link]. It ends the session with ctx.
func (h *HTTP) run(ctx context.Context, to receiver) error {
	<-ctx.Done()
	h.mu.Lock()
	over := h.session == "" || h.lost || h.stays
	h.mu.Unlock()
	if !over {
		h.deleteSession(context.WithoutCancel(ctx), to.Revision())
	}
	return ErrClosed
}

// maxStalls is how many stalls end the wait for an answer.
const maxStalls = 2

// receiveStream receives the stream of an answer, and resumes it after its last event if it
// ends early.
func (h *HTTP) receiveStream(ctx context.Context, to receiver, m message, resp *http.Response) error {
	a := answerStream{pause: listenPause}
	for {
		last, opened := a.last, time.Now()
		end := a.readAnswer(ctx, to, m.request, resp.Body, h.limit)
		drain(resp.Body)
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
func (a *answerStream) readAnswer(ctx context.Context, to receiver, r *Request, body io.Reader,
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
			if e.isMessage() && (!jsonx.Valid(e.data) || to.receiveResponse(ctx, r, e.data) != nil) {
				a.bad = noMessage(e.data)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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

func (l *SSE) run(ctx context.Context, to receiver) error {
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
			if err := to.receiveAll(ctx, e.data); err != nil {
				to.receiveMalformed(err)
			}
		case e.isMessage():
			to.receiveMalformed(invalidMessage(e.data))
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

func (l *SSE) send(ctx context.Context, to receiver, m message) error {
	select {
	case <-l.named.c:
	case <-to.Done(): // the session has the reason
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
