package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// Calls makes the calls of a session. It is safe for concurrent use.
type Calls struct {
	gate    *gate
	tools   *Tools
	scripts *Scripts
	outputs sync.Map // validators by output schema
}

// Policy returns the policy for the calls of a registry's tools. The error is
// a *settings.InputError.
func (c *Calls) Policy(reg *registry.Registry) (*policy.Policy, error) {
	return c.gate.policies.policy(reg)
}

// Call calls a tool that [Tools.Find] returned, subject to policy, hooks and the rest
// of the middleware. It returns the errors of [exec.Executor.Execute], or a *settings.InputError
// if the rules are invalid.
func (c *Calls) Call(ctx context.Context, f Found, call registry.Call) (registry.Result, error) {
	call.Steps = c.scripts
	return c.gate.call(ctx, f, call, nil)
}

// CallJSON is like [Calls.Call] with params as a model or a script sent them.
func (c *Calls) CallJSON(ctx context.Context, f Found, call registry.Call) (registry.Result, error) {
	return c.CallHeld(ctx, f, call, nil)
}

// Hold asks for confirmation of a call as [Calls.CallJSON] does, without making it. copy is the
// number of equal calls that are held before this one.
func (c *Calls) Hold(ctx context.Context, f Found, call registry.Call, copy int) (*exec.Held, error) {
	params, err := registry.DecodeParams(f.Tool.Name, call.Params)
	if err != nil || f.reach != nil {
		return &exec.Held{}, nil // it needs no answer
	}
	call.Params = Restored(f.Tool, params)
	x, err := c.gate.executor(ctx, f)
	if err != nil {
		return nil, err
	}
	return x.Hold(ctx, f.Tool, call, copy)
}

// Claim takes the stored answers of held calls, so that no other call gets them. If another call
// was faster, it takes none and returns false.
func (c *Calls) Claim(ctx context.Context, held ...*exec.Held) (bool, error) {
	var ids []string
	for _, h := range held {
		ids = append(ids, h.Claims...)
	}
	if len(ids) == 0 {
		return true, nil
	}
	x, err := c.gate.executor(ctx, Found{})
	return err == nil && x.Unattended.Claim(ctx, ids...), err
}

// CallHeld makes a call that was held, with the answers that were collected. A nil h means that the
// call was not held.
func (c *Calls) CallHeld(ctx context.Context, f Found, call registry.Call, h *exec.Held) (registry.Result, error) {
	params, err := registry.DecodeParams(f.Tool.Name, call.Params)
	if err != nil {
		return registry.Result{}, c.Refused(ctx, f.Tool, err)
	}
	call.Params, call.Steps = params, c.scripts
	return c.gate.call(ctx, f, call, h)
}

// Answer makes the result of a call fit for a model: it removes damaged media, gives an error
// without content a text, because APIs refuse such an error, and shortens the rest to limits.answer.
// The result names the file that has what was left out.
func (c *Calls) Answer(ctx context.Context, t *registry.Tool, r registry.Result) registry.Result {
	r.Content = registry.Sendable(r.Content)
	if r.IsError && len(r.Content) == 0 {
		r.Content = []registry.Content{registry.TextContent(cmp.Or(r.Summary, "the call failed and gave no reason"))}
	}
	return c.gate.runs.Answer(ctx, t, r)
}

// AnswerMCP is like Answer for an MCP client. If the tool declares an output schema, the
// protocol allows a result without structured content that matches it only as an error, and
// clients refuse anything else. So such a result becomes an error, whose text says that the
// call has succeeded.
func (c *Calls) AnswerMCP(ctx context.Context, t *registry.Tool, r registry.Result) registry.Result {
	answer := c.Answer(ctx, t, r)
	misfit := c.misfit(ctx, t, r, answer)
	if misfit == "" {
		return answer
	}
	answer.Structured = nil
	if !answer.IsError {
		answer.IsError = true
		answer.Content = append(slices.Clone(answer.Content), registry.TextContent("[The call succeeded; do not repeat it. "+
			"It is marked as an error only because "+misfit+".]"))
	}
	return answer
}

// misfit says why the answer of a call does not match the output schema that is declared to MCP
// clients. It returns "" if it matches.
func (c *Calls) misfit(ctx context.Context, t *registry.Tool, r, answer registry.Result) string {
	declared := t.MCPOutputSchema()
	known, ok := c.outputs.Load(string(declared))
	if !ok {
		known, _ = c.outputs.LoadOrStore(string(declared), registry.NewOutputValidator(declared))
	}
	output := known.(*registry.Validator)
	if !output.Judges(ctx) {
		return ""
	}
	switch {
	case r.Structured == nil:
		return "it has no structured result"
	case answer.Structured == nil:
		return "its structured result is too long to be sent (limits.answer)"
	}
	violations, err := output.Validate(ctx, answer.Structured)
	if err == nil && len(violations) == 0 {
		return ""
	}
	return "its structured result does not match the tool's output schema"
}

// Journal returns the journal of a model's response that has these calls.
func (c *Calls) Journal(ctx context.Context, calls []provider.Call) *Journal {
	ids := make([]json.RawMessage, len(calls))
	for i := range calls {
		ids[i] = calls[i].ID()
	}
	return c.scripts.journal(ctx, "response", calls, ids)
}

// Refused logs a call that was refused without a policy decision because its params
// could not be read. It returns err.
func (c *Calls) Refused(ctx context.Context, t *registry.Tool, err error) error {
	return c.gate.audit.Refused(ctx, t, err)
}

// Resolve returns the tool to call, its name and its params. They are returned unchanged unless f
// is call_tool. In that case they are those of the tool that the params of call_tool name, and the
// call is made, logged and judged as a call of that tool. It returns the errors of [Tools.Find], or
// a *registry.ArgsError if the params of call_tool are invalid.
func (c *Calls) Resolve(ctx context.Context, f Found, name string,
	raw json.RawMessage) (Found, string, json.RawMessage, error) {
	if !f.isCallTool() {
		return f, name, raw, nil
	}
	inner, params, err := f.called(ctx, raw)
	if err != nil {
		return f, name, raw, c.Refused(ctx, f.Tool, err)
	}
	found, err := c.tools.Find(ctx, inner, Query{Call: true, Format: f.reach.format, Reach: true, Scope: true})
	if errors.Is(err, registry.ErrNotFound) && found.Tool != nil { // it is not in the scope
		return f, name, raw, c.Refused(ctx, f.Tool, err)
	}
	if err == nil && found.isCallTool() {
		err = c.Refused(ctx, f.Tool, registry.Invalid(f.Tool.Name, "/name",
			"%s cannot call itself; give the name of the tool to call", f.Tool.Name))
	}
	return found, inner, params, err
}

// SearchDeclarations answers a search that a provider leaves to its client. The answer has the
// declarations of the tools found, except those that are always declared. The search is checked and
// logged as a call of search_tools. It also returns the registry. The error is a
// *registry.ArgsError if raw is invalid, a *settings.InputError, or the cause of ctx.
func (c *Calls) SearchDeclarations(ctx context.Context, format provider.Format, raw []byte) (
	whole *registry.Registry, tools []json.RawMessage, err error) {
	if whole, err = c.tools.All(ctx); err != nil {
		return whole, nil, err
	}
	f, _, err := c.tools.offers.reaching(ctx, whole, deferred.SearchTools, format.Name)
	if err != nil {
		return whole, nil, err
	}
	f.Tool.Run = func(ctx context.Context, call registry.Call) (_ registry.Result, err error) {
		tools, err = c.tools.offers.declarations(ctx, f, format, call.Params)
		return registry.Result{}, err
	}
	_, err = c.CallJSON(ctx, f, registry.Call{Tool: f.Tool.Name, Params: raw})
	return whole, tools, err
}

// Offer is a prompt or a resource of a server.
type Offer policy.Offer

// String returns the kind and the quoted name of the offer.
func (o Offer) String() string {
	if o.Prompt != "" {
		return fmt.Sprintf("prompt %q", cmp.Or(o.Name, o.Prompt))
	}
	return fmt.Sprintf("resource %q", o.URI)
}

// Tool returns the tool that stands for a request of an MCP method for the offer, in questions and
// in the log.
func (o Offer) Tool(method string) *registry.Tool {
	t := &registry.Tool{Definition: registry.Definition{Name: registry.ValidName(o.Server + "__" + method),
		Category: registry.CategoryRead, Source: registry.MCPPrefix + o.Server, Server: o.Server, ServerTool: method}}
	t.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
		return registry.Preview{Kind: registry.PreviewInfo,
			Title: fmt.Sprintf("Server %q is asked for the %s.", o.Server, o)}, nil
	}
	return t
}

// Use calls do to use a prompt or a resource, subject to the rules. If a rule asks, the person is
// asked as about a call of t, the [Offer.Tool] of the request, with its params. It returns the
// errors of [Calls.Call] and of do.
func (c *Calls) Use(ctx context.Context, t *registry.Tool, o Offer, params any, do func(context.Context) error) error {
	p, err := c.gate.policies.policy(nil)
	if err != nil {
		return err
	}
	decide := func(ctx context.Context, _ *registry.Tool, _ registry.Call) policy.Verdict {
		return c.gate.policies.decide(p, nil,
			func(p *policy.Policy) policy.Verdict { return p.DecideOffer(ctx, policy.Offer(o)) })
	}
	if decide(ctx, t, registry.Call{}).Decision == policy.Allow {
		return do(ctx)
	}
	x, err := c.gate.requester(ctx, decide)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	t.Run = func(ctx context.Context, _ registry.Call) (registry.Result, error) { return registry.Result{}, do(ctx) }
	_, err = x.Execute(ctx, t, registry.Call{Tool: t.Name, Params: raw, Last: true})
	return err
}

// OfferRules decide which prompts and resources clients may use. They are safe for concurrent
// use.
type OfferRules struct {
	policy *policy.Policy
	audit  *record.Calls
}

// OfferRules returns the rules for what servers offer besides a registry's tools. The error is
// a *settings.InputError.
func (c *Calls) OfferRules(reg *registry.Registry) (*OfferRules, error) {
	p, err := c.gate.policies.policy(reg)
	return &OfferRules{p, c.gate.audit}, err
}

// OfferDenied says why the caller may not use a prompt or a resource.
type OfferDenied struct {
	Offer
	Reason string
	Origin string // of the rule
}

func (e *OfferDenied) Error() string {
	return fmt.Sprintf("%s is not allowed: %s (%s)", e.Offer, e.Reason, e.Origin)
}

// Check returns an [*OfferDenied] if the caller of ctx may not use a prompt or a resource.
func (r *OfferRules) Check(ctx context.Context, o Offer) error {
	v := r.policy.DecideOffer(ctx, policy.Offer(o))
	if v.Decision != policy.Deny {
		return nil
	}
	return &OfferDenied{o, v.Reason, v.Origin}
}

// HasCallers reports whether a rule is about certain callers, so that lists differ by caller.
func (r *OfferRules) HasCallers() bool { return r.policy.HasCallers() }

// DeniesTool reports whether every call of a tool that the caller of ctx makes is denied.
func (r *OfferRules) DeniesTool(ctx context.Context, t *registry.Tool) bool {
	_, denied := r.policy.DeniesAll(ctx, t)
	return denied
}

// Log adds a denied request of an MCP method to the audit log.
func (r *OfferRules) Log(ctx context.Context, method string, d *OfferDenied) {
	r.audit.Denied(ctx, d.Tool(method), policy.Offer(d.Offer), d.Reason, d.Origin)
}
