package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// call runs one tool. A refusal by JSON-RPC error is the tool's error, since
// the server lives and the model may mend its call; a lost server is ours.
func (s *Source) call(ctx context.Context, name string, call registry.Call, output *registry.Validator) (registry.Result, error) {
	start := time.Now()
	sess, err := s.live(ctx)
	if err != nil {
		return registry.Result{}, err
	}
	raw, err := s.ask(ctx, sess, name, call)
	if errors.Is(err, mcp.ErrSessionMissing) {
		// The server forgot the session and says that it did nothing.
		sess.end()
		if sess, err = s.live(ctx); err != nil {
			return registry.Result{}, err
		}
		raw, err = s.ask(ctx, sess, name, call)
	}
	if err != nil {
		return s.callFailed(ctx, sess, name, start, err)
	}
	r := resultOf(name, raw)
	if output != nil && !r.IsError {
		r = checkOutput(ctx, r, output)
	}
	return r, nil
}

// ask sends the call, once more after each question of the server that the
// person answered.
func (s *Source) ask(ctx context.Context, sess *session, name string, call registry.Call) (json.RawMessage, error) {
	ctx, done := sess.begin(ctx)
	defer done()
	x := newExchange()
	defer sess.wire.forget(x)
	x.progress = call.Progress
	x.token = sess.token()
	if x.progress != nil {
		sess.logs.Do(func() { sess.askForLogs(ctx) })
	}
	for {
		err := s.send(ctx, sess, x, name, call.Params)
		switch {
		case err == nil:
			return x.result(), nil
		case ctx.Err() != nil:
			await(x.withdrew, withdrawal)
			return nil, context.Cause(ctx)
		case !s.answerURLs(ctx, err):
			return nil, err
		}
	}
}

func (s *Source) send(ctx context.Context, sess *session, x *exchange, name string, args json.RawMessage) error {
	params := &mcp.CallToolParams{Name: name}
	if len(args) > 0 {
		params.Arguments = args
	}
	params.SetProgressToken(x.token)
	if sess.modern() && x.progress != nil {
		params.Meta[mcp.MetaKeyLogLevel] = "info"
	}
	_, err := sess.client.CallTool(withExchange(ctx, x), params)
	return err
}

func (s *Source) callFailed(ctx context.Context, sess *session, name string, start time.Time, err error) (registry.Result, error) {
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return registry.ErrorResult(registry.ErrorTimeout, fmt.Sprintf("server %q: tools/call: no answer from tool %q within %s; the server was told to stop",
				s.opts.Server.Name, name, time.Since(start).Round(10*time.Millisecond))), nil
		}
		return registry.Result{}, fmt.Errorf("calling %q on server %q: %w", name, s.opts.Server.Name, context.Cause(ctx))
	}
	if login := sess.guard.loginFailure(); login != nil {
		failed := s.loginError(login)
		s.setState(failedState(failed), failed)
		return registry.Result{}, failed
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code != codeRejected {
		return registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf("MCP error %d: %s", refused.Code, cut(refused.Message, maxNote))), nil
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

// askForLogs asks a legacy server for its log messages: many send none unasked.
// It does not wait for the answer, and over HTTP, where it would cost a round
// trip, it does not ask. A modern server is told with each call.
func (c *session) askForLogs(ctx context.Context) {
	caps := c.client.InitializeResult().Capabilities
	if c.child == nil || c.modern() || caps == nil || caps.Logging == nil {
		return
	}
	id, err := jsonrpc.MakeID("toolreg-logs")
	if err != nil {
		return
	}
	// A server that is gone fails the call that follows.
	_ = c.wire.inner.Write(ctx, &jsonrpc.Request{ID: id, Method: "logging/setLevel", Params: json.RawMessage(`{"level":"info"}`)})
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
