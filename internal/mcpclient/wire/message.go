//lint:file-ignore SA1019 servers still use logging and roots, which a later revision deprecates

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// message is one message on its way to the server.
type message struct {
	jsonrpc.Message
	request  *Request // the request sent, nil for notifications and answers
	method   string   // of a request or a notification
	revision string   // sent in a header, "" for none
}

// decodeAll decodes the messages in a valid JSON text: one message or, up to revision 2025-03-26, a
// list of messages. The error is about the last malformed one.
func decodeAll(data json.RawMessage) (messages []jsonrpc.Message, malformed error) {
	parts, isList := jsonx.Elements(data)
	if !isList {
		parts = []json.RawMessage{data}
	}
	for _, part := range parts {
		if m, err := decodeMessage(part); err != nil {
			malformed = err
		} else {
			messages = append(messages, m)
		}
	}
	return messages, malformed
}

// decodeMessage decodes a valid JSON object as a message. The result of an
// answer stays a slice of raw: it may be tens of megabytes.
func decodeMessage(raw json.RawMessage) (jsonrpc.Message, error) {
	var id, method, result, failure json.RawMessage
	var version string
	for k, v := range jsonx.Members(raw) {
		switch k {
		case "jsonrpc":
			version, _ = jsonx.Text(v)
		case "id":
			id = v
		case "method":
			method = v
		case "result":
			result = v
		case "error":
			failure = v
		}
	}
	rid := messageID(id)
	answer := jsonx.IsNull(method) // some servers write all members
	failed := !jsonx.IsNull(failure)
	// A result without an id, or an error about an unknown method or a notification, answers a notification.
	anonymous := answer && jsonx.IsNull(id) && failed &&
		string(jsonx.Get(failure, "code")) != strconv.Itoa(jsonrpc.CodeMethodNotFound) &&
		!strings.Contains(strings.ToLower(string(failure)), "notification")
	switch {
	case version != "2.0" && !answer: // ids of requests are a separate space
		return nil, &badMessageError{reason: `its "jsonrpc" is not "2.0"`}
	case version != "2.0":
		return nil, &badMessageError{answer: anonymous, id: rid, reason: `its "jsonrpc" is not "2.0"`}
	case answer && !rid.IsValid():
		bad := &badMessageError{answer: anonymous, reason: "neither a request nor an answer"}
		if refused := refusalOf(failure); refused != nil {
			bad.cause, bad.reason = refused, bad.reason+" ("+text.Head(refused.Message, 300)+")"
		}
		return nil, bad
	case answer && !failed:
		return &jsonrpc.Response{ID: rid, Result: result}, nil
	case answer:
		if refused := refusalOf(failure); refused != nil {
			return &jsonrpc.Response{ID: rid, Error: refused}, nil
		}
		return nil, &badMessageError{id: rid, reason: "its error has the wrong form: " + text.Head(string(failure), 300)}
	}
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, &badMessageError{reason: err.Error()}
	}
	return m, nil
}

// refusalOf decodes the error of an answer; nil if it is malformed.
func refusalOf(failure json.RawMessage) *jsonrpc.Error {
	refused := &jsonrpc.Error{}
	err := json.Unmarshal(failure, refused)
	if code, bad := strconv.ParseFloat(strings.Trim(string(jsonx.Get(failure, "code")), `"`), 64); bad == nil {
		refused.Code = int64(code) // some servers write -32603.0 or "-32603"
	}
	if err != nil && refused.Message == "" {
		return nil
	}
	return refused
}

// messageID decodes an id like the SDK: a string or an integer. Servers that use Gson return 1 as
// 1.0.
func messageID(raw json.RawMessage) jsonrpc.ID {
	if s, ok := jsonx.Text(raw); ok {
		id, _ := jsonrpc.MakeID(s)
		return id
	}
	raw = bytes.TrimSuffix(raw, []byte(".0"))
	var n float64
	if len(raw) == 0 || strings.ContainsAny(string(raw), ".eE{[ntf") || json.Unmarshal(raw, &n) != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.MakeID(n)
	return id
}

// badMessageError reports JSON that is not a JSON-RPC message; the connection
// stays usable.
type badMessageError struct {
	id     jsonrpc.ID // of the request it may answer; invalid if unknown
	answer bool       // it looks like an answer to one of our requests
	reason string
	cause  error // the error of the request; nil means an AnswerError with the reason
	long   bool  // it was skipped because it is too long
}

func (e *badMessageError) Error() string { return fmt.Sprintf("malformed message: %s", e.reason) }

// maxID is how close to the beginning or end of a message idOfLong looks for the id, in bytes.
const maxID = 100

// idOfLong returns the id of an answer whose middle is unknown, if the id is the first or last
// member apart from "jsonrpc"; otherwise an invalid id.
func idOfLong(head, tail []byte) jsonrpc.ID {
	const version, id = `"jsonrpc"\s*:\s*"2.0"\s*`, `"id"\s*:\s*(\d+(?:\.0)?|"[^"\\]*")\s*`
	found := regexp.MustCompile(`^\s*\{\s*(?:` + version + `,\s*)?` + id + `,`).
		FindSubmatch(head[:min(len(head), maxID)])
	if found == nil {
		found = regexp.MustCompile(`,\s*` + id + `(?:,\s*` + version + `)?\}\s*$`).
			FindSubmatch(tail[max(0, len(tail)-maxID):])
	}
	if found == nil {
		return jsonrpc.ID{}
	}
	return messageID(found[1])
}

// invalidMessage returns the error for data that was meant as a message but is not valid JSON.
func invalidMessage(data []byte) *badMessageError {
	bad := &badMessageError{answer: !bytes.Contains(data, []byte(`"method"`)), reason: "invalid JSON"}
	if bad.answer {
		bad.id = idOfLong(data, data)
	}
	return bad
}

// The first modern and the last legacy revision of the protocol.
const (
	FirstModern = "2026-07-28"
	LastLegacy  = "2025-11-25"
)

// Revisions returns the revisions of the protocol that sessions can speak, newest first.
func Revisions() []string { return mcp.SupportedProtocolVersions() }

// noMessage returns the error for data from the server that is not a message.
func noMessage(data []byte) error {
	return errors.New("its answer is not a JSON-RPC message: " + text.Valid(text.Head(bytes.TrimSpace(data), 100)))
}

// Methods of requests that need special treatment.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodListen     = "subscriptions/listen" // is answered at its end
)

// Request is one request to a server: its method and params, and its state until it is
// answered. [Session.Do] may send it several times, one after the other.
type Request struct {
	Method string
	Params json.RawMessage // a JSON object without _meta, or nil

	// Asked is the request during which the server may ask questions; if nil, it must
	// not. If it is set, the server may also send log messages, and learns the
	// capabilities of the client that made the request.
	Asked    *ask.Request
	Progress func(registry.Progress) // receives the progress before the result; may be nil

	// Meta are additional members of _meta. Relayed says that they include the members that the
	// revision of the protocol requires, because another client's request is passed on.
	Meta    map[string]json.RawMessage
	Relayed bool

	Name    string      // over HTTP: of the tool, prompt or resource, for intermediaries
	Headers http.Header // over HTTP: further headers, see [ParamHeaders]

	revision *string           // of the handshake; nil means the negotiated one
	trace    map[string]string // propagates the trace; see [tracing.Inject]

	id       int64
	cancel   context.CancelCauseFunc // fails the request
	answered chan struct{}           // closed when result or err is set
	result   json.RawMessage
	err      error
}

// token is the progress token of the request, unique within the session.
func (r *Request) token() string { return "toolreg-" + strconv.FormatInt(r.id, 10) }

func (r *Request) isAnswered() bool { return isClosed(r.answered) }

// answer ends a request that is not answered yet. The lock of the table is
// held.
func (r *Request) answer(result json.RawMessage, err error) {
	r.result, r.err = result, err
	close(r.answered)
}

// params returns the params of a request as sent: the given ones, and the _meta members that a
// revision of the protocol requires.
func (o *Options) params(r *Request, revision string) json.RawMessage {
	meta := map[string]any{}
	for name, value := range r.Meta {
		meta[name] = value
	}
	for name, value := range r.trace {
		meta[name] = value
	}
	if r.Progress != nil {
		meta["progressToken"] = r.token()
	}
	if revision >= FirstModern && !r.Relayed {
		meta[mcp.MetaKeyProtocolVersion] = revision
		meta[mcp.MetaKeyClientInfo] = &o.Client
		meta[mcp.MetaKeyClientCapabilities] = o.capabilities(revision)
		if caps := r.Asked.Peer().Capabilities(); caps != nil {
			meta[mcp.MetaKeyClientCapabilities] = caps
		}
		if r.Asked != nil && o.LogLevel != "" {
			meta[mcp.MetaKeyLogLevel] = o.LogLevel
		}
	}
	params := bytes.TrimSpace(r.Params)
	if len(meta) == 0 {
		return params
	}
	head := slices.Concat([]byte(`{"_meta":`), marshal(meta))
	if jsonx.KindOf(params) != jsonx.Object || len(bytes.TrimSpace(params[1:len(params)-1])) == 0 {
		return append(head, '}')
	}
	return slices.Concat(head, []byte(","), params[1:])
}

// TasksExtension is the extension with which a server may continue a call as a task.
const TasksExtension = "io.modelcontextprotocol/tasks"

// AppsExtension is the extension for tools with pages that clients show (MCP Apps).
const AppsExtension = "io.modelcontextprotocol/ui"

// Apps is what a client that shows such pages declares.
func Apps() any { return map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}} }

// Extensions returns the extensions of revision 2026-07-28 that toolreg supports.
func Extensions() map[string]any { return map[string]any{TasksExtension: struct{}{}} }

// capabilities returns the client capabilities. Without a workspace they do not include
// roots, which the SDK's type cannot express.
func (o *Options) capabilities(revision string) any {
	caps := struct {
		*mcp.ClientCapabilities
		Roots       *mcp.RootCapabilities        `json:"roots,omitempty"`
		Elicitation *mcp.ElicitationCapabilities `json:"elicitation,omitempty"`
		Extensions  map[string]any               `json:"extensions,omitempty"`
	}{o.Capabilities, o.Capabilities.RootsV2, o.Capabilities.Elicitation, maps.Clone(o.Capabilities.Extensions)}
	switch {
	case revision < "2025-06-18":
		caps.Elicitation = nil
	case revision < LastLegacy && caps.Elicitation != nil:
		caps.Elicitation = &mcp.ElicitationCapabilities{}
	case revision >= FirstModern:
		if caps.Extensions == nil {
			caps.Extensions = map[string]any{}
		}
		maps.Copy(caps.Extensions, Extensions())
	}
	return caps
}

// marshal encodes plain structs and maps, which cannot fail.
func marshal(v any) json.RawMessage {
	data, err := jsonx.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}

// Link carries messages to a server and back. It is created by [NewStdio], [NewHTTP] or
// [NewSSE], and serves one session.
type Link interface {
	// run passes on what the server sends to the session, until the connection ends or ctx
	// is done. It returns the reason.
	run(ctx context.Context, s *Session) error
	// send sends a message, and over streamable HTTP also receives the response. A nil
	// error means that the request in m, if there is one, has its answer or will get it
	// through run.
	send(ctx context.Context, s *Session, m message) error
}

// signal is a channel that is closed once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (s *signal) close() { s.once.Do(func() { close(s.c) }) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waitFor waits up to d for c to be closed.
func waitFor(c <-chan struct{}, d time.Duration) {
	select {
	case <-c:
	case <-time.After(d):
	}
}
