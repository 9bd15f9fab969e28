package transport

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/secret"
)

// Authorizer provides the access tokens for one server over HTTP. It is safe
// for concurrent use and never asks a person.
type Authorizer interface {
	// Token returns the token for the next request, "" for none. An error that wraps
	// registry.ErrNeedsLogin means that a person must log in.
	Token(ctx context.Context) (string, error)

	// Refused is called when a request with the token sent was answered with status
	// 401 or 403, with the WWW-Authenticate headers of the answer. If it returns
	// again, the request is sent once more, with a new token. nil and false mean that
	// no login would help.
	Refused(ctx context.Context, sent string, status int, challenges []string) (again bool, err error)
}

// Authorize sends the tokens of a with all requests, in the query parameter
// tokenParam if that is not "". Call it before the first request.
func (h *HTTP) Authorize(a Authorizer, tokenParam string) { h.auth, h.tokenParam = a, tokenParam }

// HasAuthorization reports whether the settings give an Authorization header.
func (h *HTTP) HasAuthorization() bool { return h.headers.Get("Authorization") != "" }

// sendAuthorized sends a request with the current token, and once more if its refusal
// led to a new one. r is ours and goes to the configured origin.
func (h *HTTP) sendAuthorized(r *http.Request) (*http.Response, error) {
	if h.auth == nil {
		return h.send(r)
	}
	for again := false; ; again = true {
		token, err := h.auth.Token(r.Context())
		if err != nil {
			return nil, h.noToken(r, err)
		}
		if again && r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, h.refuse(r, err)
			}
		}
		resp, err := h.sendWith(r, token)
		if err != nil || !isRefusal(resp) {
			return resp, err
		}
		another, err := h.auth.Refused(r.Context(), token, resp.StatusCode, resp.Header.Values("WWW-Authenticate"))
		if err != nil {
			// The SDK handles the answer, and we remember the reason.
			_ = h.noToken(r, err)
			return resp, nil
		}
		if again || !another || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
		h.forgetRefusal(r)
	}
}

// forgetRefusal forgets the refusal of a request that is sent again.
func (h *HTTP) forgetRefusal(r *http.Request) {
	if x := exchangeOf(r.Context()); x != nil {
		x.refuse(nil)
		return
	}
	h.ForgetRefusal()
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
	resp, err := h.send(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if token != "" {
		h.sent = token
	}
	if err == nil && resp.StatusCode < 400 {
		h.login = nil
	}
	return resp, err
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

// noToken remembers why there is no token that the server accepts, in the exchange of
// the request or else for LoginFailure.
func (h *HTTP) noToken(r *http.Request, err error) error {
	if x := exchangeOf(r.Context()); x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.login = err
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.login = err
	return err
}

// LoginFailure returns why there was no token that the server accepts for the handshake,
// nil if there was one or none is needed.
func (h *HTTP) LoginFailure() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.login
}
