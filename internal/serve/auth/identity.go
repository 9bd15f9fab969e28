// Package auth determines the [Identity] of the sender of an HTTP request, from the server's token
// file or from access tokens of an issuer (serve.oauth). It also ends what runs with a token that
// has become invalid. The package knows neither MCP nor what callers are offered.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/oauth/accesstoken"
)

// Endpoint is the path of the MCP endpoint. The endpoints of profiles are below it, and a token may
// be limited to one of them.
const Endpoint = "/mcp"

// Identity is the sender of a request, and what its token permits. Replicas send it to each other
// as JSON.
type Identity struct {
	Name    string   `json:"name"` // of the token, or stdio or local
	Groups  []string `json:"groups,omitempty"`
	Profile string   `json:"profile,omitempty"` // profile that it is offered; empty means all tools
	// Expires is zero if the token never expires.
	Expires time.Time `json:"expires"`
	Scopes  []string  `json:"scopes,omitempty"`  // of an access token
	Console bool      `json:"console,omitempty"` // it may enter the console
	// Sum identifies the token. Zero means that there is no token, or that any token of the name
	// will do; see [Identity.AnyToken].
	Sum Hash `json:"sum"`
	// Base is the beginning of the server's URLs as the sender reaches it. It is empty unless the
	// request came over HTTP.
	Base string `json:"base,omitempty"`
	// verifier is what verified the access token; nil for other tokens.
	verifier *accesstoken.Verifier
}

// AnyToken returns the identity for a session, which may continue with another token of the same
// name.
func (i Identity) AnyToken() Identity {
	i.Sum = Hash{}
	return i
}

// Account is the owner of sessions and of request states: a name and a profile.
func (i Identity) Account() string { return i.Name + "\x00" + i.Profile }

// Caller returns the identity as the caller of calls.
func (i Identity) Caller() *caller.Caller {
	who := &caller.Caller{Name: i.Name, Groups: i.Groups, Profile: i.Profile}
	if i.Name != caller.Stdio && i.Name != caller.Local {
		who.Token = i.Name
	}
	if i.verifier != nil {
		who.Scopes = append([]string{}, i.Scopes...)
	}
	return who
}

type identityKey struct{}

// With returns a context that has the sender of a request.
func With(ctx context.Context, from Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, from)
}

// From returns the sender that [With] has set.
func From(ctx context.Context) (from Identity, ok bool) {
	from, ok = ctx.Value(identityKey{}).(Identity)
	return from, ok
}

// Verifier verifies the bearer tokens of requests. It is safe for concurrent use.
type Verifier interface {
	// Find returns the owner of a token; the token is "" if the request has none. path is that of
	// the request. If the token is invalid, Find returns the reason.
	Find(ctx context.Context, token, path string) (Identity, *Rejection)
	// Renew updates an identity with what its token permits now. It returns false if the token has
	// expired or was removed.
	Renew(Identity) (Identity, bool)
	// Challenge returns the header WWW-Authenticate for rejecting a request for a path, or "" for
	// no such header.
	Challenge(no *Rejection, path string) string
}

// Rejection is why a request is refused because of its sender, and how to answer it.
type Rejection struct {
	Status int
	Reason string
	code   string   // error code of RFC 6750, or ""
	scopes []string // that the request needs
}

func (r *Rejection) Error() string { return r.Reason }

// Authenticate returns the sender of a request, or why it is rejected. If by is nil, no token is
// needed.
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

// Hash is the SHA-256 hash of a token.
type Hash [sha256.Size]byte

// HashOf returns the hash of a token, or of another secret that a client shows.
func HashOf(text string) Hash { return sha256.Sum256([]byte(text)) }

// Is reports whether two hashes are the same, in constant time.
func (h Hash) Is(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }
