package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// Client is the name and version of the host's program.
type Client struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Capabilities say which questions the host answers.
type Capabilities struct {
	Approve bool `json:"approve,omitempty" jsonschema:"whether calls may run"`
	Elicit  bool `json:"elicit,omitempty" jsonschema:"forms and addresses of MCP servers"`
	Sample  bool `json:"sample,omitempty" jsonschema:"questions of MCP servers to a model"`
}

// Host is what a host has reported about itself.
type Host struct {
	Client       Client
	Capabilities Capabilities
}

// Asker returns the asker of a session that asks the host: an [engine.Sampler] if it answers
// sampling requests.
func (h *Host) Asker() engine.Asker {
	if h.Capabilities.Sample {
		return sampler{asker{h}}
	}
	return asker{h}
}

type asker struct{ host *Host }

// Confirmer implements [engine.Asker].
func (a asker) Confirmer() exec.Confirmer {
	if !a.host.Capabilities.Approve {
		return nil
	}
	return a
}

// Approve asks whether a call may run.
type Approve struct {
	About
	exec.Prompt
}

// Turn implements [exec.Confirmer]. The host may show several questions at once.
func (asker) Turn() func() { return func() {} }

// Confirm implements [exec.Confirmer].
func (asker) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	c := callOf(caller.From(ctx))
	if c == nil {
		return exec.Answer{}, errors.New("the question belongs to no call of the host")
	}
	raw, err := c.request.ask(ctx, "approve", Approve{c.about(), asking.Prompt(q)})
	if cause := context.Cause(ctx); cause != nil {
		return exec.Answer{}, cause
	}
	if err != nil {
		return exec.Answer{Reason: err.Error()}, nil
	}
	var reply exec.Reply
	err = decode(raw, members(reflect.TypeFor[exec.Reply]()), &reply)
	var answer exec.Answer
	if err == nil {
		answer, err = reply.Answer(&q)
	}
	if err != nil {
		return exec.Answer{Reason: "the host's answer is not valid: " + err.Error()}, nil
	}
	c.asked.Store(true)
	return answer, nil
}

// Elicit asks the host's user a question of an MCP server.
type Elicit struct {
	About
	Server string          `json:"server"`
	Params json.RawMessage `json:"params" jsonschema:"those of MCP's elicitation/create"`
}

// ElicitResult is the result of MCP's elicitation/create.
type ElicitResult struct {
	Action  string          `json:"action" jsonschema:"accept, decline or cancel"`
	Content json.RawMessage `json:"content,omitempty"`
}

// elicitParams are the params of MCP's elicitation/create.
type elicitParams struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
	URL             string          `json:"url,omitempty"`
	ElicitationID   string          `json:"elicitationId,omitempty"`
}

// Elicit implements [engine.Asker].
func (a asker) Elicit(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	c := callOf(caller.From(ctx))
	switch {
	case !a.host.Capabilities.Elicit:
		return ask.Answer{}, &engine.NobodyError{Reason: "the host does not answer questions of servers"}
	case c == nil:
		return ask.Answer{}, &engine.NobodyError{Reason: "it does not belong to a call of the host"}
	}
	// It needs no answer if the server reports that the person has finished.
	ctx, stop := timing.Until(ctx, e.Done, errFinished)
	defer stop()
	params, err := jsonx.Marshal(elicitParams{e.Mode, e.Message, e.Schema, e.URL, e.ID})
	if err != nil {
		return ask.Answer{Action: ask.Cancel}, err
	}
	raw, err := c.request.ask(ctx, "elicit", Elicit{c.about(), e.Server, params})
	if errors.Is(err, errFinished) {
		return ask.Answer{Action: ask.Accept}, nil
	}
	var r ElicitResult
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return ask.Answer{Action: cmp.Or(r.Action, ask.Cancel), Content: r.Content}, err
}

var errFinished = errors.New("the server reports that the person has finished")

// Sample asks the host's model a question of an MCP server.
type Sample struct {
	About
	Server string          `json:"server"`
	Params json.RawMessage `json:"params" jsonschema:"those of MCP's sampling/createMessage"`
}

// sampler is an asker that answers sampling requests too.
type sampler struct{ asker }

// Sample implements [engine.Sampler].
func (sampler) Sample(ctx context.Context, q ask.Sampling) (json.RawMessage, error) {
	c := callOf(caller.From(ctx))
	if c == nil {
		return nil, errors.New("it does not belong to a call of the host")
	}
	raw, err := c.request.ask(ctx, "sample", Sample{c.about(), q.Server, q.Params})
	if err == nil && jsonx.KindOf(raw) != jsonx.Object {
		err = errors.New("the host's answer is not an object")
	}
	return raw, err
}

// Function is a function of the host that can be called as a tool.
type Function struct {
	Name         string            `json:"name"`
	Description  string            `json:"description,omitempty"`
	InputSchema  json.RawMessage   `json:"inputSchema,omitempty" jsonschema:"JSON Schema of the params, an object; absent means none"`
	OutputSchema json.RawMessage   `json:"outputSchema,omitempty" jsonschema:"JSON Schema of structured results"`
	Category     registry.Category `json:"category,omitempty" jsonschema:"read, write, command, network or other; default other, which is asked about"`
	Annotations  json.RawMessage   `json:"annotations,omitempty" jsonschema:"as in MCP"`
}

// Run asks the host to call a function that it provides.
type Run struct {
	About
	Tool   string          `json:"tool" jsonschema:"the name under which the host provides it"`
	Params json.RawMessage `json:"params" jsonschema:"an object that the schema allows"`
}

// RunCancel tells the host that the result of a call of its function is no longer needed.
type RunCancel struct {
	CallID json.RawMessage `json:"callId"`
}

// Provided is the source of the functions that a host provides. The zero value has none. It is
// safe for concurrent use.
type Provided struct {
	mu        sync.Mutex
	client    Client
	functions []Function
}

// hostTimeout is the time limit of a call of a host's function, unless toolOptions sets another.
const hostTimeout = 10 * time.Minute

// Set replaces the functions. The error says which of them cannot be a tool; in this case nothing
// is replaced.
func (p *Provided) Set(client Client, functions []Function) error {
	var names []string
	for i, f := range functions {
		switch {
		case f.Name == "":
			return fmt.Errorf("tools[%d] has no name", i)
		case registry.ValidName(f.Name) != f.Name:
			return fmt.Errorf("tools[%d]: the name %q is not valid: it must have at most 63 letters, digits, and _ . -",
				i, f.Name)
		case slices.Contains(names, f.Name):
			return fmt.Errorf("tools[%d]: the name %q is given twice", i, f.Name)
		}
		names = append(names, f.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.functions = client, functions
	return nil
}

// Name implements [registry.Source].
func (p *Provided) Name() string { return registry.SourceHost }

// Discover implements [registry.Source].
func (p *Provided) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	identity, err := jsonx.Marshal(map[string]string{"host": p.client.Name})
	if err != nil {
		return nil, nil, err
	}
	tools := make([]registry.Tool, 0, len(p.functions))
	for _, f := range p.functions {
		t := registry.Tool{
			Definition: registry.Definition{Name: f.Name, Description: f.Description,
				Source: registry.SourceHost, Category: f.Category,
				InputSchema: f.InputSchema, OutputSchema: f.OutputSchema, Annotations: f.Annotations},
			Identity: identity}
		t.Timeout = hostTimeout
		output := registry.NewOutputValidator(f.OutputSchema)
		t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			r, err := callHost(ctx, f.Name, call)
			return output.CheckResult(ctx, r), err
		}
		t.Category = cmp.Or(t.Category, registry.CategoryOther)
		tools = append(tools, t)
	}
	return tools, nil, nil
}

// callHost asks the host to call one of its functions. Meanwhile the host may make its own
// requests, which do not wait for the call.
func callHost(ctx context.Context, name string, call registry.Call) (registry.Result, error) {
	c := callOf(caller.From(ctx))
	if c == nil {
		return registry.Result{}, errors.New("the host is not asked: the call does not belong to one of its requests")
	}
	defer c.request.place.lend()()
	raw, err := c.request.ask(ctx, "run", Run{c.about(), name, call.Params})
	if cause := context.Cause(ctx); cause != nil {
		c.request.server.tryNotify(cancelMethod, RunCancel{c.id})
		return registry.Result{}, cause
	}
	if failed, ok := errors.AsType[*Error](err); ok { // the function failed, as far as the host knows
		r := registry.TextResult(failed.Message)
		r.IsError, r.ErrorCategory = true, registry.ErrorExecution
		return r, nil
	}
	if err != nil {
		return registry.Result{}, err
	}
	return hostResult(name, raw), nil
}

// hostResult reads what a function returned: content as in MCP, a text, or any other JSON, which
// is structured content.
func hostResult(name string, raw json.RawMessage) registry.Result {
	if jsonx.Get(raw, "content") != nil {
		return content.Result(name, raw)
	}
	text, isText := jsonx.Text(jsonx.Get(raw, "text"))
	r := registry.TextResult(text)
	wrapped, err := jsonx.Marshal(map[string]any{"content": []any{}, "structuredContent": raw})
	if !isText && raw != nil && err == nil {
		r = content.Result(name, wrapped)
	}
	if string(jsonx.Get(raw, "isError")) == "true" {
		r.IsError, r.ErrorCategory = true, registry.ErrorExecution
	}
	return r
}
