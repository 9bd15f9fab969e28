package mcpclient

import (
	"context"
	"encoding/json"
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

	once   sync.Once
	mu     sync.Mutex
	raw    json.RawMessage
	rounds int // how often the request was sent, see wire.again
}

func newExchange() *exchange { return &exchange{withdrew: make(chan struct{})} }

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

func (x *exchange) withdrawn() { x.once.Do(func() { close(x.withdrew) }) }

func (x *exchange) result() json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw
}

// capture keeps the raw result and leaves for the SDK what it needs to go on: a
// result that asks for input stays whole, since the SDK answers it.
func (x *exchange) capture(method string, r *jsonrpc.Response) {
	if r.Error != nil {
		return
	}
	if kind, ok := text(member(r.Result, "resultType")); ok && kind == "input_required" {
		return
	}
	x.mu.Lock()
	x.raw = r.Result
	x.mu.Unlock()
	r.Result = stand(method, r.Result)
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
