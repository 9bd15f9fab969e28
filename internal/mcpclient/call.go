package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// call runs one tool. A JSON-RPC error becomes a tool error, since the server
// is alive and the model may correct its call. Losing the server is an error of
// the source.
func (q *requester) call(ctx context.Context, tool *registry.Definition, call registry.Call, output *registry.Validator) (registry.Result, error) {
	name, params := tool.ServerTool, call.Params
	sess, err := q.pool.live(ctx)
	if err != nil {
		return registry.Result{}, err
	}
	if call.Detach != nil && sess.stdio != nil && sess.kept == nil {
		return registry.Result{}, q.opts.errorf("tools/call", nil, "the call was not made, because the server could not be kept between runs and its task would end with this one")
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	request := &request{
		method: "tools/call", name: name, progress: call.Progress, asked: ask.NewRequest(ctx, "tool "+text.Quote(name)),
		params:  map[string]any{"name": name, "arguments": params},
		headers: wire.ParamHeaders(tool.InputSchema, params),
		detach:  call.Detach,
	}
	if (TaskSupport(tool) == TaskRequired || call.Detach != nil && TaskSupport(tool) == TaskOptional) && sess.wire.Server().Tasks { // a modern server decides by itself
		request.params = map[string]any{"name": name, "arguments": params, "task": struct{}{}}
	}
	r, err := q.result(ctx, sess, name, request, call.Last, output)
	if err != nil {
		return r, err
	}
	if request.asked.Unclear() {
		who, advice := "calls of several clients", "Set perClient: true for the server to give each client its own process."
		switch c := caller.From(ctx); {
		case sess.kept != nil:
			who, advice = "calls of several runs", "With --fresh a run has its own process of the server."
		case c != nil && c.Single:
			who, advice = "several calls", "Make them one after another."
		}
		r = r.WithNote(fmt.Sprintf("A question of server %q was declined: %s were running there, and the protocol does not say which of them it was about. %s", q.opts.Server.Name, who, advice))
	}
	for _, reason := range request.asked.Declined() {
		r = r.WithNote("The user declined a question of the server. The reason given: " + reason)
	}
	return r, nil
}

// result sends a call and reads the response; last reports that no other call
// follows.
func (q *requester) result(ctx context.Context, sess *session, name string, request *request, last bool, output *registry.Validator) (registry.Result, error) {
	start := time.Now()
	raw, sess, err := q.do(ctx, sess, request)
	if err != nil {
		return q.callFailed(ctx, sess, name, start, err)
	}
	q.pool.restarts.answered(ctx)
	if last {
		go sess.end() // Close waits for it
	}
	r := content.Result(name, raw)
	r.Asked, r.Confined = request.asked.Asked(), sess.confined
	if request.detached {
		r.Asked, r.Detached = true, true
		return r, nil
	}
	return checkOutput(ctx, r, output), nil
}

func (q *requester) callFailed(ctx context.Context, sess *session, name string, start time.Time, err error) (registry.Result, error) {
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return registry.ErrorResult(registry.ErrorTimeout, q.opts.errorf("tools/call", nil, fmt.Sprintf("no answer from tool %q within %s; the server was asked to stop it%s",
				name, time.Since(start).Round(10*time.Millisecond), sess.clues())).Error()), nil
		}
		return registry.Result{}, fmt.Errorf("calling %q on server %q: %w", name, q.opts.Server.Name, context.Cause(ctx))
	}
	if login, ok := errors.AsType[*wire.LoginError](err); ok {
		failed := q.opts.loginError(login)
		q.pool.status.set(failedState(failed), failed)
		return registry.Result{}, failed
	}
	if unmet, ok := errors.AsType[*ask.InputError](err); ok {
		return registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf("server %q: tools/call: %s", q.opts.Server.Name, text.Escape(unmet.Reason))), nil
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if refused.Code == mcp.CodeMissingRequiredClientCapabilities && !caller.IsPerson(ctx) {
			return registry.Result{}, refused // the client has to declare more capabilities
		}
		// Servers of the TypeScript SDK already begin their messages like this.
		prefix := fmt.Sprintf("MCP error %d: ", refused.Code)
		return registry.ErrorResult(registry.ErrorExecution, prefix+text.Valid(text.Head(strings.TrimPrefix(sess.hide(refused.Message), prefix), maxMessage))), nil
	}
	return registry.Result{}, q.opts.errorf("tools/call", err, sess.failure(err))
}

// checkOutput turns a result whose structured content does not match the tool's
// outputSchema into a failed one. All received content is kept.
func checkOutput(ctx context.Context, r registry.Result, output *registry.Validator) registry.Result {
	if r.IsError || !output.Judges(ctx) {
		return r
	}
	problem := registry.Ran + "its result has no structuredContent, although the tool declares an outputSchema"
	if r.Structured != nil {
		violations, err := output.Validate(ctx, r.Structured)
		if err != nil || len(violations) == 0 {
			return r
		}
		problem = registry.Ran + "its structuredContent does not match the tool's outputSchema: " + registry.Describe(violations)
	}
	r.IsError, r.ErrorCategory = true, registry.ErrorExecution
	r.Content = append([]registry.Content{registry.TextContent(problem)}, r.Content...)
	r.Display = registry.Display{}
	r.Summary = problem
	return r
}
