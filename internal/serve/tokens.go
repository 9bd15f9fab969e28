package serve

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
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
	tick := time.Tick(revokeEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		invalid := func(from auth.Identity) bool { _, ok := h.tokens.Renew(from); return !ok }
		h.visits.CancelOf(func(from auth.Identity) bool { now, ok := h.tokens.Renew(from); return !ok || !now.Console })
		h.requests.CancelOf(invalid)
		h.server.tasks.EndOf(func(from auth.Identity) bool { return invalid(from.AnyToken()) }, auth.ErrRevoked)
		h.server.sessions.EndOf(invalid)
	}
}

// permitCalls returns why a message with calls of tools is rejected (serve.oauth.scopes); nil if
// it is permitted. Calls within a call, such as those of scripts, are checked when they are made,
// see [caller.Caller].
func (h *HTTP) permitCalls(in *transport.Inbound) *auth.Rejection {
	o := h.opts.OAuth
	if o == nil || len(o.Settings().Scopes) == 0 {
		return nil
	}
	for _, message := range in.Messages() {
		if method, _ := jsonx.Text(jsonx.Get(message, "method")); method != "tools/call" {
			continue
		}
		params := jsonx.Get(message, "params")
		name, _ := jsonx.Text(jsonx.Get(params, "name"))
		spellings := h.server.spellings(in.R.Context(), in.From, name, jsonx.Get(params, "arguments"))
		if no := o.Permit(in.From, spellings...); no != nil {
			return no
		}
	}
	return nil
}

// spellings returns the names of the tool that a call with this name makes, and of the tool that
// it reaches through call_tool.
func (s *Server) spellings(ctx context.Context, from auth.Identity, name string, arguments json.RawMessage) []string {
	out := []string{name}
	ctx = caller.With(ctx, &caller.Caller{Name: from.Name, Token: from.Name, Profile: from.Profile})
	if _, err := s.offers.Offered(ctx); err != nil { // the call fails too
		return out
	}
	v, done := s.offers.Use(ctx)
	defer done()
	if t := v.WithApps().Tool(name); t != nil {
		out = append(out, t.Tool.Called()...)
		if inner := t.Inner(arguments); inner != "" {
			out = append(out, inner)
		}
	}
	for _, one := range slices.Clone(out) {
		if t, err := v.Registry.Lookup(one); err == nil {
			out = append(out, t.Called()...)
		}
	}
	return out
}
