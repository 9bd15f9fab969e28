package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/registry"
)

// Function is a function of the host that models and others may call as a tool.
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

// RunCancel tells the host that nobody waits for a call of its function any more.
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

// Set replaces the functions. An error says which of them cannot be a tool; nothing is then
// replaced.
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

// callHost asks the host to call one of its functions. Meanwhile the host may make requests of its own:
// they do not wait for the call.
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
