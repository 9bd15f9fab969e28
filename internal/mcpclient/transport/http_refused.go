package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// The SDK gives up a session, and all requests in it, when the server refuses one
// message or answers one request with something else than a message. But several
// clients may have calls running there, and the others must neither fail nor learn
// why. So the SDK gets an error for that request alone, whose exchange has the
// reason. Only a server that has ended the session (status 404) ends it for all.

// CodeRejected is the SDK's code for a request that the HTTP server refused
// without a JSON-RPC answer.
const CodeRejected = -32005

type onewayKey struct{}

// oneway marks a notification or an answer of ours, which is no exchange even if it
// is about one.
func oneway(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, exchangeKey{}, (*Exchange)(nil)), onewayKey{}, true)
}

// apart returns what the SDK gets for a response.
func (h *HTTP) apart(r *http.Request, resp *http.Response) *http.Response {
	x := exchangeOf(r.Context())
	switch {
	case isListening(r.Context()):
		return resp
	case resp.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "":
		return resp
	case r.Method == http.MethodGet && x != nil && h.streamable && (resp.StatusCode >= 400 || contentType(resp) != eventStreamType):
		return h.notResumed(r, resp)
	case r.Method != http.MethodPost:
		return resp
	case resp.StatusCode >= 400 && r.Context().Value(onewayKey{}) != nil:
		return inPlaceOf(resp, http.StatusAccepted, "") // nobody waits for an answer
	case x == nil: // of the handshake
		return resp
	case resp.StatusCode >= 400:
		return refused(resp)
	case h.streamable && resp.StatusCode < 300 && contentType(resp) != eventStreamType:
		return h.whole(r, resp)
	}
	return resp
}

// refused returns what the SDK gets for a request that was refused. It passes on errors of
// the protocol.
func refused(resp *http.Response) *http.Response {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	m, err := decodeMessage(head)
	if answer, ok := m.(*jsonrpc.Response); err == nil && ok && answer.Error != nil {
		return withHead(resp, head)
	}
	return onlyThisRequest(resp)
}

// whole returns what the SDK gets for an answer that is no stream.
func (h *HTTP) whole(r *http.Request, resp *http.Response) *http.Response {
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
	case len(body) == 0:
		err = fmt.Errorf("its answer (%s) is empty", resp.Status)
	case contentType(resp) != "application/json":
		err = fmt.Errorf("its answer (%s) has the content type %q instead of application/json", resp.Status, contentType(resp))
	case jsonx.KindOf(body) == jsonx.Array && jsonx.Valid(body):
		return h.asEvents(r, resp, body)
	default:
		if err = exchangeOf(r.Context()).checkAnswer(body); err == nil {
			return withHead(resp, body)
		}
	}
	_ = h.refuse(r, err)
	return onlyThisRequest(resp)
}

// withHead returns a response whose body begins with what was read of it.
func withHead(resp *http.Response, head []byte) *http.Response {
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return resp
}

// checkAnswer returns why a body is not the answer to the request.
func (x *Exchange) checkAnswer(body []byte) error {
	if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.Object {
		return noMessage(body)
	}
	m, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return noMessage(body)
	}
	if answer, ok := m.(*jsonrpc.Response); !ok || !x.answeredBy(answer.ID) {
		return errors.New("its answer is not for this request: " + text.Valid(text.Head(body, 100)))
	}
	return nil
}

// onlyThisRequest returns a response that makes one request fail and no other.
func onlyThisRequest(resp *http.Response) *http.Response {
	return inPlaceOf(resp, http.StatusBadRequest, refusedAnswer("0"))
}

// refusedAnswer is the answer to a request that was refused; id is JSON.
func refusedAnswer(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"refused"}}`, id, CodeRejected)
}

func inPlaceOf(resp *http.Response, status int, body string) *http.Response {
	_ = resp.Body.Close()
	out := *resp
	out.StatusCode, out.Status = status, fmt.Sprintf("%d %s", status, http.StatusText(status))
	out.Body, out.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return &out
}

// errRejected matches the SDK's error for a message that was not sent.
var errRejected = &jsonrpc.Error{Code: CodeRejected, Message: "refused"}

// rejectedError tells the SDK that a message was not sent, and that others can be.
type rejectedError struct{ cause error }

func (e *rejectedError) Error() string { return e.cause.Error() }

// Unwrap returns the error that the SDK looks for, and the cause.
func (e *rejectedError) Unwrap() []error {
	return []error{e.cause, errRejected}
}
