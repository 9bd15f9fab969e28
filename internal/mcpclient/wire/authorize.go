package wire

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/secret"
)

// Authorizer provides the access tokens for one server over HTTP. It is safe
// for concurrent use and never asks the user.
type Authorizer interface {
	// Token returns the token for the next request, "" for none. An error that wraps
	// registry.ErrNeedsLogin means that the user must log in.
	Token(ctx context.Context) (string, error)

	// Refused is called when a request with the token sent got status 401 or 403,
	// with the WWW-Authenticate headers of the response. If it returns again, the
	// request is sent once more, with a new token. If it returns false and nil, a
	// login would not help.
	Refused(ctx context.Context, sent string, status int, challenges []string) (again bool, err error)
}

// Authorize sends the tokens of a with all requests, in the query parameter
// tokenParam if that is not "". Call it before the first request.
func (h *HTTP) Authorize(a Authorizer, tokenParam string) { h.auth, h.tokenParam = a, tokenParam }

// HasAuthorization reports whether the settings contain an Authorization
// header.
func (h *HTTP) HasAuthorization() bool { return h.headers.Get("Authorization") != "" }

// sendAuthorized sends a request with the current token, and once more if its refusal
// led to a new one. r is ours and goes to the configured origin.
func (h *HTTP) sendAuthorized(r *http.Request) (*http.Response, error) {
	if h.auth == nil {
		return h.base.RoundTrip(r)
	}
	for again := false; ; again = true {
		token, err := h.auth.Token(r.Context())
		if err != nil {
			return nil, &LoginError{err}
		}
		if again && r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := h.sendWith(r, token)
		if err != nil || !isRefusal(resp) {
			return resp, err
		}
		another, err := h.auth.Refused(r.Context(), token, resp.StatusCode, resp.Header.Values("WWW-Authenticate"))
		if err != nil {
			_ = resp.Body.Close()
			return nil, &LoginError{err}
		}
		if again || !another || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
	}
}

func isRefusal(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// sendWith sends a request with a token.
func (h *HTTP) sendWith(r *http.Request, token string) (*http.Response, error) {
	r = r.Clone(r.Context())
	switch {
	case token == "":
	case h.tokenParam != "":
		q := r.URL.Query()
		q.Set(h.tokenParam, token)
		r.URL.RawQuery = q.Encode()
	default:
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if token != "" {
		h.mu.Lock()
		h.sent = token
		h.mu.Unlock()
	}
	return h.base.RoundTrip(r)
}

// withoutToken masks the token of a request in a text that may be shown.
func (h *HTTP) withoutToken(r *http.Request, s string) string {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if h.tokenParam != "" {
		token = r.URL.Query().Get(h.tokenParam)
	}
	if h.auth == nil || token == "" {
		return s
	}
	return strings.ReplaceAll(s, token, secret.Masked)
}

// SentToken returns the token that a request carried last, "" for none.
func (h *HTTP) SentToken() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent
}
