package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

const (
	// headerTime is the time limit for the headers of a request.
	headerTime = 10 * time.Second
	// maxForm is the maximum size of the form with a token, in bytes.
	maxForm = 4 << 10
)

// entry lets in requests over HTTP that have a valid token, and refuses others.
type entry struct {
	tokens auth.Verifier // if clients need tokens
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

// checkParams returns an error if headers that repeat the params of a call (revision 2026-07-28, x-mcp-header)
// do not agree with them. It does not wait for an offer.
func checkParams(offers *current.Offers, in *transport.Inbound) error {
	if !in.Modern || in.Member("method") != "tools/call" {
		return nil
	}
	// What all are offered is part of what the client will be.
	o := cmp.Or(offers.For(in.From.Name), offers.Common())
	if o == nil {
		return nil
	}
	params := jsonx.Get(in.Body, "params")
	name, _ := jsonx.Text(jsonx.Get(params, "name"))
	t := offers.View(o, in.From.Profile).WithApps().Tool(name)
	if t == nil {
		return nil
	}
	return wire.MatchParamHeaders(jsonx.Get(t.Raw, "inputSchema"), jsonx.Get(params, "arguments"), in.R.Header)
}
