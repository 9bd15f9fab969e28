package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/registry"
)

// exchange is one request whose raw answer we want: the SDK decodes schemas and
// structured content into maps, which loses key order and big numbers. It
// travels in the context from the caller to the [wire], which fills it before
// the SDK sees the answer.
type exchange struct {
	token    string                  // progress token, "" = none
	progress func(registry.Progress) // nil = nobody listens
	withdrew chan struct{}           // closed when notifications/cancelled was written

	what string // the request in words, "" where the server may not ask during it

	once      sync.Once
	mu        sync.Mutex
	raw       json.RawMessage
	input     json.RawMessage // members to add to the params: what the server asked for
	questions int             // that the server put during it
	samples   int             // of them, those for a model
}

func newExchange() *exchange { return &exchange{withdrew: make(chan struct{})} }

// newConversation returns an exchange during which the server may ask. what
// names it for the person, such as "tool echo".
func newConversation(what string) *exchange {
	x := newExchange()
	x.what = what
	return x
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// setToken gives the exchange a progress token of its session, once.
func (x *exchange) setToken(sess *session) {
	token := sess.token()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.token == "" {
		x.token = token
	}
}

func (x *exchange) withdrawn() { x.once.Do(func() { close(x.withdrew) }) }

// result returns the raw answer that came last.
func (x *exchange) result() json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw
}

// capture keeps the raw result and leaves for the SDK what it needs to go on.
func (x *exchange) capture(method string, r *jsonrpc.Response) {
	if r.Error != nil {
		return
	}
	x.mu.Lock()
	x.raw = r.Result
	x.mu.Unlock()
	r.Result = stand(method, r.Result)
}

// resume has the request sent with the answers to what the server asked.
func (x *exchange) resume(input json.RawMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.input, x.raw = input, nil
}

// resumed returns the request as it goes on the wire.
func (x *exchange) resumed(r *jsonrpc.Request) *jsonrpc.Request {
	if x == nil {
		return r
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	params := bytes.TrimSpace(r.Params)
	if len(x.input) == 0 || !isObject(params) || string(params) == "{}" {
		return r
	}
	again := *r
	again.Params = slices.Concat(params[:len(params)-1], []byte(","), x.input, []byte("}"))
	return &again
}

// mayAsk counts a question in and reports whether the server may put it.
func (x *exchange) mayAsk(sample bool, limit int) bool {
	if x == nil || x.what == "" {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.questions++
	if sample {
		x.samples++
	}
	return x.questions <= maxQuestions && (!sample || x.samples <= limit)
}

// asked reports whether the server put a question during it.
func (x *exchange) asked() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.questions > 0
}

// stand returns the small result that the SDK gets in place of raw.
func stand(method string, raw json.RawMessage) json.RawMessage {
	switch method {
	case "tools/call":
		return json.RawMessage(`{"content":[]}`)
	case "tools/list":
		return standList(raw)
	case "prompts/list":
		return json.RawMessage(`{"prompts":[]}`)
	case "resources/list":
		return json.RawMessage(`{"resources":[]}`)
	case "resources/templates/list":
		return json.RawMessage(`{"resourceTemplates":[]}`)
	case "prompts/get":
		return json.RawMessage(`{"messages":[]}`)
	case "resources/read":
		return json.RawMessage(`{"contents":[]}`)
	}
	return raw
}

// standList keeps the tools that tell the SDK to mirror params in HTTP headers
// (x-mcp-header, revision 2026-07-28), as far as they cannot break it.
func standList(raw json.RawMessage) json.RawMessage {
	tools, _ := elements(member(raw, "tools"))
	kept := []json.RawMessage{}
	for _, t := range tools {
		if mirrorsParams(t) {
			kept = append(kept, t)
		}
	}
	out, err := json.Marshal(map[string]any{"tools": kept})
	if err != nil {
		return json.RawMessage(`{"tools":[]}`)
	}
	return out
}
