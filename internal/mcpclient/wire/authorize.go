package wire

import (
	"bytes"
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

	// Sign adds a token that Token returned to the header of a request.
	Sign(r *http.Request, token string) error

	// Received is called with the status and the header of each response to a request,
	// which carried the token sent, "" for none. If it returns again, the request was
	// refused and is sent again, with another token or proof. If it returns false and nil, a
	// login would not help.
	Received(ctx context.Context, sent string, status int, header http.Header) (again bool, err error)
}

// Authorize sends the tokens of a with all requests, in the query parameter
// tokenParam if that is not "". Call it before the first request.
func (h *HTTP) Authorize(a Authorizer, tokenParam string) { h.auth, h.tokenParam = a, tokenParam }

// HasAuthorization reports whether the settings contain an Authorization
// header.
func (h *HTTP) HasAuthorization() bool { return h.headers.Load().Get("Authorization") != "" }

// maxSends limits how often a request is sent: with a proof that lacks the server's nonce,
// with a token that has expired, and with a new one.
const maxSends = 3

// sendAuthorized sends a request with the current token, and again if its refusal
// led to another token or proof. r is ours and goes to the configured origin.
func (h *HTTP) sendAuthorized(r *http.Request) (*http.Response, error) {
	if h.auth == nil {
		return h.roundTrip(r)
	}
	for sends := 1; ; sends++ {
		token, err := h.auth.Token(r.Context())
		if err != nil {
			return nil, &LoginError{err}
		}
		if sends > 1 && r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := h.sendWith(r, token)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusUnauthorized && r.Header.Get(sessionHeader) != "" {
			said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
			resp.Body = &readBody{io.MultiReader(bytes.NewReader(said), resp.Body), resp.Body}
			if namesLostSession(string(said)) {
				return resp, nil // no login is needed
			}
		}
		again, err := h.auth.Received(r.Context(), token, resp.StatusCode, resp.Header)
		if err != nil {
			_ = resp.Body.Close()
			return nil, &LoginError{err}
		}
		if sends == maxSends || !again || r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
	}
}

// readBody is a body of which the beginning was read.
type readBody struct {
	io.Reader
	io.Closer
}

func (h *HTTP) sendWith(r *http.Request, token string) (*http.Response, error) {
	r = r.Clone(r.Context())
	switch {
	case token == "":
	case h.tokenParam != "":
		q := r.URL.Query()
		q.Set(h.tokenParam, token)
		r.URL.RawQuery = q.Encode()
	default:
		if err := h.auth.Sign(r, token); err != nil {
			return nil, &LoginError{err}
		}
	}
	if token != "" {
		h.mu.Lock()
		h.sent = token
		h.mu.Unlock()
	}
	return h.roundTrip(r)
}

// withoutToken masks the token of a request in a text that may be shown.
func (h *HTTP) withoutToken(r *http.Request, s string) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
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
