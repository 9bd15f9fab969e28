package serve

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// revokeEvery is how often tokens are looked at, so that what belongs to one that was
// removed ends soon.
const revokeEvery = time.Second

// errRevoked is the cause with which requests are canceled whose token was removed.
var errRevoked = errors.New("the token of the request was removed or has expired")

// requests has the running requests over HTTP by their tokens. The zero value has none. It
// is safe for concurrent use.
type requests struct {
	mu      sync.Mutex
	serial  int
	byToken map[tokenHash]map[int]context.CancelCauseFunc
}

// add returns a context for a request that is canceled when its token is removed. The caller
// calls done at the end of the request.
func (r *requests) add(ctx context.Context, token tokenHash) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byToken == nil {
		r.byToken = map[tokenHash]map[int]context.CancelCauseFunc{}
	}
	of := r.byToken[token]
	if of == nil {
		of = map[int]context.CancelCauseFunc{}
		r.byToken[token] = of
	}
	r.serial++
	n := r.serial
	of[n] = cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(of, n); len(of) == 0 {
			delete(r.byToken, token)
		}
	}
}

// cancelExcept cancels the requests with other tokens.
func (r *requests) cancelExcept(tokens []tokenHash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for token, of := range r.byToken {
		if slices.Contains(tokens, token) {
			continue
		}
		for _, cancel := range of {
			cancel(errRevoked)
		}
	}
}

// FollowTokens ends the streams, sessions and calls of tokens that expire or are removed from
// their file, until ctx is done.
func (h *HTTP) FollowTokens(ctx context.Context) {
	if h.opts.Tokens == nil || h.opts.Tokens.path == "" {
		return
	}
	tick := time.NewTicker(revokeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tokens, console := h.opts.Tokens.current()
		h.visits.cancelExcept(console)
		h.requests.cancelExcept(slices.Collect(maps.Values(tokens)))
		for _, session := range h.server.sessions.endExcept(tokens) {
			h.server.closing.Go(func() { _ = session.Close() })
		}
	}
}
