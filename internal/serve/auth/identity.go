// Package auth turns a request over HTTP into the [Identity] of its sender: by the token file of the
// server, or by access tokens of an issuer (serve.oauth). It also ends what runs with a token that is
// no longer valid. The package knows neither MCP nor what callers are offered.
package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
)

// Endpoint is the path of the MCP endpoint. Those of profiles are below it, and a token may be for one
// of them.
const Endpoint = "/mcp"

// Identity says who sends a request, and what its token permits. As JSON it is what replicas tell
// each other of it.
type Identity struct {
	Name    string   `json:"name"` // of its token, stdio or local
	Groups  []string `json:"groups,omitempty"`
	Profile string   `json:"profile,omitempty"` // of the tools that it is offered; empty means all tools
	// Expires is zero if the token never does.
	Expires time.Time `json:"expires"`
	Scopes  []string  `json:"scopes,omitempty"`  // of an access token
	Console bool      `json:"console,omitempty"` // it may enter the console
	// Sum identifies the token. Zero means no token, or any token of the name, see
	// [Identity.AnyToken].
	Sum Hash `json:"sum"`
	// Base begins the addresses of this server, as the sender reaches it. It is empty unless
	// the request came over HTTP.
	Base string `json:"base,omitempty"`
	// under is the state of serve.oauth with which the access token was verified. It is nil
	// for other tokens.
	under *oauthState
}

// AnyToken returns the identity of a session, which goes on with the next token of its name.
func (i Identity) AnyToken() Identity {
	i.Sum = Hash{}
	return i
}

// Account is what sessions, and states of requests, belong to: a name and a profile.
func (i Identity) Account() string { return i.Name + "\x00" + i.Profile }

// Caller returns the caller of calls that an identity makes.
func (i Identity) Caller() *caller.Caller {
	who := &caller.Caller{Name: i.Name, Groups: i.Groups, Profile: i.Profile}
	if i.Name != caller.Stdio && i.Name != caller.Local {
		who.Token = i.Name
	}
	if i.under != nil {
		who.Scopes = append([]string{}, i.Scopes...)
	}
	return who
}

type identityKey struct{}

// With returns a context for the requests of a sender.
func With(ctx context.Context, from Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, from)
}

// From returns the sender of [With].
func From(ctx context.Context) (from Identity, ok bool) {
	from, ok = ctx.Value(identityKey{}).(Identity)
	return from, ok
}

// Verifier says whose tokens the bearer tokens of requests are. It is safe for concurrent use.
type Verifier interface {
	// Find returns whose token it is; "" is that of a request without one. path is that of the
	// request. If the token is not valid, it returns why.
	Find(ctx context.Context, token, path string) (Identity, *Rejection)
	// Renew returns an identity with what its token permits now. It reports false if the token
	// has expired or was removed.
	Renew(Identity) (Identity, bool)
	// Challenge returns the value of WWW-Authenticate with which a request for a path is
	// rejected, or "" for no such header.
	Challenge(no *Rejection, path string) string
}

// Rejection is why a request is refused because of who sends it, and the answer to it.
type Rejection struct {
	Status int
	Reason string
	code   string   // error code of RFC 6750, or ""
	scopes []string // that the request needs
}

func (r *Rejection) Error() string { return r.Reason }

// Authenticate returns who sends a request, or why it is rejected. If by is nil, no token is needed.
func Authenticate(r *http.Request, by Verifier) (Identity, *Rejection) {
	if by == nil {
		return Identity{Name: caller.Local}, nil
	}
	token := ""
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		scheme, rest, _ := strings.Cut(values[0], " ")
		if strings.EqualFold(scheme, "Bearer") {
			token = strings.TrimSpace(rest)
		}
	}
	return by.Find(r.Context(), token, r.URL.EscapedPath())
}
