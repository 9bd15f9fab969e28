// Package transport carries messages between clients and the SDK's server, as lines on stdin or
// over HTTP. It limits the size of messages and how many each client may send, refuses ambiguous
// messages, and tracks the sessions of clients. [InboundOf] and [ParamsOf] return the request that
// a message came in. The package knows who sends a request (package auth), but not what a client is
// offered.
package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/text"
)

// Inbound is an HTTP request to the MCP endpoint, from its check until its response has ended.
type Inbound struct {
	W       http.ResponseWriter
	R       *http.Request
	From    auth.Identity
	Modern  bool            // it is of a revision without sessions
	Session string          // Mcp-Session-Id; empty if the request names no session
	Body    json.RawMessage // a message or a batch of messages, of a POST whose body was read

	answer *Response // of [Open.Serve]
}

// NewInbound returns a request whose sender is known.
func NewInbound(w http.ResponseWriter, r *http.Request, from auth.Identity) *Inbound {
	in := &Inbound{W: w, R: r, From: from, Modern: r.Header.Get("Mcp-Protocol-Version") >= wire.FirstModern}
	if !in.Modern {
		in.Session = r.Header.Get("Mcp-Session-Id")
	}
	return in
}

// Member returns a text member of the message; "" if there is none.
func (in *Inbound) Member(name string) string {
	value, _ := jsonx.Text(jsonx.Get(in.Body, name))
	return value
}

// Begin is called when the SDK has set the headers of the response, whose first event may take a
// while.
func (in *Inbound) Begin() { in.answer.Begin() }

// underway points to a request until its response has ended, and is nil from then on. The SDK keeps
// the pointer as long as the session that began with the request, and would otherwise keep the
// request.
type underway = atomic.Pointer[Inbound]

// originKey is the member of TokenInfo.Extra that says where a message came from: an *underway or,
// on stdin, the *[jsonrpc.Request] itself. The SDK passes TokenInfo on with each message.
const originKey = "toolreg"

func withOrigin(origin any) *sdkauth.TokenInfo {
	return &sdkauth.TokenInfo{Extra: map[string]any{originKey: origin}}
}

func originOf(req mcp.Request) any {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.Extra[originKey]
	}
	return nil
}

type infoKey struct{}

// Handler makes a handler of the SDK pass on the requests of [Open.Serve], in the information about
// a token.
func Handler(of http.Handler) http.Handler {
	known := func(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		info, ok := ctx.Value(infoKey{}).(*sdkauth.TokenInfo)
		if !ok {
			info = &sdkauth.TokenInfo{}
		}
		return info, nil
	}
	of = sdkauth.RequireBearerToken(known, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(of)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer checked") // the SDK requires one
		of.ServeHTTP(w, r)
	})
}

// Open tracks requests of sessions that the SDK is answering. The zero value is ready to use. It is
// safe for concurrent use.
type Open struct {
	byName sync.Map // *Inbound by [requestName]
}

// Serve answers a request with one of [Handler]. A stream gets a comment after each keepAlive
// without an event. A request that its client cancels is not answered.
func (o *Open) Serve(in *Inbound, by http.Handler, keepAlive time.Duration) {
	in.answer = NewResponse(in.W, keepAlive)
	defer in.answer.End()
	method := in.Member("method")
	switch name := requestName(in.Session, jsonx.Get(in.Body, "id")); {
	case in.Session == "" || method == "":
	case name != "":
		o.byName.Store(name, in)
		defer o.byName.CompareAndDelete(name, in)
	case method == "notifications/cancelled":
		name = requestName(in.Session, jsonx.Get(jsonx.Get(in.Body, "params"), "requestId"))
		if unwanted, ok := o.byName.Load(name); ok {
			unwanted.(*Inbound).answer.drop()
		}
	}
	under := &underway{}
	under.Store(in)
	defer under.Store(nil)
	r := in.R.WithContext(context.WithValue(in.R.Context(), infoKey{}, withOrigin(under)))
	if name := NameOf(r.Header); name != "" { // the SDK does not decode it
		r.Header.Set("Mcp-Name", name)
	}
	if in.Body != nil {
		r.Body = io.NopCloser(bytes.NewReader(in.Body))
	}
	if method != "" {
		by.ServeHTTP(&refusals{Response: in.answer, method: method, id: jsonx.Get(in.Body, "id")}, r)
	} else {
		by.ServeHTTP(in.answer, r)
	}
}

// refusals is the response to a message. Where the SDK refuses a message with a status and a text,
// which clients take for a failed connection, it does what the SDK does on stdin: a request gets a
// JSON-RPC error, and an unknown notification is dropped.
type refusals struct {
	*Response
	method string
	id     json.RawMessage // of the request; nil for a notification
	text   bool            // the refusal is written next
}

func (w *refusals) WriteHeader(status int) {
	w.text = status == http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain")
	if !w.text {
		w.Response.WriteHeader(status)
	}
}

func (w *refusals) Write(p []byte) (int, error) {
	if !w.text {
		return w.Response.Write(p)
	}
	reason := strings.TrimSpace(string(p))
	no := &Refusal{Status: http.StatusBadRequest, Reason: reason, ID: w.id}
	switch unknown := strings.HasPrefix(reason, "JSON RPC not handled"); {
	case unknown && w.id == nil:
		w.Header().Del("Content-Type")
		w.Response.WriteHeader(http.StatusAccepted)
		return len(p), nil
	case unknown:
		no.Status, no.Code = http.StatusOK, jsonrpc.CodeMethodNotFound
		no.Reason = "method not found: " + text.Quote(text.Head(w.method, 100))
	case w.id != nil && strings.HasPrefix(reason, "invalid request"):
		no.Status, no.Code = http.StatusOK, jsonrpc.CodeInvalidRequest
	}
	Refuse(w.Response, no)
	return len(p), nil
}

// requestName identifies a request among those of all sessions; "" if the id is not valid.
func requestName(session string, id json.RawMessage) string {
	if kind := jsonx.KindOf(id); kind != jsonx.String && kind != jsonx.Number {
		return ""
	}
	return session + " " + jsonx.Canonical(id)
}

// InboundOf returns the HTTP request of a message; nil if there is none, or it has been answered.
func InboundOf(req mcp.Request) *Inbound {
	if under, ok := originOf(req).(*underway); ok {
		return under.Load()
	}
	return nil
}

// ParamsOf returns the params of a request as received, with what the SDK does not read; nil if
// they are unknown, as for batches over HTTP.
func ParamsOf(req mcp.Request) json.RawMessage {
	if in := InboundOf(req); in != nil {
		return jsonx.Get(in.Body, "params")
	}
	if r, ok := originOf(req).(*jsonrpc.Request); ok {
		return r.Params
	}
	return nil
}

// RequestID returns the id of a request; "" if it is unknown, see [ParamsOf].
func RequestID(req mcp.Request) string {
	if in := InboundOf(req); in != nil {
		id := jsonx.Get(in.Body, "id")
		if text, ok := jsonx.Text(id); ok {
			return text
		}
		return string(id)
	}
	if r, ok := originOf(req).(*jsonrpc.Request); ok && r.IsCall() {
		return fmt.Sprint(r.ID.Raw())
	}
	return ""
}

// SameRevision reports whether each message and the header of its request agree on whether the
// revision has sessions.
func (in *Inbound) SameRevision() bool {
	return !slices.ContainsFunc(Messages(in.Body), func(message json.RawMessage) bool {
		inBody, ok := jsonx.Text(jsonx.Get(jsonx.Get(jsonx.Get(message, "params"), "_meta"),
			mcp.MetaKeyProtocolVersion))
		return ok && inBody >= wire.FirstModern != in.Modern
	})
}

// Refusal refuses the message with a JSON-RPC error, for example because it contradicts the headers
// of its request.
func (in *Inbound) Refusal(code int64, reason string) error {
	return &Refusal{Status: http.StatusBadRequest, Reason: reason, Code: code, ID: jsonx.Get(in.Body, "id")}
}

// MetaOf returns metadata as received, because a number may not fit into a float. It returns nil
// unless raw is an object with members.
func MetaOf(raw json.RawMessage) mcp.Meta {
	var meta mcp.Meta
	for key, value := range jsonx.Members(raw) {
		if meta == nil {
			meta = mcp.Meta{}
		}
		meta[key] = value
	}
	return meta
}
