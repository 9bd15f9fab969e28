package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// maxStalls is how often in a row the stream of an answer may end without a new
// event.
const maxStalls = 2

// receiveStream receives the stream of an answer, and resumes it after its last event if it
// ends early.
func (h *HTTP) receiveStream(ctx context.Context, s *Session, m message, resp *http.Response) error {
	a := answerStream{pause: listenPause}
	for {
		last := a.last
		end := a.read(ctx, s, m.request, resp.Body, h.limit)
		s.drain(resp.Body)
		if a.stalls++; a.last != last {
			a.stalls = 0
		}
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
		select {
		case <-time.After(a.pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		resp, err := h.get(ctx, revision, a.last)
		if lost, ok := errors.AsType[*SessionLostError](err); ok {
			lost.MayHaveRun = true
		}
		if failed, ok := errors.AsType[*HTTPError](err); ok && failed.Status == 0 && a.stalls+1 < maxStalls { // not reached
			a.stalls++
			continue
		}
		if err == nil && contentType(resp) != eventStreamType {
			_ = resp.Body.Close()
			err = httpError(fmt.Errorf("it did not resume its answer (%s, content type %q)", resp.Status, contentType(resp)))
		}
		return resp, err
	}
}

// answerStream is the state of the stream of an answer, over all its connections.
type answerStream struct {
	last   string        // id of the last event
	pause  time.Duration // before the next connection
	stalls int           // connections in a row without a new event
	bad    error         // error of the last event that was not a valid message
}

// read receives events until the request has its answer or the connection ends. It returns the
// reason for the end.
func (a *answerStream) read(ctx context.Context, s *Session, r *Request, body io.Reader, limit *CurrentLimit) error {
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
			if e.isMessage() && (!jsonx.Valid(e.data) || s.receiveAll(ctx, e.data) != nil) {
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
