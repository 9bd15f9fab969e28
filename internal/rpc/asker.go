package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
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
	return confirmer{}
}

// Approve asks whether a call may run.
type Approve struct {
	About
	Tool      string               `json:"tool"`
	Source    string               `json:"source"`
	Server    string               `json:"server,omitempty"`
	Kind      registry.PreviewKind `json:"kind" jsonschema:"edit, exec, mcp or info"`
	Params    json.RawMessage      `json:"params"`
	Text      string               `json:"text" jsonschema:"the question as a terminal shows it"`
	Diff      string               `json:"diff,omitempty" jsonschema:"of an edit: the unified diff"`
	Command   string               `json:"command,omitempty" jsonschema:"of exec: the command line"`
	Directory string               `json:"directory,omitempty" jsonschema:"of exec: where it runs, relative to the workspace"`
	Choices   []string             `json:"choices" jsonschema:"the possible answers: yes, always, always-server, no"`
	Covers    map[string]string    `json:"covers" jsonschema:"what would be allowed from now on, for each answer that is remembered"`
	Reason    string               `json:"reason" jsonschema:"why it is asked"`
	Origin    string               `json:"origin" jsonschema:"the rule, setting or default that asks"`
}

// Approval is the answer to [Approve].
type Approval struct {
	Choice  string  `json:"choice"`
	Reason  string  `json:"reason,omitempty" jsonschema:"with no: for the model"`
	Content *string `json:"content,omitempty" jsonschema:"with yes to an edit: the whole file instead of the proposed one"`
}

// choices are the answers of a host to a question about a call, in the order in which they
// are offered, with the choices that they stand for.
var choices = []struct {
	word string
	any  []exec.Choice
}{
	{"yes", []exec.Choice{exec.Yes}},
	{"always", []exec.Choice{exec.Always, exec.AlwaysTool}},
	{"always-server", []exec.Choice{exec.AlwaysServer}},
	{"no", []exec.Choice{exec.No}},
}

// choiceOf returns the choice that a word stands for in a question; false if it is none.
func choiceOf(q exec.Question, word string) (exec.Choice, bool) {
	for _, c := range choices {
		for _, choice := range c.any {
			if c.word == word && slices.Contains(q.Choices, choice) {
				return choice, true
			}
		}
	}
	return exec.No, false
}

// question returns the question about a call for the host.
func (c *Call) question(q exec.Question) Approve {
	out := Approve{About: c.about(), Tool: q.Tool.Name, Source: q.Tool.Source, Server: q.Tool.Server, Kind: cmp.Or(q.Preview.Kind, registry.PreviewInfo),
		Params: q.Call.Params, Text: ui.QuestionText(q), Diff: q.Preview.Diff, Command: q.Preview.Command, Covers: map[string]string{}, Reason: q.Verdict.Reason, Origin: q.Verdict.Origin}
	if out.Kind == registry.PreviewExec {
		out.Directory = cmp.Or(q.Preview.Directory, ".")
	}
	covers := ui.Covers(q)
	for _, offered := range choices {
		choice, ok := choiceOf(q, offered.word)
		if !ok {
			continue
		}
		out.Choices = append(out.Choices, offered.word)
		if text := covers[choice]; text != "" {
			out.Covers[offered.word] = text
		}
	}
	return out
}

// edit is a file that the host has accepted with content of its own.
type edit struct {
	file, original, content string
	asked                   bool // the executor has asked about it
}

// accepted reports whether the question is whether to write what the host has accepted just
// before. The tool may end the last line and each line as the file does.
func (c *Call) accepted(q exec.Question) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.edit
	if e == nil || e.asked {
		return false
	}
	e.asked = true
	lines := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	return e.file == q.Preview.FileName && e.original == q.Preview.OriginalContent && lines(e.content) == lines(q.Preview.NewContent)
}

type confirmer struct{}

// Turn implements [exec.Confirmer]. The host may show several questions at once.
func (confirmer) Turn() func() { return func() {} }

// Confirm implements [exec.Confirmer].
func (confirmer) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	c := callOf(caller.From(ctx))
	if c == nil {
		return exec.Answer{}, errors.New("the question belongs to no call of the host")
	}
	if c.accepted(q) {
		return exec.Answer{Choice: exec.Yes}, nil
	}
	raw, err := c.request.server.ask(ctx, "approve", c.question(q))
	if cause := context.Cause(ctx); cause != nil {
		return exec.Answer{}, cause
	}
	if err != nil {
		return exec.Answer{Reason: err.Error()}, nil
	}
	var a Approval
	if err := decode(raw, members(reflect.TypeFor[Approval]()), &a); err != nil {
		return exec.Answer{Reason: "the host's answer is not valid: " + err.Error()}, nil
	}
	choice, ok := choiceOf(q, a.Choice)
	switch {
	case !ok:
		return exec.Answer{Reason: "the host's answer is none of those offered"}, nil
	case a.Content != nil && (choice != exec.Yes || !slices.Contains(q.Choices, exec.Edit)):
		return exec.Answer{Reason: "the host's answer has content, which belongs to yes to an edit alone"}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
	repeated := c.edit != nil && a.Content != nil && c.edit.file == q.Preview.FileName && c.edit.content == *a.Content // it agrees with what became of its edit
	if a.Content != nil && *a.Content != q.Preview.NewContent && !repeated {
		c.edit = &edit{file: q.Preview.FileName, original: q.Preview.OriginalContent, content: *a.Content}
		return exec.Answer{Choice: exec.Edit, Content: *a.Content}, nil
	}
	return exec.Answer{Choice: choice, Said: a.Reason}, nil
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
	if e.Done != nil { // it needs no answer if the server reports that the person has finished
		done, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-e.Done:
				cancel(errFinished)
			case <-done.Done():
			}
		}()
		ctx = done
	}
	params, err := jsonx.Marshal(elicitParams{e.Mode, e.Message, e.Schema, e.URL, e.ID})
	if err != nil {
		return ask.Answer{Action: "cancel"}, err
	}
	raw, err := c.request.server.ask(ctx, "elicit", Elicit{c.about(), e.Server, params})
	if errors.Is(err, errFinished) {
		return ask.Answer{Action: "accept"}, nil
	}
	var r ElicitResult
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return ask.Answer{Action: cmp.Or(r.Action, "cancel"), Content: r.Content}, err
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
	raw, err := c.request.server.ask(ctx, "sample", Sample{c.about(), q.Server, q.Params})
	if err == nil && jsonx.KindOf(raw) != jsonx.Object {
		err = errors.New("the host's answer is not an object")
	}
	return raw, err
}
