package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// Exchange is one request whose raw answer is wanted: the SDK decodes schemas and
// structured content into maps, which loses key order and big numbers. The
// context carries it from the caller to the [Conn], which fills it before the SDK
// sees the answer.
type Exchange struct {
	request   *ask.Request            // nil: the server may not ask during it
	progress  func(registry.Progress) // nil: nobody listens
	cancelled signal                  // given when notifications/cancelled was written

	mu    sync.Mutex
	token string // progress token, "" = none
	raw   json.RawMessage
	input json.RawMessage // members to add to the params: what the server asked for
	early <-chan struct{} // see AwaitInitialized

	id      jsonrpc.ID // of the request, as last sent
	resumed string     // over HTTP: id of the event with which the stream of the answer ended last
	stalls  int        // over HTTP: how often it ended so

	refusal *Refusal // over HTTP, nil if there is none
	login   error    // over HTTP: see LoginFailure
	running bool     // over HTTP: the server may be working on it, or may have
}

// NewExchange returns an Exchange. request is the request during which the server
// may ask, nil if it must not; progress receives the progress of the request and
// may be nil.
func NewExchange(request *ask.Request, progress func(registry.Progress)) *Exchange {
	return &Exchange{request: request, progress: progress, cancelled: signal{c: make(chan struct{})}}
}

type exchangeKey struct{}

// Context returns a context for the SDK's request.
func (x *Exchange) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// Token returns the progress token: the one given in the first call.
func (x *Exchange) Token(given string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.token == "" {
		x.token = given
	}
	return x.token
}

// WaitCancelled waits up to limit until notifications/cancelled has been written.
func (x *Exchange) WaitCancelled(limit time.Duration) { waitFor(x.cancelled.c, limit) }

// Refusal returns why a server over HTTP, or the way to it, refused the request; nil if it
// did not.
func (x *Exchange) Refusal() *Refusal {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.refusal
}

// LoginFailure returns why there was no token that the server accepts for the request, nil
// if there was one or none is needed.
func (x *Exchange) LoginFailure() error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.login
}

func (x *Exchange) refuse(r *Refusal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refusal = r
}

// MayHaveRun reports whether a server over HTTP may have done what was requested: the
// request was sent and not refused.
func (x *Exchange) MayHaveRun() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.running
}

// mayRun records that, for the request itself and not for the stream of its answer.
func (x *Exchange) mayRun(itself, running bool) {
	if x == nil || !itself {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running = running
}

// begin forgets what happened when the request was sent before.
func (x *Exchange) begin(id jsonrpc.ID) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.id, x.refusal, x.login, x.running = id, nil, nil, false
	x.resumed, x.stalls = "", 0
}

// answeredBy reports whether an answer with that id is the answer to the request.
func (x *Exchange) answeredBy(id jsonrpc.ID) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.id.IsValid() && fmt.Sprint(id.Raw()) == fmt.Sprint(x.id.Raw())
}

// refused returns an answer to the request that says that it was refused; "" if there is
// no request.
func (x *Exchange) refused() string {
	if x == nil {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	id, err := json.Marshal(x.id.Raw())
	if err != nil || !x.id.IsValid() {
		return ""
	}
	return refusedAnswer(string(id))
}

// maxStalls is how often the stream of an answer may end without a new event.
const maxStalls = 2

// streamEnded notes that the stream of the answer ended; last is the id of the last event
// of this connection, "" if there was none. It returns the id of the last event of all,
// and whether the stream has ended there too often.
func (x *Exchange) streamEnded(last string) (resumeAfter string, stalled bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if last != "" && last != x.resumed {
		x.resumed, x.stalls = last, 0
		return last, false
	}
	x.stalls++
	return x.resumed, x.stalls >= maxStalls
}

func (x *Exchange) wasEarly(answered <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-answered:
	default:
		x.early = answered
	}
}

// AwaitInitialized reports whether the request was sent before the server had
// answered notifications/initialized, which a server may refuse, and waits for
// that answer.
func (x *Exchange) AwaitInitialized(ctx context.Context) bool {
	x.mu.Lock()
	early := x.early
	x.mu.Unlock()
	if early == nil {
		return false
	}
	select {
	case <-early:
	case <-ctx.Done():
	}
	return true
}

// Outcome returns the latest raw answer, nil if there is none, and the error of the
// SDK's request, unless that only says that the exchange has the answer.
func (x *Exchange) Outcome(err error) (json.RawMessage, error) {
	if errors.Is(err, errCaptured) {
		err = nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw, err
}

// errCaptured is what the SDK gets in place of a result: it spends more time on the
// preparations for decoding a result than on the rest of the request.
var errCaptured = errors.New("the exchange has the result")

// capture keeps the raw result and leaves the SDK what it needs to go on.
func (c *Conn) capture(x *Exchange, method string, r *jsonrpc.Response) {
	if r.Error != nil {
		return
	}
	x.mu.Lock()
	x.raw = r.Result
	x.mu.Unlock()
	switch method {
	case "tools/list":
		// The SDK knows from the listing which params to repeat in headers.
		if c.paramHeaders.Load() || NamesParamHeaders(r.Result) {
			c.paramHeaders.Store(true)
			r.Result = toolsWithHeaders(r.Result)
			return
		}
	case "tools/call", "prompts/list", "resources/list", "resources/templates/list", "prompts/get", "resources/read":
	default:
		return
	}
	r.Result, r.Error = nil, errCaptured
}

// AddInput adds members, the answers to what the server asked, to the params of
// the request before it is sent again.
func (x *Exchange) AddInput(members json.RawMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.input, x.raw = members, nil
}

// completed returns the request with the members of AddInput. In a request to a modern
// server it also replaces our capabilities by those of the client on whose behalf the
// request is made.
func (x *Exchange) completed(r *jsonrpc.Request) *jsonrpc.Request {
	if x == nil {
		return r
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	params := withCapabilities(bytes.TrimSpace(r.Params), x.request.Capabilities())
	if len(x.input) > 0 && jsonx.KindOf(params) == jsonx.Object && string(params) != "{}" {
		params = slices.Concat(params[:len(params)-1], []byte(","), x.input, []byte("}"))
	}
	out := *r
	out.Params = params
	return &out
}

// withCapabilities replaces the capabilities in the _meta of params, which the SDK
// has put there.
func withCapabilities(params, capabilities json.RawMessage) json.RawMessage {
	old := jsonx.Get(jsonx.Get(params, "_meta"), mcp.MetaKeyClientCapabilities)
	if capabilities == nil || old == nil {
		return params
	}
	v, err := jsonx.Parse(params, jsonx.Options{})
	if err != nil {
		return params
	}
	caps, err := jsonx.Parse(capabilities, jsonx.Options{})
	if err != nil {
		return params
	}
	v.Get("_meta").Set(mcp.MetaKeyClientCapabilities, caps)
	return v.AppendTo(nil)
}

// toolsWithHeaders returns a result of tools/list with only the tools from which the SDK
// learns which params to repeat in HTTP headers.
func toolsWithHeaders(raw json.RawMessage) json.RawMessage {
	tools, _ := jsonx.Elements(jsonx.Get(raw, "tools"))
	kept := []json.RawMessage{}
	for _, t := range tools {
		if HasParamHeaders(t) {
			kept = append(kept, t)
		}
	}
	out, err := json.Marshal(map[string]any{"tools": kept})
	if err != nil {
		return json.RawMessage(`{"tools":[]}`)
	}
	return out
}
