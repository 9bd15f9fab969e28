package serve

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
)

// requests handles the requests of clients. A request passes these middlewares and methods:
//
//  1. guard, so that a panic ends no other request, and spans;
//  2. [replica.Replica.Remember], which records how the request changes its session;
//  3. handle, which makes the sender the caller of the context; see [requests.from];
//  4. begun, if it begins a session, or offered, which determines what the sender is offered;
//  5. answer, which answers it or passes it to the SDK.
type requests struct {
	profile  string // of the client on stdin
	offers   *current.Offers
	retries  *current.Retries
	sessions *transport.Sessions
	clients  *question.Clients
	lists    *lists
	calls    *calls
	reads    *reads
	log      *slog.Logger
	stopping <-chan struct{} // closed when streams are to end
}

// guard is the outermost middleware. It recovers panics, so that a request that panics ends no
// other. The SDK leaves missing params nil, and some of its methods panic then.
func (r *requests) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				r.log.Error("a request failed by a mistake in toolreg",
					"method", method, "panic", p, "stack", string(debug.Stack()))
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		if about, ok := req.(*mcp.ServerRequest[*task.Params]); ok && about.Params == nil {
			about.Params = &task.Params{}
		}
		return next(ctx, method, req)
	}
}

// handle is the innermost middleware. Requests that do not depend on the sender are passed to the
// SDK.
func (r *requests) handle(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		in := transport.InboundOf(req)
		if in != nil {
			in.Begin()
		}
		kind, _, _ := strings.Cut(method, "/")
		switch kind {
		case "initialize", "server":
			settleRevision(req)
			result, err := next(ctx, method, req) // from here on the session knows the client's capabilities
			if err != nil {
				return nil, err
			}
			return r.begun(r.from(ctx, req), req, result), nil
		case "subscriptions":
			return r.lists.listen(r.from(ctx, req), next, req, r.stopping)
		case "tools", "prompts", "resources", "completion", "tasks":
			ctx, done := r.sessions.Call(ctx, req.GetSession().ID(), in, r.stopping)
			defer done()
			if ctx = r.from(ctx, req); kind == "tasks" {
				return next(ctx, method, req)
			}
			result, err := r.offered(ctx, next, method, req)
			if own, ok := result.(interface{ complete() }); ok && question.From(ctx).Modern {
				own.complete()
			}
			return result, err
		}
		return next(ctx, method, req)
	}
}

// from returns the context of a request with its sender as the caller.
func (r *requests) from(ctx context.Context, req mcp.Request) context.Context {
	sender, _ := req.(question.Sender) // all requests are
	return r.clients.With(ctx, r.identify(ctx, req), sender)
}

// identify returns who sends a message: the sender of its HTTP request or, if that has been
// answered, of the request that began the session, or the client on stdin.
func (r *requests) identify(ctx context.Context, req mcp.Request) auth.Identity {
	if in := transport.InboundOf(req); in != nil {
		return in.From
	}
	if from, ok := auth.From(ctx); ok {
		return from
	}
	return auth.Identity{Name: caller.Stdio, Profile: r.profile}
}

// settleRevision replaces the revision that a client proposes for a session by the one that the SDK
// agrees to, because the SDK reports the proposed one with each later request.
func settleRevision(req mcp.Request) {
	if p, ok := req.GetParams().(*mcp.InitializeParams); ok && p != nil {
		switch p.ProtocolVersion {
		case "2024-11-05", "2025-03-26", "2025-06-18":
		default:
			p.ProtocolVersion = wire.LastLegacy
		}
	}
}

// begun completes the SDK's result of initialize or server/discover.
func (r *requests) begun(ctx context.Context, req mcp.Request, result mcp.Result) mcp.Result {
	c := question.From(ctx)
	switch result := result.(type) {
	case *mcp.DiscoverResult:
		result.Instructions += r.instructions(ctx)
	case *mcp.InitializeResult:
		if c.Session.ID() != "" {
			r.sessions.Add(c.From, c.Session)
		}
		result.Instructions += r.instructions(ctx)
		if isLasting(c.Session, req) {
			r.lists.follow(ctx, c.Session, r.offers.For(caller.Token(ctx)))
		}
		return task.Declare(result, c.From)
	}
	return result
}

const (
	// instructions tell a client's model what this server is. Those of the servers follow them.
	instructions = "Tools from several sources under one policy. Some calls ask the user first; " +
		"the error of a refused call names the rule that refused it."
	// instructionsTime is how long the answer to a client's first request waits for the servers.
	instructionsTime = 5 * time.Second
)

// instructions returns the instructions of the servers that the caller of ctx is offered.
func (r *requests) instructions(ctx context.Context) string {
	waiting, cancel := context.WithTimeout(ctx, instructionsTime)
	defer cancel()
	v, err := r.offers.Offered(waiting)
	if err != nil { // a later request will return it
		return ""
	}
	return v.Instructions(ctx)
}

// isLasting reports whether a session outlasts one request: the one on stdio, and sessions over
// HTTP that have an id. Modern clients over HTTP listen with a separate request.
func isLasting(session *mcp.ServerSession, req mcp.Request) bool {
	return session.ID() != "" || transport.InboundOf(req) == nil
}

// offered answers a request that depends on the offer. It waits for the first offer.
func (r *requests) offered(ctx context.Context, next mcp.MethodHandler, method string,
	req mcp.Request) (mcp.Result, error) {
	c := question.From(ctx)
	defer c.Flush()
	v, err := r.retries.Offered(ctx)
	if err != nil {
		return nil, err
	}
	if call, ok := req.(*mcp.CallToolRequest); ok {
		if v, err = r.retries.Resolve(ctx, v, call.Params); err != nil {
			return r.calls.unresolved(ctx, call.Params.Name, err)
		}
		if v.Tool(call.Params.Name) != nil { // any other name may be a client's invention
			tracing.Current(ctx).Target("gen_ai.tool.name", call.Params.Name)
		}
	}
	if isLasting(c.Session, req) {
		r.lists.follow(ctx, c.Session, v.Offer)
	}
	return r.answer(ctx, v, next, method, req)
}

// answer answers a request from v, what its sender is offered. Only what is passed to next reaches
// the SDK, which has one list of tools, prompts and resources for all clients, and checks and
// changes only results of its own entries. So this server lists, calls, fills in and reads by
// itself.
func (r *requests) answer(ctx context.Context, v *offer.View, next mcp.MethodHandler, method string,
	req mcp.Request) (mcp.Result, error) {
	switch req := req.(type) {
	case *mcp.CallToolRequest:
		return r.calls.call(ctx, v, req)
	case *mcp.GetPromptRequest:
		return r.reads.getPrompt(ctx, v, req)
	case *mcp.ReadResourceRequest:
		return r.reads.readResource(ctx, v, req)
	case *mcp.CompleteRequest, *mcp.SubscribeRequest, *mcp.UnsubscribeRequest:
		return next(ctx, method, req)
	}
	return v.List(ctx, req)
}

// spans is middleware that makes a span of each request, as a child of the client's. The request
// that listens for changes has none, because it does not end.
func spans(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx = withTrace(ctx, req)
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
				jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, mcpclient.CodeNoResource:
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

// withTrace returns a context with the trace of a client's request, from its _meta or else from the
// HTTP headers.
func withTrace(ctx context.Context, req mcp.Request) context.Context {
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		ctx = tracing.Extract(ctx, extra.Header.Get)
	}
	if params := req.GetParams(); params != nil && !reflect.ValueOf(params).IsNil() {
		meta := params.GetMeta()
		ctx = tracing.Extract(ctx, func(name string) string { s, _ := meta[name].(string); return s })
	}
	return ctx
}
