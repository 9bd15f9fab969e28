package serve

import (
	"context"
	"errors"
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
	byToken map[tokenHash]*requestsOf
}

// requestsOf has the running requests with one token.
type requestsOf struct {
	from   identity
	cancel map[int]context.CancelCauseFunc
}

// add returns a context for a request that is canceled when its token is removed. The caller
// calls done at the end of the request.
func (r *requests) add(ctx context.Context, from identity) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byToken == nil {
		r.byToken = map[tokenHash]*requestsOf{}
	}
	of := r.byToken[from.sum]
	if of == nil {
		of = &requestsOf{from, map[int]context.CancelCauseFunc{}}
		r.byToken[from.sum] = of
	}
	r.serial++
	n := r.serial
	of.cancel[n] = cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(of.cancel, n); len(of.cancel) == 0 {
			delete(r.byToken, from.sum)
		}
	}
}

// cancelOf cancels the requests of those whose tokens are not valid any more.
func (r *requests) cancelOf(invalid func(identity) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.byToken {
		if !invalid(of.from) {
			continue
		}
		for _, cancel := range of.cancel {
			cancel(errRevoked)
		}
	}
}

// FollowTokens ends the streams, sessions and calls of tokens that expire, are removed from their
// file or are not accepted any more, until ctx is done. It also follows the keys of access tokens.
func (h *HTTP) FollowTokens(ctx context.Context) {
	if h.tokens == nil {
		return
	}
	if h.opts.OAuth != nil {
		var keys sync.WaitGroup
		keys.Go(func() { h.opts.OAuth.follow(ctx) })
		defer keys.Wait()
	}
	tick := time.NewTicker(revokeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		invalid := func(from identity) bool { _, ok := h.tokens.renew(from); return !ok }
		h.visits.cancelOf(func(from identity) bool { now, ok := h.tokens.renew(from); return !ok || !now.console })
		h.requests.cancelOf(invalid)
		h.server.tasks.endOf(func(from identity) bool { return invalid(from.anyToken()) }, errRevoked)
		for _, session := range h.server.sessions.endOf(invalid) {
			h.server.closing.Go(func() { _ = session.Close() })
		}
	}
}
