//lint:file-ignore SA1019 servers still use logging and roots, which a later revision deprecates

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
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

	// Meta are further members of _meta. Relayed reports that they include those that the
	// revision of the protocol requires, because the request is that of another client.
	Meta    map[string]json.RawMessage
	Relayed bool

	Name    string      // over HTTP: of the tool, prompt or resource, for intermediaries
	Headers http.Header // over HTTP: further headers, see [ParamHeaders]

	revision *string // of the handshake; nil: the negotiated one

	id       int64
	cancel   context.CancelCauseFunc // fails the request
	answered chan struct{}           // closed when result or err is set
	result   json.RawMessage
	err      error
}

// token is the progress token of the request, unique within the session.
func (r *Request) token() string { return "toolreg-" + strconv.FormatInt(r.id, 10) }

func (r *Request) isAnswered() bool {
	select {
	case <-r.answered:
		return true
	default:
		return false
	}
}

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
	if r.Progress != nil {
		meta["progressToken"] = r.token()
	}
	if revision >= FirstModern && !r.Relayed {
		meta[mcp.MetaKeyProtocolVersion] = revision
		meta[mcp.MetaKeyClientInfo] = &o.Client
		meta[mcp.MetaKeyClientCapabilities] = o.capabilities()
		if caps := r.Asked.Capabilities(); caps != nil {
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

// capabilities returns the client capabilities. Without a workspace they do not include
// roots, which the SDK's type cannot express.
func (o *Options) capabilities() any {
	return struct {
		*mcp.ClientCapabilities
		Roots *mcp.RootCapabilities `json:"roots,omitempty"`
	}{o.Capabilities, o.Capabilities.RootsV2}
}

// marshal encodes plain structs and maps, which cannot fail.
func marshal(v any) json.RawMessage {
	data, err := jsonx.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}
