package dialogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

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
}

// Answer is the outcome of one call. The zero value is an empty success.
type Answer struct {
	Content    []registry.Content
	Structured json.RawMessage // used where Content is empty, and by format mcp
	IsError    bool
	Unknown    bool // there is no such tool; IsError is set too
}

// Turn is one response of a model. Turns come from Decode.
type Turn struct {
	// Calls are the calls in the order of the response; none where the model
	// called nothing.
	Calls []Call

	format   Format
	siblings bool // gemini: media stand beside the responses, not in them
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

// Formats returns every format. The slice is the caller's.
func Formats() []Format {
	return []Format{
		{"openai", decodeOpenAI, replyOpenAI},
		{"openai-responses", decodeResponses, replyResponses},
		{"anthropic", decodeAnthropic, replyAnthropic},
		{"bedrock", decodeBedrock, replyBedrock},
		{"mistral", decodeMistral, replyMistral},
		{"gemini", decodeGemini, replyGemini},
		{"mcp", decodeMCP, replyMCP},
	}
}

// Lookup finds a format by its name.
func Lookup(name string) (Format, error) {
	names := make([]string, 0, 7)
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("no format %q for a model's calls; known are %s", name, strings.Join(names, ", "))
}

// Decode reads a response: the whole answer of the API, the message in it, or
// the bare calls. A response without calls is a Turn without calls. The error
// is an *[UnreadableError].
func (f Format) Decode(data []byte) (*Turn, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	switch {
	case len(data) == 0:
		return nil, f.unreadable("it is empty")
	case len(data) > MaxResponseBytes:
		return nil, f.unreadable("it is over the limit of %d bytes", MaxResponseBytes)
	case bytes.HasPrefix(data, []byte("data:")), bytes.HasPrefix(data, []byte("event:")):
		return nil, f.unreadable("it is a stream of events; ask the API for a response that is not streamed, or put the events together first")
	}
	if err := registry.CheckJSON(data); err != nil {
		return nil, f.unreadable("it is not valid JSON: %s", err.Message)
	}
	t := &Turn{format: f}
	if err := f.decode(t, data); err != nil {
		if err == errUnrecognised {
			return nil, f.unrecognised(data)
		}
		return nil, f.unreadable("%s", err)
	}
	if len(t.Calls) == 0 {
		if other := f.looksLike(data); other != "" { // a text of ours, calls of theirs
			return nil, f.unreadable("no call of this format is in it; it looks like format %s", other)
		}
	}
	if len(t.Calls) > MaxCalls {
		return nil, f.unreadable("it holds %d calls, %d are the limit", len(t.Calls), MaxCalls)
	}
	return t, nil
}

// Reply returns the messages to append to the conversation, behind the model's
// own: none where there was no call. answers has one element for each of Calls,
// in their order; a missing one becomes an error result.
func (t *Turn) Reply(answers []Answer) []any {
	if len(t.Calls) == 0 {
		return nil
	}
	all := make([]Answer, len(t.Calls))
	for i := range all {
		if i < len(answers) {
			all[i] = answers[i]
		} else {
			all[i] = ErrorAnswer("the call was not run")
		}
	}
	return t.format.reply(t, all)
}

// ErrorAnswer is an answer that says what went wrong.
func ErrorAnswer(text string) Answer {
	return Answer{Content: []registry.Content{registry.TextContent(text)}, IsError: true}
}

// cutOff is the fault of a call behind which the model ran out of tokens: its
// params may be a part of what was meant.
const cutOff = "The call was cut off by the limit on output tokens, so it was not run. Repeat it whole, with less text or in smaller steps."
