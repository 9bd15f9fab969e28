package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// calls makes the calls of clients, and counts them.
type calls struct {
	offers   *current.Offers
	states   *question.Calls
	tasks    *task.Tasks
	sessions *transport.Sessions
	logins   *logins
	most     func() int // calls that may run with one token
	log      *slog.Logger

	running transport.Calls
	claimed atomic.Bool // clients' names come from access tokens

	mu    sync.Mutex
	ended map[[2]string]int // calls that have ended, by label of the client and outcome
}

// call answers a request to call a tool of v. Errors become results for the model, unless the
// request itself was canceled.
func (l *calls) call(ctx context.Context, v *offer.View, req *mcp.CallToolRequest) (result mcp.Result, err error) {
	c := question.From(ctx)
	defer func() { l.countEnd(ctx, c, result, err) }()
	done, err := l.admit(ctx, c)
	if err != nil {
		return errorResult(err.Error()), nil
	}
	defer func() { done() }()
	support := ""
	if t := v.Tool(req.Params.Name); t != nil {
		support = mcpclient.TaskSupport(&t.Tool.Definition)
	}
	if c.Modern && !c.KnowsTasks() && support == mcpclient.TaskRequired {
		return nil, task.NeedsExtension()
	}
	t := question.Turn{
		Method: "tools/call", Name: req.Params.Name, Params: req.Params.Arguments,
		State: req.Params.RequestState, Answers: req.Params.InputResponses,
	}
	run := func(ctx context.Context) (any, error) { return l.execute(ctx, req, true) }
	var value any
	var ask *question.Asked
	wanted := c.WantedTask(req)
	switch {
	case wanted == nil:
		value, ask, err = l.states.Make(ctx, t, run)
	case jsonx.KindOf(wanted) != jsonx.Object:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "task must be an object"}
	case support == "":
		message := fmt.Sprintf("the tool %q cannot be called as a task", req.Params.Name)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
	default:
		value = l.states.Start(ctx, t, nil, run)
	}
	if call, ok := value.(*question.Call); ok {
		if ctx.Err() != nil { // nobody would learn the id of the task
			call.Stop(question.ErrBrokenOff)
			return nil, context.Cause(ctx)
		}
		_, stays := l.sessions.Call(ctx, c.Session.ID(), nil, nil) // the client must be able to find the task
		over := done
		run, err := l.tasks.Add(ctx, c.From, call,
			func(value any, err error) (mcp.Result, error) { return resultOfCall(c, value, err) },
			func() { over(); stays() })
		if err != nil {
			stays()
			call.Stop(err)
			return errorResult(err.Error()), nil
		}
		done = func() {} // at the end of the task
		return run.Created(c), nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case ask != nil:
		return ask, nil
	}
	return resultOfCall(c, value, err)
}

// unresolved answers a call of a tool that was not found.
func (l *calls) unresolved(ctx context.Context, name string, err error) (mcp.Result, error) {
	if errors.Is(err, registry.ErrSourceFailed) || errors.Is(err, registry.ErrNeedsLogin) {
		return errorResult(explain(err)), nil
	}
	l.log.Warn("call refused", "tool", name, "caller", caller.Name(ctx), "reason", err.Error())
	return nil, err
}

// otherClients is the label of all clients whose names are neither in the token file nor in the
// settings, because there may be any number of them.
const otherClients = "other"

func (l *calls) label(client string) string {
	return labelOf(client, l.claimed.Load(), l.offers.Common())
}

// labelOf returns the label of a client. claimed says that clients' names come from access tokens.
func labelOf(client string, claimed bool, o *offer.Offer) string {
	if !claimed {
		return client
	}
	if o != nil && !text.IsGlob(client) {
		for _, limit := range o.Session.Settings.CallLimits {
			if limit.Client == client {
				return client
			}
		}
	}
	return otherClients
}

// countEnd counts an answered request for a call, for the metrics.
func (l *calls) countEnd(ctx context.Context, c *question.Client, result mcp.Result, err error) {
	r, isResult := result.(*callResult)
	_, isTask := result.(*task.Created)
	outcome := "ok"
	switch {
	case canceled(ctx, err), err == nil && !isResult && !isTask: // a client that is asked a question has no result yet
		return
	case isTask:
		outcome = "task" // it continues
	case err != nil || r.IsError:
		outcome = "error"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = map[[2]string]int{}
	}
	l.ended[[2]string{l.label(c.From.Name), outcome}]++
}

// canceled reports whether a request needs no answer because its client has canceled it.
func canceled(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, transport.ErrLeft))
}

// resultOfCall converts the outcome of a call for the client.
func resultOfCall(c *question.Client, v any, err error) (mcp.Result, error) {
	r, _ := v.(registry.Result)
	switch {
	case err != nil && errors.Is(err, exec.ErrTimeout): // with the output so far
		out := errorResult(explain(err))
		out.Content = append(out.Content, r.Content...)
		return out, nil
	case err != nil:
		if refused := protocolError(err); refused != nil {
			return nil, refused
		}
		return errorResult(explain(err)), nil
	}
	return resultOf(c, r), nil
}

// execute makes a call. If the call's server needs a login of the client, it may ask the client to
// log in and repeat the call.
func (l *calls) execute(ctx context.Context, req *mcp.CallToolRequest, mayLogIn bool) (registry.Result, error) {
	v, done := l.offers.Use(ctx)
	defer done()
	ctx = v.Context(ctx)
	f, ok := v.Find(ctx, req.Params.Name)
	if !ok {
		return registry.Result{}, errReplaced
	}
	f, name, raw, err := v.Session.Calls.Resolve(ctx, f, req.Params.Name, req.Params.Arguments)
	if err != nil {
		return registry.Result{}, err
	}
	if err := question.From(ctx).Concerns(f.Tool, f.Tool.Source); err != nil {
		return registry.Result{}, err
	}
	call := registry.Call{Tool: name, Params: raw, Progress: question.Progress(ctx)}
	r, err := v.Session.Calls.CallJSON(ctx, f, call)
	if server := v.OwnServer(f.Tool); mayLogIn && server != nil && errors.Is(err, registry.ErrNeedsLogin) {
		if err := l.logins.logIn(ctx, server); err != nil {
			return registry.Result{}, err
		}
		return l.execute(ctx, req, false)
	}
	return v.Session.Calls.AnswerMCP(ctx, f.Tool, r), err
}

// errReplaced reports that a tool no longer exists after a change of the settings.
var errReplaced = errors.New("no longer offered, because the settings have changed")

// explain describes the error of a call for the model, and what can be done about it.
func explain(err error) string {
	if e, ok := errors.AsType[*exec.NeedsConfirmation](err); ok {
		return exec.Explain(err) + "\n" + e.Error()
	}
	if e, ok := errors.AsType[*exec.Denied](err); ok && e.Origin != exec.OriginPerson && !e.Later {
		return exec.Explain(err) + "\n" + e.Error()
	}
	return exec.Explain(err)
}

// protocolError returns the protocol error with which to answer a request, or nil if err
// is not one. It does not disclose the cause of a server's failure.
func protocolError(err error) *jsonrpc.Error {
	if _, failed := errors.AsType[*mcpclient.ServerError](err); failed {
		return nil
	}
	if _, ended := errors.AsType[*exec.ScriptError](err); ended { // another tool was called
		return nil
	}
	refused, _ := errors.AsType[*jsonrpc.Error](err)
	return refused
}

// ownResult is embedded in results that this server makes itself. The SDK sets resultType only in
// its own types.
type ownResult struct {
	mcp.ResultBase
	Type string `json:"resultType,omitempty"` // revisions before 2026-07-28 do not have it
}

// complete marks the result as final, not as a question to the client.
func (r *ownResult) complete() { r.Type = "complete" }

type callResult struct {
	ownResult
	Content    []registry.Content `json:"content"`
	Structured json.RawMessage    `json:"structuredContent,omitempty"`
	IsError    bool               `json:"isError,omitempty"`
}

func errorResult(text string) *callResult {
	return &callResult{Content: []registry.Content{registry.TextContent(text)}, IsError: true}
}

// resultOf converts a result for the client's revision. Before 2026-07-28
// structured content had to be an object.
func resultOf(c *question.Client, r registry.Result) *callResult {
	out := &callResult{Content: c.Readable(r.Content), IsError: r.IsError}
	if c.Modern || jsonx.KindOf(r.Structured) == jsonx.Object {
		out.Structured = r.Structured
	}
	out.Meta = transport.MetaOf(r.Meta)
	delete(out.Meta, mcp.MetaKeyServerInfo) // the client's server is toolreg
	delete(out.Meta, task.Related)          // it names a task of the server
	return out
}

// refusalPause is how long refusing a call takes.
const refusalPause = 100 * time.Millisecond

// admit counts a call of a client. If too many are running, it fails after a pause, so that
// a client that floods the server is slowed down.
func (l *calls) admit(ctx context.Context, c *question.Client) (done func(), err error) {
	if err := l.running.Add(c.From.Name, l.most()); err != nil {
		l.log.Warn("call refused", "caller", c.From.Name, "reason", err.Error())
		_ = timing.Pause(ctx, refusalPause)
		return nil, err
	}
	return func() { l.running.Remove(c.From.Name) }, nil
}
