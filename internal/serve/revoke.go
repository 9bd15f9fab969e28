package serve

import (
	"context"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
)

// revokeEvery is how often tokens are looked at, so that what belongs to one that was
// removed ends soon.
const revokeEvery = time.Second

// FollowTokens ends the streams, sessions and calls of tokens that expire, are removed from their
// file or are not accepted any more, until ctx is done. It also follows the keys of access tokens.
func (h *HTTP) FollowTokens(ctx context.Context) {
	if h.tokens == nil {
		return
	}
	if h.opts.OAuth != nil {
		var keys sync.WaitGroup
		keys.Go(func() { h.opts.OAuth.Follow(ctx) })
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
		invalid := func(from auth.Identity) bool { _, ok := h.tokens.Renew(from); return !ok }
		h.visits.CancelOf(func(from auth.Identity) bool { now, ok := h.tokens.Renew(from); return !ok || !now.Console })
		h.requests.CancelOf(invalid)
		h.server.tasks.EndOf(func(from auth.Identity) bool { return invalid(from.AnyToken()) }, auth.ErrRevoked)
		for _, session := range h.server.sessions.EndOf(invalid) {
			h.server.closing.Go(func() { _ = session.Close() })
		}
	}
}
