package dialogue

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Limits on one response.
const (
	MaxResponseBytes = registry.MaxParamsBytes
	MaxCalls         = 1000
)

// Call is one tool call as the model wrote it.
type Call struct {
	// Name is the tool's name as it was declared.
	Name string
	// Params is what the model gave as params. Nothing of it is checked yet; it
	// may be no JSON at all.
	Params []byte
	// Fault says why the call must not be run, in words for the model; "" where
	// it may.
	Fault string

	id   json.RawMessage // as the model wrote it, nil where there is none
	kind string          // of call, where a format has several
	item object          // openai-responses, anthropic: the call whole, for what is to be given back
}

// Answer is the outcome of one call. The zero value is an empty success.
type Answer struct {
	Content    []registry.Content
	Structured json.RawMessage // used where Content is empty, and by format mcp
	IsError    bool
	Unknown    bool // there is no such tool; IsError is set too
	Typed      bool // the tool was declared with an output schema, which is that of Structured
}

// isTyped reports whether a provider that was given the output schema is to get
// what follows it, in place of the content.
func (a Answer) isTyped() bool { return a.Typed && !a.IsError && !jsonx.IsNull(a.Structured) }

// Turn is one response of a model. Turns come from Decode.
type Turn struct {
	// Calls are the calls in the order of the response; none where the model
	// called nothing.
	Calls []Call

	format   Format
	siblings bool // gemini: media stand beside the responses, not in them
	live     bool // gemini: the calls came in a message of the Live API
}

// Format is one provider's form of calls and results. Formats come from
// [Formats] or [Lookup].
type Format struct {
	// Name is what --format takes. It is the name of the format of declarations
	// that belongs to it.
	Name string

	decode func(*Turn, json.RawMessage) error
	reply  func(*Turn, []Answer) []any
}

// ErrorAnswer is an answer that says what went wrong.
func ErrorAnswer(text string) Answer {
	return Answer{Content: []registry.Content{registry.TextContent(text)}, IsError: true}
}

// cutOff is the fault of a call behind which the model ran out of tokens: its
// params may be a part of what was meant.
const cutOff = "The call was cut off by the limit on output tokens, so it was not run. Repeat it in full, with less text or in smaller steps."
