package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// entry lets in requests over HTTP that have a valid token, and refuses others.
type entry struct {
	tokens auth.Verifier // nil if clients need no token
	log    *slog.Logger
}

// refuse answers a request that is not allowed, and logs it.
func (e *entry) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	e.log.Warn("request refused", "status", status, "reason", reason,
		"from", r.RemoteAddr, "host", r.Host, "path", r.URL.Path)
	http.Error(w, reason, status)
}

// authenticated returns who sends a request. If that has no valid token, it is answered.
func (e *entry) authenticated(w http.ResponseWriter, r *http.Request) (from auth.Identity, ok bool) {
	from, no := auth.Authenticate(r, e.tokens)
	if no != nil {
		e.reject(w, r, no)
	}
	return from, no == nil
}

// reject answers a request that is not accepted because of its token.
func (e *entry) reject(w http.ResponseWriter, r *http.Request, no *auth.Rejection) {
	if challenge := e.tokens.Challenge(no, r.URL.EscapedPath()); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if no.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	e.refuse(w, r, no.Status, no.Reason)
}

// posted returns whose token is in a form that was posted.
func (e *entry) posted(w http.ResponseWriter, r *http.Request) (auth.Identity, *auth.Rejection) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTime))
	return e.tokens.Find(r.Context(), strings.TrimSpace(r.PostFormValue("token")), r.URL.EscapedPath())
}

// WithToken returns a handler that only clients with a token for the whole registry reach: those
// that are bound to a profile must not learn what is outside it.
func (h *HTTP) WithToken(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := h.authenticated(w, r)
		switch {
		case !ok:
		case h.server.isBound(from):
			h.refuse(w, r, http.StatusForbidden, "forbidden: this token is bound to a profile")
		default:
			next(w, r)
		}
	}
}

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
		spellings := spellings(in.R.Context(), h.server.offers, in.From, name, jsonx.Get(params, "arguments"))
		if no := o.Permit(in.From, spellings...); no != nil {
			return no
		}
	}
	return nil
}

// spellings returns the names of the tool that a call with this name makes, and of the tool that
// it reaches through call_tool.
func spellings(ctx context.Context, offers *current.Offers, from auth.Identity, name string,
	arguments json.RawMessage) []string {
	out := []string{name}
	ctx = caller.With(ctx, &caller.Caller{Name: from.Name, Token: from.Name, Profile: from.Profile})
	if _, err := offers.Offered(ctx); err != nil { // the call fails too
		return out
	}
	v, done := offers.Use(ctx)
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
