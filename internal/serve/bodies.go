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

// largeBodies lets every client send a few large bodies at a time, so that the memory
// for them is bounded. The zero value is ready to use.
type largeBodies struct {
	mu     sync.Mutex
	places map[string]chan struct{} // by the name of the client's token
}

// wait returns when it is the client's turn. The caller calls done after the body.
func (l *largeBodies) wait(ctx context.Context, name string) (done func(), err error) {
	l.mu.Lock()
	place := l.places[name]
	if place == nil {
		if l.places == nil {
			l.places = map[string]chan struct{}{}
		}
		place = make(chan struct{}, largeAtOnce)
		l.places[name] = place
	}
	l.mu.Unlock()
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// isTooLarge reports whether an error is that of a body above its limit.
func isTooLarge(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// read reads a body of a client. A client whose body is too large is slowed down.
func (l *largeBodies) read(ctx context.Context, name string, body io.Reader) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(body, smallBody))
	if err != nil || len(head) < smallBody {
		return head, err
	}
	done, err := l.wait(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	whole := bytes.NewBuffer(head)
	if _, err = whole.ReadFrom(body); isTooLarge(err) {
		pause := time.NewTimer(largePause)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return whole.Bytes(), err
}
