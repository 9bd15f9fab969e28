package provider

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Limits on a response.
const (
	MaxResponseBytes = 32 << 20
	MaxCalls         = 1000
)

// Call is a tool call as the model wrote it.
type Call struct {
	// Name is the declared name of the tool.
	Name string
	// Params are the params as the model wrote them. They are not checked and may be
	// invalid JSON.
	Params []byte
	// Fault says why the call must not run, for the model. It is "" if the call may
	// run.
	Fault string
	// Search is set if the call is not for a tool, but a search for tools that the
	// client has to answer. Params are the params of the search.
	Search bool

	id   json.RawMessage // as the model wrote it; nil if there is none
	kind string          // kind of call, if the format has several
	item object          // openai-responses, anthropic: the whole call, for values that the answer must repeat
}

// ID returns the id of the call as the model wrote it, or nil if there is none.
func (c *Call) ID() json.RawMessage { return c.id }

// Answer is the outcome of one call. The zero value is an empty success.
type Answer struct {
	Tool       string // name of the tool that ran, for texts; "" if it is the name in the call
	Content    []registry.Content
	Structured json.RawMessage // used if Content is empty, and by the format mcp
	IsError    bool
	Unknown    bool              // the tool does not exist; IsError is also set
	Tools      []json.RawMessage // for a search, the declarations of the tools that it found
	Typed      bool              // the tool was declared with an output schema, which Structured matches
}

// isTyped reports whether a provider to which the output schema was declared
// receives the structured result instead of the content.
func (a Answer) isTyped() bool { return a.Typed && !a.IsError && !jsonx.IsNull(a.Structured) }

// Turn is one response of a model. Turns are created by Decode.
type Turn struct {
	// Calls are the calls in the order of the response. It may be empty.
	Calls []Call

	message  json.RawMessage // see Message
	format   Format
	siblings bool // gemini: media are sent separately from the responses
	live     bool // gemini: the calls were in a message of the Live API
}

// ErrorAnswer returns an answer that reports an error.
func ErrorAnswer(text string) Answer {
	return Answer{Content: []registry.Content{registry.TextContent(text)}, IsError: true}
}

// cutOff is the fault of the last call if the model ran out of tokens, because its
// params may be incomplete.
const cutOff = "The call was cut off by the limit on output tokens, so it was not run. Repeat it in full, with less text or in smaller steps."
