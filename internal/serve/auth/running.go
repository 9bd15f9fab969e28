package auth

import (
	"context"
	"errors"
	"sync"
)

// ErrRevoked is the cause with which requests are canceled whose token was removed.
var ErrRevoked = errors.New("the token of the request was removed or has expired")

// Running has the running requests over HTTP by their tokens. The zero value has none. It
// is safe for concurrent use.
type Running struct {
	mu      sync.Mutex
	serial  int
	byToken map[Hash]*runningOf
}

// runningOf has the running requests with one token.
type runningOf struct {
	from   Identity
	cancel map[int]context.CancelCauseFunc
}

// Add returns a context for a request that is canceled when its token is removed. The caller
// calls done at the end of the request.
func (r *Running) Add(ctx context.Context, from Identity) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byToken == nil {
		r.byToken = map[Hash]*runningOf{}
	}
	of := r.byToken[from.Sum]
	if of == nil {
		of = &runningOf{from, map[int]context.CancelCauseFunc{}}
		r.byToken[from.Sum] = of
	}
	r.serial++
	n := r.serial
	of.cancel[n] = cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(of.cancel, n); len(of.cancel) == 0 {
			delete(r.byToken, from.Sum)
		}
	}
}

// CancelOf cancels the requests of those whose tokens are not valid any more.
func (r *Running) CancelOf(invalid func(Identity) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.byToken {
		if !invalid(of.from) {
			continue
		}
		for _, cancel := range of.cancel {
			cancel(ErrRevoked)
		}
	}
}
