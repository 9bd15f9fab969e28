package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// smallBody is the size up to which bodies are read without waiting.
	smallBody = 256 << 10
	// largeAtOnce is how many larger bodies of one client are read at the same time.
	largeAtOnce = 4
	// largePause is how long a client whose body is too large keeps its turn.
	largePause = time.Second
)

// bodies limits how many large bodies a client sends at a time, which bounds the memory
// for them. It is safe for concurrent use; the zero value is ready to use.
type bodies struct {
	mu     sync.Mutex
	places map[string]chan struct{} // by the name of the client's token
}

// wait returns when it is the client's turn. The caller calls done after the body.
func (b *bodies) wait(ctx context.Context, name string) (done func(), err error) {
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

// Read reads a body of a client; name is that of its token. A client whose body is too
// large, which is an [*http.MaxBytesError], is slowed down.
func (b *bodies) Read(ctx context.Context, name string, body io.Reader) ([]byte, error) {
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
		pause := time.NewTimer(largePause)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return whole.Bytes(), err
}
