package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/tracing"
)

// startSpan begins the span of a request, over HTTP if h is not nil. A request that listens has
// none, because it does not end.
func startSpan(ctx context.Context, r *Request, revision string, h *HTTP) (context.Context, *tracing.Span) {
	if r.Method == methodListen {
		return ctx, nil
	}
	ctx, span := tracing.Start(ctx, tracing.Client, r.Method)
	if span == nil {
		return ctx, nil
	}
	if attribute := map[string]string{"tools/call": "gen_ai.tool.name",
		"prompts/get": "gen_ai.prompt.name"}[r.Method]; attribute != "" {
		if name, _ := jsonx.Text(jsonx.Get(r.Params, "name")); name != "" {
			span.Target(attribute, name)
		}
	}
	span.Label("mcp.method.name", r.Method)
	if r.Method == "tools/call" {
		span.Label("gen_ai.operation.name", "execute_tool")
	}
	span.Label("mcp.protocol.version", revision)
	span.Label("network.transport", "pipe")
	if h != nil {
		span.Label("network.transport", "tcp")
		span.Label("network.protocol.name", "http")
		if u, err := url.Parse(h.origin); err == nil {
			port, _ := strconv.Atoi(u.Port())
			span.Label("server.address", u.Hostname())
			span.Label("server.port", port)
		}
	}
	return ctx, span
}

// describe gives a span the outcome of its request, without the server's words.
func describe(ctx context.Context, span *tracing.Span, result json.RawMessage, err error) {
	switch refused := (*jsonrpc.Error)(nil); {
	case span == nil:
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // a time limit is another error
	case errors.As(err, &refused):
		code := strconv.FormatInt(refused.Code, 10)
		span.Label("rpc.response.status_code", code)
		span.Fail(code)
	case err != nil:
		span.Fail("_OTHER")
	case jsonx.KindOf(jsonx.Get(result, "isError")) == jsonx.True:
		span.Fail("tool_error")
	}
}
