package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// Client is the program that is the host.
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

// Host is what a host has said about itself.
type Host struct {
	Client       Client
	Capabilities Capabilities
}

// Asker returns what asks the host, as the asker of a session: an [engine.Sampler] if it
// answers sampling requests.
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
