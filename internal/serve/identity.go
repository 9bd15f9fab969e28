package serve

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
)

// identity says who sends a request, and what its token permits.
type identity struct {
	name    string // of its token, stdio or local
	groups  []string
	profile string    // of the tools that it is offered; "": all
	expires time.Time // zero: never
	console bool      // it may enter the console
	scopes  []string  // of an access token
	base    string    // of the addresses of this server, as it reaches it; "": it is not reached over HTTP
	// under is the state of serve.oauth with which the access token was verified; nil: it is
	// another token.
	under *oauthState
	// sum identifies the token; zero: none, or any of the name, see [identity.anyToken].
	sum tokenHash
}

// anyToken returns the identity of a session, which goes on with the next token of its name.
func (i identity) anyToken() identity {
	i.sum = tokenHash{}
	return i
}

// account is what sessions, and states of requests, belong to: a name and a profile.
func (i identity) account() string { return i.name + "\x00" + i.profile }

type identityKey struct{}

// identify returns who sends a message: the sender of its request over HTTP or, if that has
// been answered, of the request that began the session, or the client on stdin.
func (s *Server) identify(ctx context.Context, req mcp.Request) identity {
	if in := inboundOf(req); in != nil {
		return in.from
	}
	if from, ok := ctx.Value(identityKey{}).(identity); ok {
		return from
	}
	return identity{name: caller.Stdio, profile: s.opts.Profile}
}

// tokens says whose tokens the bearer tokens of requests are. It is safe for concurrent use.
type tokens interface {
	// find returns whose token it is; "" is that of a request without one. path is that of the
	// request. If the token is not valid, it returns why.
	find(ctx context.Context, token, path string) (identity, *rejection)
	// renew returns an identity with what its token permits now. It reports false if the token
	// has expired or was removed.
	renew(identity) (identity, bool)
	// challenge returns the value of WWW-Authenticate with which a request for a path is
	// rejected; "" = none.
	challenge(no *rejection, path string) string
}

// rejection is the answer to a request that is not accepted because of its token.
type rejection struct {
	status int
	reason string
	code   string   // error code of RFC 6750; "" = none
	scopes []string // that the request needs
}

// errNoToken rejects a request without a token of the token file.
var errNoToken = &rejection{status: http.StatusUnauthorized, reason: "unauthorized: send a bearer token of this server"}

// authenticate returns who sends a request, or why it is rejected.
func (h *HTTP) authenticate(r *http.Request) (identity, *rejection) {
	if h.tokens == nil {
		return identity{name: caller.Local}, nil
	}
	token := ""
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		scheme, rest, _ := strings.Cut(values[0], " ")
		if strings.EqualFold(scheme, "Bearer") {
			token = strings.TrimSpace(rest)
		}
	}
	return h.tokens.find(r.Context(), token, r.URL.EscapedPath())
}

// authenticated is authenticate for requests that are answered only with a valid token.
func (h *HTTP) authenticated(w http.ResponseWriter, r *http.Request) (from identity, ok bool) {
	from, no := h.authenticate(r)
	if no != nil {
		h.reject(w, r, no)
	}
	return from, no == nil
}

// reject answers a request that is not accepted because of its token.
func (h *HTTP) reject(w http.ResponseWriter, r *http.Request, no *rejection) {
	if challenge := h.tokens.challenge(no, r.URL.EscapedPath()); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if no.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	h.refuse(w, r, no.status, no.reason)
}
