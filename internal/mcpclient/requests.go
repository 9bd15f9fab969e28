package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// requester sends requests for users and clients, and answers the server's questions
// meanwhile.
type requester struct {
	opts  *Options
	asker *ask.Handler
	pool  *pool
}

// request is one request of a user or a client, during which the server may ask. It is sent
// again with the answers.
type request struct {
	method   string
	name     string // of the tool or prompt, or the URI of the resource, "" for none
	params   any    // encoded as a JSON object
	headers  http.Header
	progress func(registry.Progress) // may be nil

	detach   func(registry.RemoteTask) error // see [registry.Call]
	detached bool                            // it was called

	asked *ask.Request
	input json.RawMessage // members to add to the params: the input that the server asked for
}

func withMembers(object, members json.RawMessage) json.RawMessage {
	if len(members) == 0 || string(object) == "{}" {
		return object
	}
	return slices.Concat(bytes.TrimSuffix(object, []byte("}")), []byte(","), members, []byte("}"))
}

// addAnswers adds a client's answers to an earlier run of the call to a request, and returns how
// often the server had asked by then.
func addAnswers(server string, r *request) (rounds int, err error) {
	members, rounds, err := r.asked.Peer().Answered(server)
	if len(members) > 0 {
		r.asked.MarkAsked()
		r.input = members
	}
	return rounds, err
}

// inputs gets the input that a modern server asks for. A server that asks for none is busy, and
// gets the request again after a pause.
func (q *requester) inputs(ctx context.Context, r *request, raw json.RawMessage, round int) (json.RawMessage, error) {
	asks := false
	for range jsonx.Members(jsonx.Get(raw, "inputRequests")) {
		asks = true
		break
	}
	if !asks {
		_ = timing.Pause(ctx, time.Duration(round+1)*busyPause)
	}
	if peer := r.asked.Peer(); peer.TakesInput() {
		if asks {
			r.asked.MarkAsked()
		}
		return peer.Input(ctx, q.opts.Server.Name, raw)
	}
	return q.asker.Inputs(ctx, r.asked, raw)
}

// busyPause is how long to wait for a busy server, multiplied by the round.
const busyPause = 100 * time.Millisecond

// maxRounds is how often a server may ask for input before it answers one
// request.
const maxRounds = 5

// fetch sends one request for the user, and answers the server's questions
// meanwhile.
func (q *requester) fetch(ctx context.Context, r *request, what string) (json.RawMessage, error) {
	sess, err := q.pool.live(ctx)
	if err != nil {
		return nil, err
	}
	if !sess.offers(what) {
		return nil, &NotOfferedError{Server: q.opts.Server.Name, What: what}
	}
	raw, sess, err := q.do(ctx, sess, r)
	if err := q.answerError(ctx, sess, r.method, raw, err); err != nil {
		return nil, err
	}
	return raw, nil
}

// answerError returns the error for a failed request other than a call.
func (q *requester) answerError(ctx context.Context, sess *session,
	method string, raw json.RawMessage, err error) error {
	switch {
	case err == nil && jsonx.KindOf(raw) != jsonx.Object:
		return q.opts.errorf(method, nil, "the server's answer is not a result object")
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("server %q: %s: %w", q.opts.Server.Name, method, context.Cause(ctx))
	}
	if unmet, ok := errors.AsType[*ask.InputError](err); ok {
		return &RefusedError{Server: q.opts.Server.Name, Request: method, Message: unmet.Reason}
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &RefusedError{
			Server: q.opts.Server.Name, Request: method, Code: refused.Code,
			Message: sess.said(refused),
		}
	}
	return q.opts.errorf(method, err, sess.failure(err))
}

// do sends a request. If the session ended before, or the server has forgotten it and
// refuses the request for that reason, do sends the request over a new session, once. It
// returns the session used last.
func (q *requester) do(ctx context.Context, sess *session, r *request) (json.RawMessage, *session, error) {
	raw, err := q.doOn(ctx, sess, r)
	lost, missing := errors.AsType[*wire.SessionLostError](err)
	if missing && lost.MayHaveRun || !missing && !errors.Is(err, errEnded) {
		return raw, sess, err
	}
	if missing {
		sess.forgotten()
	} else if !sess.isLeaving() {
		sess.end()
	}
	next, err := q.pool.live(ctx)
	if err != nil {
		return nil, sess, err
	}
	raw, err = q.doOn(ctx, next, r)
	return raw, next, err
}

// doOn sends a request over a session and answers the server's questions until the response
// arrives. Legacy servers ask by sending requests, which the session passes to package ask. Modern
// ones respond that they need input, and get the request again with that input (revision
// 2026-07-28, input_required). Both may refuse until the user has opened a URL (error -32042). The
// error is the cause of ctx, an *ask.InputError, or an error of [wire.Session.Do].
func (q *requester) doOn(ctx context.Context, sess *session, r *request) (json.RawMessage, error) {
	ctx, done, err := sess.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	params, err := jsonx.Marshal(r.params)
	if err != nil {
		return nil, fmt.Errorf("encoding the params: %w", err)
	}
	round, err := addAnswers(q.opts.Server.Name, r)
	if err != nil {
		return nil, err
	}
	for ; ; round++ {
		raw, err := sess.wire.Do(ctx,
			&wire.Request{
				Method:   r.method,
				Params:   withMembers(params, r.input),
				Name:     r.name,
				Headers:  r.headers,
				Asked:    r.asked,
				Progress: r.progress,
			})
		refused, _ := errors.AsType[*jsonrpc.Error](err)
		wantsVisit := refused != nil && refused.Code == mcp.CodeURLElicitationRequired // of addresses, by the user
		again := false
		switch {
		case err == nil && !ask.WantsInput(raw) && r.method == "tools/call":
			t, err := taskOf(raw)
			if t != nil {
				return q.await(ctx, sess, r, t)
			}
			return raw, err
		case err == nil && !ask.WantsInput(raw):
			return raw, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case round >= maxRounds && (err == nil || wantsVisit):
			return nil, &ask.InputError{Reason: fmt.Sprintf("it asked for input more than %d times", maxRounds)}
		case err == nil:
			r.input, err = q.inputs(ctx, r, raw, round)
			again = err == nil
		case wantsVisit:
			again = q.asker.Addresses(ctx, r.asked, refused.Data, sess.wire.Completion)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !again {
			return nil, err
		}
	}
}

// call runs one tool. A JSON-RPC error becomes a tool error, since the server
// is alive and the model may correct its call. Losing the server is an error of
// the source.
func (q *requester) call(ctx context.Context, tool *registry.Definition,
	call registry.Call, output *registry.Validator) (registry.Result, error) {
	name, params := tool.ServerTool, call.Params
	sess, err := q.pool.live(ctx)
	if err != nil {
		return registry.Result{}, err
	}
	if call.Detach != nil && sess.stdio != nil && sess.kept == nil {
		return registry.Result{}, q.opts.errorf("tools/call", nil,
			"the call was not made, because the server could not be kept between runs and its task would end with this one")
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
	// Modern servers decide by themselves.
	if (TaskSupport(tool) == TaskRequired || call.Detach != nil && TaskSupport(tool) == TaskOptional) &&
		sess.wire.Server().Tasks {
		request.params = map[string]any{"name": name, "arguments": params, "task": struct{}{}}
	}
	r, err := q.result(ctx, sess, name, request, call.Last, output)
	if err != nil {
		return r, err
	}
	if request.asked.Unclear() {
		who, advice := "calls of several clients",
			"Set perClient: true for the server to give each client its own process."
		switch c := caller.From(ctx); {
		case sess.kept != nil:
			who, advice = "calls of several runs", "With --fresh a run has its own process of the server."
		case c != nil && c.Single:
			who, advice = "several calls", "Make them one after another."
		}
		r = r.WithNote(fmt.Sprintf("A question of server %q was declined: %s were running there, and the protocol does not say which of them it was about. %s",
			q.opts.Server.Name, who, advice))
	}
	for _, reason := range request.asked.Declined() {
		r = r.WithNote("The user declined a question of the server. The reason given: " + reason)
	}
	return r, nil
}

// result sends a call and reads the response; last reports that no other call
// follows.
func (q *requester) result(ctx context.Context, sess *session, name string,
	request *request, last bool, output *registry.Validator) (registry.Result, error) {
	start := time.Now()
	raw, sess, err := q.do(ctx, sess, request)
	if err != nil {
		return q.callFailed(ctx, sess, name, start, err)
	}
	q.pool.restarts.recordSuccess(ctx)
	if last {
		go sess.end() // Close waits for it
	}
	r := content.Result(name, raw)
	r.Asked, r.Confined = request.asked.Asked(), sess.confined
	if request.detached {
		r.Asked, r.Detached = true, true
		return r, nil
	}
	return output.CheckResult(ctx, r), nil
}

func (q *requester) callFailed(ctx context.Context, sess *session,
	name string, start time.Time, err error) (registry.Result, error) {
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return registry.ErrorResult(registry.ErrorTimeout,
				q.opts.errorf("tools/call", nil,
					fmt.Sprintf("no answer from tool %q within %s; the server was asked to stop it%s",
						name, time.Since(start).Round(10*time.Millisecond), sess.clues())).Error()), nil
		}
		return registry.Result{}, fmt.Errorf("calling %q on server %q: %w",
			name, q.opts.Server.Name, context.Cause(ctx))
	}
	if login, ok := errors.AsType[*wire.LoginError](err); ok {
		failed := q.opts.loginError(login)
		q.pool.status.set(failedState(failed), failed)
		return registry.Result{}, failed
	}
	if unmet, ok := errors.AsType[*ask.InputError](err); ok {
		return registry.ErrorResult(registry.ErrorExecution,
			fmt.Sprintf("server %q: tools/call: %s", q.opts.Server.Name, text.Escape(unmet.Reason))), nil
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if refused.Code == mcp.CodeMissingRequiredClientCapabilities && !caller.IsPerson(ctx) {
			return registry.Result{}, refused // the client must declare more capabilities
		}
		// Servers of the TypeScript SDK already begin their messages like this.
		prefix := fmt.Sprintf("MCP error %d: ", refused.Code)
		r := registry.ErrorResult(registry.ErrorExecution, prefix+strings.TrimPrefix(sess.said(refused), prefix))
		if refused.Code == mcp.CodeHeaderMismatch { // the headers are those of a definition from before
			sess.record.forget()
			q.pool.connector.changed(Change{List: listTools})
			r = r.WithNote("The server may have changed this tool. Its tools are listed again; then repeat the call.")
		}
		return r, nil
	}
	return registry.Result{}, q.opts.errorf("tools/call", err, sess.failure(err))
}
