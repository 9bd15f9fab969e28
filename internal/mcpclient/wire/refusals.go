package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// HTTPError reports that an HTTP server, or a proxy on the way to it, refused a request, or
// that the response cannot be used. The session remains usable. It wraps the [*jsonrpc.Error]
// of the response, if there was one.
type HTTPError struct {
	Status int    // of a refusal; 0 means not a refusal
	Text   string // status line and first line of the body, or the reason

	// Again is when a server that refuses temporarily (status 429 or 503) accepts the request
	// again; zero if it does not say.
	Again time.Time

	// MayHaveRun is set if the server, or a proxy on the way to it, received the request and then failed, so that
	// it may have had effects although there is no result.
	MayHaveRun bool

	body       string // its beginning
	needsLogin bool   // a login, or one with more permissions, is needed
	cause      error
}

func (e *HTTPError) Error() string { return e.Text }

func (e *HTTPError) Unwrap() error { return e.cause }

// losesSession reports whether a refusal means that the server no longer has the session, so that
// the request has not run: status 404 (transports, "Session Management"), 410, or another status
// with text about the session.
func (e *HTTPError) losesSession() bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusGone:
		return true
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict,
		http.StatusPreconditionFailed, http.StatusUnprocessableEntity:
		return regexp.MustCompile(`(?i)\bsession.{0,40}(not found|not exist|unknown|invalid|expired|terminated|closed|ended|not initialized|no longer)|(no|not|unknown|invalid|missing|expired|bad)\b.{0,30}\bsession|server not initialized`).MatchString(e.body)
	case http.StatusUnauthorized, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return namesLostSession(e.body)
	}
	return false
}

// sessionHeader carries the id of a session.
const sessionHeader = "Mcp-Session-Id"

// namesLostSession reports whether a server's text says that it does not know the session. It is
// specific enough not to match servers that keep other things in sessions.
func namesLostSession(said string) bool {
	return regexp.MustCompile(`(?i)\b(no such|no valid|unknown|invalid|expired|unknown or expired|invalid or expired) (mcp )?session( id)?\b|\bsession( id)? (not found|(has )?expired|(is )?(unknown|invalid)|does not exist)`).MatchString(said)
}

// IsBusy reports whether the server refuses the request temporarily.
func (e *HTTPError) IsBusy() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// SessionLostError reports that an HTTP server has ended the session. The
// request may be repeated in a new session unless it may have run.
type SessionLostError struct {
	MayHaveRun bool
	Text       string // status line and first line of the body
}

func (e *SessionLostError) Error() string {
	if e.MayHaveRun {
		return "the server ended the session; the call may have run, so it was not repeated"
	}
	return e.Text
}

// LoginError reports that there is no token that the server accepts.
type LoginError struct{ Cause error }

func (e *LoginError) Error() string { return e.Cause.Error() }

func (e *LoginError) Unwrap() error { return e.Cause }

// httpError returns the error for a request that was not answered correctly. Errors of logins
// and contexts are returned unchanged.
func httpError(err error) error {
	err = webaddr.Cause(err)
	if login, ok := errors.AsType[*LoginError](err); ok {
		return login
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &HTTPError{Text: "it closed the connection in the middle of an exchange", cause: err}
	}
	return &HTTPError{Text: webaddr.Explain(err), cause: err}
}

// maxErrorBody limits how much is read of the body of a refusal, and of what follows an answer.
const maxErrorBody = 4 << 10

func refusal(resp *http.Response) *HTTPError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if jsonx.KindOf(body) == jsonx.Object {
		line = strings.Join(strings.Fields(string(body)), " ")
	}
	e := &HTTPError{Status: resp.StatusCode, Text: resp.Status, body: string(body),
		MayHaveRun: resp.StatusCode >= http.StatusInternalServerError,
		needsLogin: resp.StatusCode == http.StatusUnauthorized || // or more permissions are needed (RFC 6750, section 3.1)
			resp.StatusCode == http.StatusForbidden &&
				strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), " "), "insufficient_scope")}
	if line = text.Valid(text.Head(strings.TrimSpace(line), 300)); line != "" {
		e.Text += ": " + line
	}
	if e.IsBusy() {
		e.Again = retryAfter(resp.Header.Get("Retry-After"))
	}
	m, err := jsonrpc.DecodeMessage(body)
	if answer, ok := m.(*jsonrpc.Response); err == nil && ok && answer.Error != nil {
		e.cause = answer.Error
	}
	return e
}

// retryAfter reads a header Retry-After: seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(value string) time.Time {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil {
		return time.Now().Add(time.Duration(seconds) * time.Second)
	}
	at, _ := http.ParseTime(value)
	return at
}

// Limit is the maximum size of one message in bytes, and the setting that
// defines it.
type Limit struct {
	Bytes   int64
	Setting string
}

// Exceeded returns the error for a message or a body that is larger than the limit.
func (l Limit) Exceeded(what string) *AnswerError {
	return &AnswerError{fmt.Sprintf("a %s larger than the limit of %s (%s)", what, size(l.Bytes), l.Setting)}
}

// AnswerError reports that the server's answer cannot be used, for example because it is larger than
// its limit. The request may have had effects.
type AnswerError struct{ Reason string }

func (e *AnswerError) Error() string { return e.Reason }

// CurrentLimit is the limit in force: the answer to a call may be larger than
// messages during connecting and listing. Call Store before Load. It is safe
// for concurrent use.
type CurrentLimit struct{ now atomic.Pointer[Limit] }

// Load returns the limit.
func (c *CurrentLimit) Load() Limit { return *c.now.Load() }

// Store changes the limit.
func (c *CurrentLimit) Store(l Limit) { c.now.Store(&l) }

// size formats a number of bytes.
func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
