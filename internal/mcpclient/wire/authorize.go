package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

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

// tokens sends requests with the tokens of an Authorizer.
type tokens struct {
	auth  Authorizer // nil means no tokens
	param string     // the query parameter that carries the token instead of the header, "" for none

	mu   sync.Mutex
	sent string // token of the last request
}

// maxSends limits how often a request is sent: with a proof that lacks the server's nonce,
// with a token that has expired, and with a new one.
const maxSends = 3

// send sends a request with the current token, and again if its refusal led to
// another token or proof. r is ours and goes to the configured origin.
func (t *tokens) send(r *http.Request, roundTrip func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if t.auth == nil {
		return roundTrip(r)
	}
	for sends := 1; ; sends++ {
		token, err := t.auth.Token(r.Context())
		if err != nil {
			return nil, &LoginError{err}
		}
		if sends > 1 && r.GetBody != nil { // all bodies are in memory
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		authorized, err := t.authorize(r, token)
		if err != nil {
			return nil, err
		}
		resp, err := roundTrip(authorized)
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
		again, err := t.auth.Received(r.Context(), token, resp.StatusCode, resp.Header)
		if err != nil {
			_ = resp.Body.Close()
			return nil, &LoginError{err}
		}
		if sends == maxSends || !again {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
	}
}

// readBody is a body whose beginning was read.
type readBody struct {
	io.Reader
	io.Closer
}

// authorize returns a copy of a request with a token, "" for none.
func (t *tokens) authorize(r *http.Request, token string) (*http.Request, error) {
	r = r.Clone(r.Context())
	switch {
	case token == "":
	case t.param != "":
		q := r.URL.Query()
		q.Set(t.param, token)
		r.URL.RawQuery = q.Encode()
	default:
		if err := t.auth.Sign(r, token); err != nil {
			return nil, &LoginError{err}
		}
	}
	if token != "" {
		t.mu.Lock()
		t.sent = token
		t.mu.Unlock()
	}
	return r, nil
}

// mask masks the token of a request in a text that may be shown.
func (t *tokens) mask(r *http.Request, s string) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if t.param != "" {
		token = r.URL.Query().Get(t.param)
	}
	if t.auth == nil || token == "" {
		return s
	}
	return strings.ReplaceAll(s, token, secret.Masked)
}
