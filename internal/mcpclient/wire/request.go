package wire

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

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

	// Meta are further members of _meta. Relayed reports that they include those that the
	// revision of the protocol requires, because the request is that of another client.
	Meta    map[string]json.RawMessage
	Relayed bool

	Name    string      // over HTTP: of the tool, prompt or resource, for intermediaries
	Headers http.Header // over HTTP: further headers, see [ParamHeaders]

	revision *string           // of the handshake; nil means the negotiated one
	trace    map[string]string // what hands on the trace, see [tracing.Inject]

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
