package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

const (
	// MaxBody is the maximum size of a request's body.
	MaxBody = 16 << 20
	// bodyTime is the time limit for the body of a request.
	bodyTime = 60 * time.Second
	// smallBody is the size up to which bodies are read without waiting.
	smallBody = 256 << 10
	// largeAtOnce is how many larger bodies of one client are read at the same time.
	largeAtOnce = 4
	// largePause is how long a client whose body is too large keeps its turn.
	largePause = time.Second
)

// Bodies limits how many large bodies a client sends at a time, which bounds the memory
// for them. It is safe for concurrent use; the zero value is ready to use.
type Bodies struct {
	Time time.Duration // the limit for one body. Zero means a minute
	Max  int64         // the size of one body at most. Zero means MaxBody

	mu     sync.Mutex
	places map[string]chan struct{} // by the name of the client's token
}

// wait returns when it is the client's turn. The caller calls done after the body.
func (b *Bodies) wait(ctx context.Context, name string) (done func(), err error) {
	b.mu.Lock()
	place := b.places[name]
	if place == nil {
		if b.places == nil {
			b.places = map[string]chan struct{}{}
		}
		place = make(chan struct{}, largeAtOnce)
		b.places[name] = place
	}
	b.mu.Unlock()
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read reads a body of a client. One whose body is too large, which is an [*http.MaxBytesError], is
// slowed down.
func (b *Bodies) read(ctx context.Context, name string, body io.Reader) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(body, smallBody))
	if err != nil || len(head) < smallBody {
		return head, err
	}
	done, err := b.wait(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	whole := bytes.NewBuffer(head)
	_, err = whole.ReadFrom(body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		select {
		case <-time.After(largePause):
		case <-ctx.Done():
		}
	}
	return whole.Bytes(), err
}

// Read reads the body of a request of a client within its limits; name is that of its token.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, name string) ([]byte, error) {
	largest := cmp.Or(b.Max, MaxBody)
	tooLarge := &Refusal{Status: http.StatusRequestEntityTooLarge,
		Reason: fmt.Sprintf("the request is larger than %d MiB", largest>>20)}
	if r.ContentLength > largest {
		return nil, tooLarge
	}
	within := cmp.Or(b.Time, bodyTime)
	timing := http.NewResponseController(w)
	_ = timing.SetReadDeadline(time.Now().Add(within))
	ctx, cancel := context.WithTimeoutCause(r.Context(), within, os.ErrDeadlineExceeded)
	defer cancel()
	body, err := b.read(ctx, name, http.MaxBytesReader(w, r.Body, largest))
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		_ = timing.SetReadDeadline(time.Time{})
		return text.WithoutMark(body), nil
	case isTooLarge:
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Refusal{Status: http.StatusRequestTimeout,
			Reason: fmt.Sprintf("the request was not received within %s", within)}
	}
	return nil, badRequest(errors.New("the request body ended early"))
}
