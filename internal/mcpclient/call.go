//lint:file-ignore SA1019 what a later revision deprecates, servers of today still do: logging

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

	"github.com/toolreg/toolreg/internal/registry"
)

// withdrawal is how long a cancelled call waits for notifications/cancelled to
// be written: a process that ends at once would never send it.
const withdrawal = 250 * time.Millisecond

// codeRejected is the SDK's code for a request that the HTTP server refused
// without a JSON-RPC answer.
const codeRejected = -32005

// logsID is the id of the request for log messages, whose answer nobody needs.
const logsID = "toolreg-logs"

// call runs one tool. A refusal by JSON-RPC error is the tool's error, since
// the server lives and the model may mend its call; a lost server is ours.
func (s *Source) call(ctx context.Context, name string, call registry.Call, output *registry.Validator) (registry.Result, error) {
	start := time.Now()
	sess, err := s.live(ctx)
	if err != nil {
		return registry.Result{}, err
	}
	x := newConversation("tool " + quote(name))
	x.progress = call.Progress
	raw, sess, err := s.exchange(ctx, sess, x, s.callTool(x, name, call.Params))
	if err != nil {
		return s.callFailed(ctx, sess, name, start, err)
	}
	r := resultOf(name, raw)
	r.Asked = x.asked()
	if output != nil && !r.IsError {
		r = checkOutput(ctx, r, output)
	}
	return r, nil
}

// request sends one request over a session.
type request func(ctx context.Context, sess *session) error

// exchange makes a request, once more over a new session where the server forgot
// the old one and says that it did nothing. It returns the session that was used
// last.
func (s *Source) exchange(ctx context.Context, sess *session, x *exchange, send request) (json.RawMessage, *session, error) {
	once := func() (json.RawMessage, error) {
		sess.logs.Do(func() { s.askForLogs(ctx, sess) })
		return s.converse(ctx, sess, x, func(ctx context.Context) error { return send(ctx, sess) })
	}
	raw, err := once()
	if !errors.Is(err, mcp.ErrSessionMissing) {
		return raw, sess, err
	}
	sess.end()
	next, err := s.live(ctx)
	if err != nil {
		return nil, sess, err
	}
	sess = next
	raw, err = once()
	return raw, sess, err
}

func (s *Source) callTool(x *exchange, name string, args json.RawMessage) request {
	return func(ctx context.Context, sess *session) error {
		params := &mcp.CallToolParams{Name: name}
		if len(args) > 0 {
			params.Arguments = args
		}
		x.setToken(sess)
		params.SetProgressToken(x.token)
		s.setLogLevel(sess, params.Meta)
		_, err := sess.client.CallTool(ctx, params)
		return err
	}
}

// setLogLevel tells a modern server with each request which log messages are
// wanted.
func (s *Source) setLogLevel(sess *session, meta mcp.Meta) {
	if sess.modern() && s.opts.LogLevel != "" {
		meta[mcp.MetaKeyLogLevel] = s.opts.LogLevel
	}
}

func (s *Source) callFailed(ctx context.Context, sess *session, name string, start time.Time, err error) (registry.Result, error) {
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return registry.ErrorResult(registry.ErrorTimeout, s.errorf("tools/call", nil, fmt.Sprintf("no answer from tool %q within %s; it was told to stop%s",
				name, time.Since(start).Round(10*time.Millisecond), sess.clues())).Error()), nil
		}
		return registry.Result{}, fmt.Errorf("calling %q on server %q: %w", name, s.opts.Server.Name, context.Cause(ctx))
	}
	if login := sess.guard.loginFailure(); login != nil {
		failed := s.loginError(login)
		s.setState(failedState(failed), failed)
		return registry.Result{}, failed
	}
	var unmet *inputError
	if errors.As(err, &unmet) {
		return registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf("server %q: tools/call: %s", s.opts.Server.Name, quoteControls(unmet.reason))), nil
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code != codeRejected {
		// The TypeScript SDK's servers begin their messages so themselves.
		prefix := fmt.Sprintf("MCP error %d: ", refused.Code)
		return registry.ErrorResult(registry.ErrorExecution, prefix+cut(strings.TrimPrefix(sess.hide(refused.Message), prefix), maxNote)), nil
	}
	return registry.Result{}, s.errorf("tools/call", err, sess.failure(err))
}

// checkOutput makes a failed result of one whose structured content is not what
// the tool promises. Nothing of what came is lost.
func checkOutput(ctx context.Context, r registry.Result, output *registry.Validator) registry.Result {
	problem := "the result has no structuredContent, which the tool's outputSchema promises"
	if r.Structured != nil {
		violations, err := output.Validate(ctx, r.Structured)
		switch {
		case err != nil:
			problem = "structuredContent cannot be checked against the tool's outputSchema: " + err.Error()
		case len(violations) == 0:
			return r
		default:
			e := registry.ArgsError{Violations: violations}
			problem = "structuredContent breaks the tool's outputSchema" + e.Error()[len("invalid params for "):]
		}
	}
	r.IsError, r.ErrorCategory = true, registry.ErrorExecution
	r.Content = append([]registry.Content{registry.TextContent(problem)}, r.Content...)
	r.Display = registry.Display{}
	r.Summary = problem
	return r
}

// logsTime is how long a server may take to say that it will log.
const logsTime = 100 * time.Millisecond

// askForLogs asks a legacy server for its log messages: many send none unasked.
// It waits for the answer, since a server may deal with requests at once and
// begin with the call. Over HTTP, where that costs a round trip, it asks only
// where everything is to be seen. A modern server is told with each request.
func (s *Source) askForLogs(ctx context.Context, c *session) {
	caps := c.client.InitializeResult().Capabilities
	if s.opts.LogLevel == "" || c.child == nil && s.opts.LogLevel != "debug" || c.modern() || caps == nil || caps.Logging == nil {
		return
	}
	id, err := jsonrpc.MakeID(logsID)
	if err != nil {
		return
	}
	// A server that is gone fails the call that follows.
	if c.wire.inner.Write(ctx, &jsonrpc.Request{ID: id, Method: "logging/setLevel", Params: json.RawMessage(`{"level":` + jsString(s.opts.LogLevel) + `}`)}) == nil {
		await(c.wire.logs, logsTime)
	}
}

// token returns a progress token that no other call of the session has.
func (c *session) token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	return fmt.Sprintf("toolreg-%d", c.serial)
}

// await waits for c to be closed, at most d.
func await(c <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}
