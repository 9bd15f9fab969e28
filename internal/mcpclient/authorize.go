package mcpclient

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// authorizer returns what has the tokens for an expanded server, nil for none:
// whoever set an Authorization header has chosen how to log in.
func (s *Source) authorizer(server settings.Server, g *httpGuard) Authorizer {
	if s.opts.Auth == nil || g.headers.Get("Authorization") != "" {
		return nil
	}
	return s.opts.Auth(server)
}

// roundTripAuthorized sends a request with the token there is, and once more
// where the refusal of that token gave another. r is ours and goes to the
// configured origin.
func (g *httpGuard) roundTripAuthorized(r *http.Request) (*http.Response, error) {
	token, err := g.auth.Token(r.Context())
	if err != nil {
		return nil, g.noToken(err)
	}
	resp, err := g.sendWith(r, token)
	if err != nil || !isRefusal(resp) {
		return resp, err
	}
	again, err := g.auth.Refused(r.Context(), token, resp.StatusCode, resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		// The SDK knows what to do with the answer, and we remember why.
		_ = g.noToken(err)
		return resp, nil
	}
	if !again || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return resp, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	if token, err = g.auth.Token(r.Context()); err != nil {
		return nil, g.noToken(err)
	}
	if r.GetBody != nil {
		if r.Body, err = r.GetBody(); err != nil {
			return nil, g.refuse(err)
		}
	}
	g.forget()
	resp, err = g.sendWith(r, token)
	if err != nil || !isRefusal(resp) {
		return resp, err
	}
	if _, err := g.auth.Refused(r.Context(), token, resp.StatusCode, resp.Header.Values("WWW-Authenticate")); err != nil {
		_ = g.noToken(err)
	}
	return resp, nil
}

func isRefusal(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// sendWith sends a request with a token, and takes the token out of what the
// answer would have us show.
func (g *httpGuard) sendWith(r *http.Request, token string) (*http.Response, error) {
	r = r.Clone(r.Context())
	switch {
	case token == "":
	case g.tokenParam != "":
		q := r.URL.Query()
		q.Set(g.tokenParam, token)
		r.URL.RawQuery = q.Encode()
	default:
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := g.send(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	if token != "" {
		g.sent = token
	}
	if token != "" && g.refusal != nil {
		g.refusal.text = strings.ReplaceAll(g.refusal.text, token, "***")
	}
	if err == nil && resp.StatusCode < 400 {
		g.login = nil
	}
	return resp, err
}

// sentToken returns the token that a request carried last, "" for none.
func (g *httpGuard) sentToken() string {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// noToken remembers why there is no token that the server takes.
func (g *httpGuard) noToken(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.login = err
	return err
}

func (g *httpGuard) loginFailure() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.login
}

// failedState is the state of a server after err.
func failedState(err error) State {
	if errors.Is(err, registry.ErrNeedsLogin) {
		return StateNeedsLogin
	}
	return StateFailed
}
