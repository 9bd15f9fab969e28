package serve

import (
	"context"
	"errors"
	"reflect"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
)

// resourceNotFound is the code of older revisions for a resource that is not there.
const resourceNotFound = -32002

// spans is the middleware that makes a span of each request, within that of the client. The
// request that listens to changes has none, since it does not end.
func spans(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx = traced(ctx, req)
		if method == listenMethod {
			return next(ctx, method, req)
		}
		ctx, span := tracing.Start(ctx, tracing.Server, method)
		if span == nil {
			return next(ctx, method, req)
		}
		defer span.End()
		span.Label("mcp.method.name", method)
		if method == "tools/call" {
			span.Label("gen_ai.operation.name", "execute_tool")
		}
		span.Label("network.transport", "pipe")
		if extra := req.GetExtra(); extra != nil && extra.Header != nil {
			span.Label("network.transport", "tcp")
			span.Label("network.protocol.name", "http")
		}
		if from, ok := req.(question.Sender); ok {
			span.Label("mcp.protocol.version", from.ProtocolVersion())
		}
		span.Set("jsonrpc.request.id", text.Head(transport.RequestID(req), maxRequestID))
		result, err := next(ctx, method, req)
		var refused *jsonrpc.Error
		switch {
		case canceled(ctx, err):
		case errors.As(err, &refused):
			code := strconv.FormatInt(refused.Code, 10)
			span.Label("rpc.response.status_code", code)
			switch refused.Code {
			// the client's mistake
			case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest,
				jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, resourceNotFound:
			default:
				span.Fail(code)
			}
		case err != nil:
			span.Fail("_OTHER")
		}
		if r, ok := result.(*callResult); ok && r.IsError {
			span.Fail("tool_error")
		}
		return result, err
	}
}

// maxRequestID is how much of the id of a request is exported, in bytes.
const maxRequestID = 64

// traced returns a context with the trace of a client's request: that of its _meta, or else
// that of the HTTP headers.
func traced(ctx context.Context, req mcp.Request) context.Context {
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		ctx = tracing.Extract(ctx, extra.Header.Get)
	}
	if params := req.GetParams(); params != nil && !reflect.ValueOf(params).IsNil() {
		meta := params.GetMeta()
		ctx = tracing.Extract(ctx, func(name string) string { s, _ := meta[name].(string); return s })
	}
	return ctx
}
