package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Event is an event for which hooks are run.
type Event string

// The events.
const (
	BeforeCall   Event = "beforeCall"
	AfterCall    Event = "afterCall"
	OnRegister   Event = "onRegister"
	OnDiagnostic Event = "onDiagnostic"
)

// toolMessage describes a tool in the input of a hook.
type toolMessage struct {
	Name       string            `json:"name"`
	Source     string            `json:"source"`
	Server     string            `json:"server,omitempty"`
	ServerTool string            `json:"serverTool,omitempty"`
	Category   registry.Category `json:"category,omitempty"`
}

func newToolMessage(t *registry.Tool) *toolMessage {
	return &toolMessage{t.Name, t.Source, t.Server, t.ServerTool, t.Category}
}

// callerMessage describes the client that makes a call.
type callerMessage struct {
	Name    string   `json:"name,omitempty"` // of the token, stdio or local
	Groups  []string `json:"groups,omitempty"`
	Profile string   `json:"profile,omitempty"`
	Client  string   `json:"client,omitempty"`  // that it reports
	Version string   `json:"version,omitempty"` // likewise
}

func callerOf(ctx context.Context) *callerMessage {
	c := caller.From(ctx)
	if c == nil {
		return nil
	}
	return &callerMessage{c.Name, c.Groups, c.Profile, c.Client, c.Version}
}

// message is the input of a hook.
type message struct {
	Event Event `json:"event"`
	// Caller is set in a call that a client of serve or a host of rpc makes.
	Caller      *callerMessage        `json:"caller,omitempty"`
	Tool        *toolMessage          `json:"tool,omitempty"`
	Params      json.RawMessage       `json:"params,omitempty"` // as the tool is declared
	Wire        json.RawMessage       `json:"wire,omitempty"`   // as its source gets them, if an override changes them
	Result      *resultMessage        `json:"result,omitempty"`
	Tools       []toolMessage         `json:"tools,omitempty"`
	Diagnostics []registry.Diagnostic `json:"diagnostics,omitempty"`
}

// aboutCall returns the input of a hook about a call.
func aboutCall(ctx context.Context, t *registry.Tool, call registry.Call) (message, error) {
	m := message{Caller: callerOf(ctx), Tool: newToolMessage(t), Params: call.Params}
	if t.Wire != nil {
		sent, err := t.Wire(call)
		if err != nil {
			return m, fmt.Errorf("translating the params: %w", err)
		}
		m.Wire = sent.Params
	}
	return m, nil
}

// answer is the output of a hook. An empty output is the zero value.
type answer struct {
	Decision string          `json:"decision"` // "", "allow", "deny" or, for beforeCall, "ask"
	Reason   string          `json:"reason"`
	Params   json.RawMessage `json:"params"` // only for beforeCall
	Result   json.RawMessage `json:"result"` // only for afterCall
}

// parseAnswer is strict, because an invalid answer must not be treated as an empty
// one.
func parseAnswer(data []byte) (answer, error) {
	var a answer
	data = bytes.TrimSpace(text.WithoutMark(data))
	if len(data) == 0 {
		return a, nil
	}
	if err := registry.CheckJSON(data); err != nil {
		return a, fmt.Errorf("its answer is not valid JSON: %w", err)
	}
	if err := jsonx.DecodeKnown(data, &a); err != nil {
		return a, fmt.Errorf("its answer is invalid: %w", err)
	}
	if data[0] != '{' || !slices.Contains([]string{"", "allow", "ask", "deny"}, a.Decision) {
		return a, errors.New(`its answer is invalid: expected an object, with "allow", "ask" or "deny" as decision`)
	}
	if string(a.Params) == "null" {
		a.Params = nil
	}
	if string(a.Result) == "null" {
		a.Result = nil
	}
	return a, nil
}

// resultMessage is a result in the input of a hook, with the field names of `call
// --json`.
type resultMessage struct {
	OK            bool                   `json:"ok"`
	IsError       bool                   `json:"isError,omitempty"`
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty"`
	LLMContent    []registry.Content     `json:"llmContent"`
	Structured    json.RawMessage        `json:"structuredContent,omitempty"`
	DurationMs    int64                  `json:"durationMs"`
	Truncated     bool                   `json:"truncated,omitempty"`
}

func newResultMessage(r registry.Result) *resultMessage {
	content := r.Content
	if content == nil {
		content = []registry.Content{}
	}
	return &resultMessage{OK: !r.IsError, IsError: r.IsError, ErrorCategory: r.ErrorCategory, LLMContent: content,
		Structured: r.Structured, DurationMs: r.Duration.Milliseconds(), Truncated: r.Truncated}
}

// replace returns the result from a hook's answer. From the tool's own result it
// keeps only the facts about the run, because text that the hook removed must not
// remain in the display or in a location.
func replace(old registry.Result, raw json.RawMessage) (registry.Result, error) {
	var in struct {
		LLMContent json.RawMessage `json:"llmContent"`
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := jsonx.DecodeKnown(raw, &in); err != nil {
		return registry.Result{},
			fmt.Errorf("its result is invalid: %w; it takes llmContent, isError and structuredContent", err)
	}
	r := registry.Result{
		IsError: in.IsError, Structured: in.Structured, Duration: old.Duration, Cached: old.Cached,
		Attempts: old.Attempts, Confined: old.Confined,
	}
	if r.IsError {
		r.ErrorCategory = cmp.Or(old.ErrorCategory, registry.ErrorExecution)
	}
	var err error
	if r.Content, err = registry.ParseContent(in.LLMContent); err != nil {
		return r, fmt.Errorf("its result needs llmContent: %w", err)
	}
	return r, nil
}
