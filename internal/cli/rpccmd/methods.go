package rpccmd

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/cli/listcmd"
	"github.com/toolreg/toolreg/internal/cli/schemacmd"
	"github.com/toolreg/toolreg/internal/cli/searchcmd"
	"github.com/toolreg/toolreg/internal/cli/serverscmd"
	"github.com/toolreg/toolreg/internal/cli/whycmd"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/rpc"
)

// initialize returns the method that comes first. life is the context of the connection.
func initialize(life context.Context, h *host) rpc.Method {
	return rpc.NewMethod("initialize",
		func(_ context.Context, _ *rpc.Request, p initializeParams) (initializeResult, error) {
			return h.initialize(life, p)
		})
}

// method returns a method that f answers.
func method[P, R any](life context.Context, name string,
	f func(life, ctx context.Context, r *rpc.Request, p P) (R, error)) rpc.Method {
	return rpc.NewMethod(name, func(ctx context.Context, r *rpc.Request, p P) (R, error) { return f(life, ctx, r, p) })
}

// methods returns the other methods, in the order of the documentation.
func methods(life context.Context, h *host) []rpc.Method {
	provide := method(life, "provide", h.provide)
	declare := method(life, "declare", h.declare)
	declare.Arrive = h.bind
	answer := method(life, "answer", h.answer)
	answer.Calls, answer.Arrive = true, h.bound
	call := method(life, "call", h.call)
	call.Calls = true
	list := rpc.NewMethod("list", func(ctx context.Context, _ *rpc.Request, p listParams) (listcmd.Document, error) {
		q := listcmd.Query{Selection: cli.Selection{Filters: p.Filters}, Tool: p.Tool, All: p.All}
		return within(life, ctx, h, nil, q.Document)
	})
	search := rpc.NewMethod("search",
		func(ctx context.Context, _ *rpc.Request, p searchParams) (searchcmd.Document, error) {
			q := searchcmd.Query{Selection: cli.Selection{Filters: p.Filters},
				Words: p.Query, Limit: cmp.Or(p.Limit, searchcmd.DefaultLimit)}
			return within(life, ctx, h, nil, q.Document)
		})
	why := rpc.NewMethod("why", func(ctx context.Context, r *rpc.Request, p whyParams) (whycmd.Document, error) {
		return within(life, ctx, h, nil, func(ctx context.Context, s *engine.Session) (whycmd.Document, error) {
			f, err := s.Tools.Find(ctx, p.Tool, engine.Query{Script: true})
			if f.Registry != nil {
				h.diagnose(r, f.Registry.Diagnostics(), err)
			}
			return whycmd.Explain(ctx, s, f, p.Tool, err, p.Params, p.Explain)
		})
	})
	servers := rpc.NewMethod("servers",
		func(ctx context.Context, _ *rpc.Request, p serversParams) (serverscmd.Document, error) {
			return within(life, ctx, h, nil, func(ctx context.Context, s *engine.Session) (serverscmd.Document, error) {
				doc, _, err := serverscmd.StateOf(ctx, s, p.Names)
				return doc, err
			})
		})
	return []rpc.Method{provide, declare, answer, call, list, search, why, servers}
}

// bind makes later answers wait for this declare from the moment that it arrives.
func (h *host) bind() (arrived any, over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &binding{before: h.binding, done: make(chan struct{})}
	h.binding = b
	return b, func() {
		if b.declared == nil { // it failed, so the earlier one stays in effect
			<-b.before.done
			b.declared = b.before.declared
		}
		b.before = nil
		close(b.done)
	}
}

// bound returns the declare that applies to an answer from the moment that it arrives.
func (h *host) bound() (arrived any, over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.binding, func() {}
}

func (h *host) declare(life, ctx context.Context, r *rpc.Request, p declareParams) (declareResult, error) {
	format, err := provider.Lookup(p.Format)
	if err != nil {
		return declareResult{}, err
	}
	deferral := cmp.Or(p.Defer, cli.NoDeferral)
	if err := deferral.Check(); err != nil {
		return declareResult{}, err
	}
	type declared struct {
		result   declareResult
		declared func(*registry.Tool) bool
	}
	request := schemacmd.Request{Selection: cli.Selection{Filters: p.Filters}, Tools: p.Tools,
		Format: format, Deferral: deferral, Encode: provider.Options{Request: p.Request, Strict: p.Strict}}
	out, err := within(life, ctx, h, nil, func(ctx context.Context, s *engine.Session) (declared, error) {
		d := declared{result: declareResult{Diagnostics: []registry.Diagnostic{}}, declared: request.Matches}
		names, _, err := request.Names(ctx, s)
		if err != nil {
			return d, err
		}
		if len(names) > 0 {
			_, tools, err := s.Tools.FindAll(ctx, names...)
			if err != nil {
				return d, err
			}
			d.declared = func(t *registry.Tool) bool {
				return request.Matches(t) && slices.ContainsFunc(tools,
					func(one *registry.Tool) bool { return one.Name == t.Name && one.Source == t.Source })
			}
		}
		request.Scope = d.declared
		encoded, _, err := request.Declare(ctx, s, func(diags []registry.Diagnostic, _ error) {
			d.result.Diagnostics = append(d.result.Diagnostics, diags...)
		})
		if err != nil {
			return d, err
		}
		if d.result.Declarations = json.RawMessage(encoded.Data); format.Text {
			d.result.Declarations = string(encoded.Data)
		}
		return d, nil
	})
	if err == nil {
		r.Arrived.(*binding).declared = out.declared
	}
	return out.result, err
}

func (h *host) provide(life, ctx context.Context, r *rpc.Request, p provideParams) (provideResult, error) {
	if err := h.provided.Set(h.Client, p.Tools); err != nil {
		return provideResult{}, &rpc.Error{Code: rpc.CodeInvalidParams, Message: "params of provide: " + err.Error()}
	}
	return within(life, ctx, h, nil, func(ctx context.Context, s *engine.Session) (provideResult, error) {
		out := provideResult{Tools: []string{}}
		if err := s.Relist(ctx, &h.provided); err != nil {
			return out, err
		}
		reg, err := s.Tools.Local(ctx)
		if err != nil {
			return out, err
		}
		h.diagnose(r, reg.Diagnostics(), nil)
		for _, t := range reg.Tools() {
			if t.Source == registry.SourceHost {
				out.Tools = append(out.Tools, t.Name)
			}
		}
		return out, nil
	})
}

func (h *host) findTool(life, ctx context.Context, r *rpc.Request,
	s *engine.Session, name string, q engine.Query) (engine.Found, error) {
	f, err := within(life, ctx, h, s,
		func(ctx context.Context, s *engine.Session) (engine.Found, error) { return s.Tools.Find(ctx, name, q) })
	if f.Registry != nil {
		h.diagnose(r, f.Registry.Diagnostics(), err)
	}
	return f, err
}

func (h *host) call(life, ctx context.Context, r *rpc.Request, p callParams) (callcmd.Document, error) {
	if p.Parallel {
		r.Leave()
	}
	s, done := h.borrow()
	defer done()
	ctx, c := r.Call(ctx, &h.Host, nil)
	f, err := h.findTool(life, ctx, r, s, p.Tool, engine.Query{Call: true, Reach: true})
	if err != nil {
		return callcmd.Document{}, err
	}
	call := registry.Call{Progress: c.Progress}
	if f, call.Tool, call.Params, err = s.Calls.Resolve(ctx, f, p.Tool, p.Params); err != nil {
		return callcmd.Document{}, err
	}
	if p.Stream {
		call.Emit = func(part registry.Content) { c.Output(callcmd.Content([]registry.Content{part})) }
	}
	if f.Tool.Category == registry.CategoryRead {
		r.Leave()
	} else if err := h.turn(ctx, r, p.Parallel); err != nil {
		return callcmd.Document{}, err
	}
	result, err := s.Calls.CallJSON(ctx, f, call)
	if !callcmd.HasResult(result, err) {
		return callcmd.Document{}, err
	}
	return callcmd.NewDocument(f.Tool, result), nil
}

// turn waits for the request's turn, unless it is parallel.
func (h *host) turn(ctx context.Context, r *rpc.Request, parallel bool) error {
	if parallel {
		return nil
	}
	return r.Wait(ctx)
}

func (h *host) answer(life, ctx context.Context, r *rpc.Request, p answerParams) (answerResult, error) {
	if p.Parallel {
		r.Leave()
	}
	format, err := provider.LookupCallFormat(p.Format)
	if err != nil {
		return answerResult{}, &cli.UsageError{Err: err}
	}
	response, err := p.data()
	if err != nil {
		return answerResult{}, err
	}
	turn, err := format.Decode(response)
	if err != nil {
		return answerResult{}, &cli.UsageError{Err: err}
	}
	b := r.Arrived.(*binding)
	select {
	case <-b.done:
	case <-ctx.Done():
		return answerResult{}, context.Cause(ctx)
	}
	s, done := h.borrow()
	defer done()
	calls := newAnswered(turn.Calls)
	d := &callcmd.Dialogue{
		Session: s, Format: format, Declared: b.declared, Hold: p.Hold, Parallel: p.Parallel, Line: r,
		Find: func(ctx context.Context, name string, q engine.Query) (engine.Found, error) {
			return h.findTool(engine.WithScope(life, b.declared, nil), ctx, r, s, name, q) // life loads what is found
		},
		Diagnose: func(diags []registry.Diagnostic) { h.diagnose(r, diags, nil) },
		Begin: func(ctx context.Context, i int, call registry.Call) (context.Context, registry.Call) {
			ctx, c := r.Call(ctx, &h.Host, turn.Calls[i].ID())
			call.Progress = c.Progress
			return calls.begin(ctx, i, c), call
		},
		Made: calls.made,
	}
	messages, err := d.Answer(ctx, turn)
	return answerResult{Message: turn.Message(), Messages: cli.OrEmpty(messages), Calls: calls.list}, err
}

// data returns the response or the stream; exactly one must be given.
func (p *answerParams) data() ([]byte, error) {
	if (p.Response == nil) == (p.Stream == "") {
		return nil, &rpc.Error{Code: rpc.CodeInvalidParams,
			Message: `params of answer: either "response" or "stream" must be given`}
	}
	if p.Stream == "" {
		return p.Response, nil
	}
	if frames, err := base64.StdEncoding.DecodeString(p.Stream); err == nil {
		return frames, nil
	}
	return []byte(p.Stream), nil
}

// answered collects the outcomes of a response's calls. It is safe for concurrent use.
type answered struct {
	mu    sync.Mutex
	list  []answeredCall
	calls [][]*rpc.Call // by call; a call that is held begins twice
}

func newAnswered(calls []provider.Call) *answered {
	a := &answered{list: make([]answeredCall, len(calls)), calls: make([][]*rpc.Call, len(calls))}
	for i, c := range calls {
		a.list[i] = answeredCall{ID: c.ID(), Tool: c.Name,
			Params: string(c.Params), Sizes: sizes{Params: len(c.Params)}}
		if jsonx.Valid(c.Params) {
			a.list[i].Params = json.RawMessage(c.Params)
		}
	}
	return a
}

func (a *answered) begin(ctx context.Context, i int, c *rpc.Call) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[i] = append(a.calls[i], c)
	return exec.Observing(ctx, func(r exec.Record) {
		if r.Verdict.Origin == "" { // refused before the decision
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list[i].Decision = &r.Verdict.Decision // the decision on a step is replaced by that on its composite
	})
}

// made records how a call ended.
func (a *answered) made(ctx context.Context, m callcmd.Made) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.list[m.Index]
	if m.Found.Tool != nil {
		c.Tool = m.Found.Tool.Name
	}
	c.OK, c.ErrorCategory, c.Summary = m.Err == nil && !m.Result.IsError, m.Result.ErrorCategory, m.Result.Summary
	if m.Err != nil {
		body := cli.NewErrorBody(ctx, m.Err)
		c.Summary = body.Message
		if body.Exit == cli.ExitParams {
			c.ErrorCategory = registry.ErrorValidation
		}
	}
	c.DurationMs = m.Result.Duration.Milliseconds()
	for _, part := range m.Result.Content {
		c.Sizes.Result += len(part.Text) + len(part.Data)
	}
	for _, call := range a.calls[m.Index] {
		c.AnsweredBy = cmp.Or(c.AnsweredBy, call.AnsweredBy())
	}
}
