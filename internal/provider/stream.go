package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// A response may be a stream of events, as it was received: server-sent events, for Gemini
// also a JSON array of chunks, and for Bedrock JSON Lines or binary frames. The events are
// joined to one response, as the providers' SDKs do, of which only what matters for calls is
// kept. A stream that ends before the response does is an error, since calls may be missing.

// errUnfinished reports that a stream has no event that ends the response.
var errUnfinished = errors.New("the stream ended before the response was finished; request the response again")

// splitStream returns the events of a stream; nil if the data is not a stream.
func (f Format) splitStream(data []byte) ([]json.RawMessage, error) {
	var events []json.RawMessage
	switch {
	case f.join == nil:
		return nil, nil
	case isSSE(data):
		events = splitSSE(data)
	case f.Name == "bedrock" && bytes.HasPrefix(data, []byte{0}): // the first byte of a length
		var err error
		if events, err = splitFrames(data); err != nil {
			return nil, err
		}
	case f.Name == "bedrock" && isBedrockEvent(data):
		events = splitLines(data)
	case f.Name == "gemini" && isGeminiChunks(data):
		events, _ = jsonx.Elements(data)
	default:
		return nil, nil
	}
	for i, event := range events {
		err := registry.CheckJSON(event)
		if err != nil && i == len(events)-1 {
			return nil, errUnfinished // it is cut off
		}
		if err != nil {
			return nil, fmt.Errorf("event %d of the stream is not valid JSON: %s", i+1, err.Message)
		}
	}
	if len(events) == 0 {
		return nil, errUnfinished
	}
	return events, nil
}

// isSSE reports whether data begins with a field or a comment of server-sent events.
func isSSE(data []byte) bool {
	return slices.ContainsFunc([]string{"data:", "event:", "id:", "retry:", ":"}, func(field string) bool {
		return bytes.HasPrefix(data, []byte(field))
	})
}

// splitSSE returns the data of server-sent events without OpenAI's "[DONE]". The last event
// needs no empty line after it, since JSON that is cut off is not valid.
func splitSSE(data []byte) []json.RawMessage {
	var events []json.RawMessage
	var event []byte
	lines := bytes.Split(bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")), []byte("\n"))
	for _, line := range append(lines, nil) {
		rest, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case isData && event == nil:
			event = slices.Clip(bytes.TrimSpace(rest))
		case isData:
			event = append(append(event, '\n'), rest...)
		case len(line) == 0:
			if len(event) > 0 && string(event) != "[DONE]" {
				events = append(events, event)
			}
			event = nil
		}
	}
	return events
}

// splitLines returns the values of JSON Lines.
func splitLines(data []byte) []json.RawMessage {
	var events []json.RawMessage
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			events = append(events, line)
		}
	}
	return events
}

// joinedCall is a call of a chat completion, joined from parts.
type joinedCall struct {
	id, kind         string
	function, custom *joinedInput
}

type joinedInput struct{ name, arguments strings.Builder }

// MarshalJSON writes the call as decoding reads it.
func (c *joinedCall) MarshalJSON() ([]byte, error) {
	out := map[string]any{"id": c.id, "type": c.kind}
	if c.function != nil {
		out["function"] = map[string]string{"name": c.function.name.String(), "arguments": c.function.arguments.String()}
	}
	if c.custom != nil {
		out["custom"] = map[string]string{"name": c.custom.name.String()}
	}
	return jsonx.Marshal(out)
}

// joinOpenAI joins the chunks of a chat completion of OpenAI and of Mistral, whose params
// may be objects.
func joinOpenAI(events []json.RawMessage) (any, error) {
	type choice struct {
		Message struct {
			Role         string          `json:"role"`
			FunctionCall json.RawMessage `json:"function_call,omitempty"`
			Calls        []*joinedCall   `json:"tool_calls"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`

		byIndex map[string]*joinedCall
	}
	var out struct {
		Choices []*choice `json:"choices"`
	}
	byIndex := map[string]*choice{}
	for _, event := range events {
		o := asObject(event)
		if err := apiError(o); err != nil {
			return nil, err
		}
		chunks, _ := jsonx.Elements(o["choices"])
		for _, raw := range chunks {
			chunk := asObject(raw)
			c := byIndex[string(chunk["index"])]
			if c == nil {
				c = &choice{byIndex: map[string]*joinedCall{}}
				c.Message.Role = "assistant"
				byIndex[string(chunk["index"])] = c
				out.Choices = append(out.Choices, c)
			}
			if reason := chunk.text("finish_reason"); reason != "" {
				c.FinishReason = reason
			}
			delta := asObject(chunk["delta"])
			if !jsonx.IsNull(delta["function_call"]) {
				c.Message.FunctionCall = delta["function_call"]
			}
			calls, _ := jsonx.Elements(delta["tool_calls"])
			for _, raw := range calls {
				part := asObject(raw)
				call, id := c.byIndex[string(part["index"])], part.text("id")
				if call == nil || id != "" && call.id != "" && id != call.id { // some servers give each call the index 0
					call = &joinedCall{}
					c.byIndex[string(part["index"])] = call
					c.Message.Calls = append(c.Message.Calls, call)
				}
				call.add(part)
			}
		}
	}
	unfinished := func(c *choice) bool { return c.FinishReason == "" }
	if len(out.Choices) == 0 || slices.ContainsFunc(out.Choices, unfinished) {
		return nil, errUnfinished
	}
	return out, nil
}

// add adds a part of a call.
func (c *joinedCall) add(part object) {
	if id := part.text("id"); id != "" {
		c.id = id
	}
	if kind := part.text("type"); kind != "" {
		c.kind = kind
	}
	for key, input := range map[string]**joinedInput{"function": &c.function, "custom": &c.custom} {
		if o := asObject(part[key]); o != nil {
			if *input == nil {
				*input = &joinedInput{}
			}
			(*input).name.WriteString(o.text("name"))
			(*input).arguments.Write(params(o["arguments"]))
		}
	}
}

// joinResponses finds the response in the event that ends a stream of the Responses API.
func joinResponses(events []json.RawMessage) (any, error) {
	for _, event := range slices.Backward(events) {
		o := asObject(event)
		switch o.text("type") {
		case "response.completed", "response.incomplete":
			return o["response"], nil
		case "response.failed":
			return nil, cmp.Or(apiError(asObject(o["response"])), errUnfinished)
		case "error":
			return nil, apiError(object{"error": event})
		}
	}
	return nil, errUnfinished
}

// joinAnthropic joins the events of a message.
func joinAnthropic(events []json.RawMessage) (any, error) {
	type message struct {
		Type       string   `json:"type"`
		Role       string   `json:"role"`
		Content    []object `json:"content"`
		StopReason string   `json:"stop_reason"`
	}
	out := message{Type: "message", Role: "assistant", Content: []object{}}
	inputs := map[int]*strings.Builder{}
	for _, event := range events {
		o := asObject(event)
		var index int
		if raw := o["index"]; raw != nil && json.Unmarshal(raw, &index) != nil {
			return nil, errors.New("an event of the stream has an index that is not a number")
		}
		switch o.text("type") {
		case "error":
			return nil, apiError(o)
		case "message_start": // what a container has called begins the content
			content, _ := jsonx.Elements(asObject(o["message"])["content"])
			for _, block := range content {
				out.Content = append(out.Content, asObject(block))
			}
		case "content_block_start":
			block := asObject(o["content_block"])
			if index != len(out.Content) || block == nil {
				return nil, errors.New("a content block of the stream is missing")
			}
			out.Content = append(out.Content, block)
		case "content_block_delta":
			if index < 0 || index >= len(out.Content) {
				return nil, errors.New("a content block of the stream is missing")
			}
			if inputs[index] == nil {
				inputs[index] = &strings.Builder{}
			}
			inputs[index].WriteString(asObject(o["delta"]).text("partial_json"))
		case "message_delta":
			if reason := asObject(o["delta"]).text("stop_reason"); reason != "" {
				out.StopReason = reason
			}
		case "message_stop":
			for i, input := range inputs {
				if input.Len() > 0 {
					out.Content[i]["input"] = quoted(input.String())
				}
			}
			return out, nil
		}
	}
	return nil, errUnfinished
}

// quoted returns s as a JSON string.
func quoted(s string) json.RawMessage {
	raw, _ := jsonx.Marshal(s) // cannot fail
	return raw
}

// isGeminiChunks reports whether data is a JSON array of chunks.
func isGeminiChunks(data []byte) bool {
	if !bytes.HasPrefix(data, []byte("[")) || registry.CheckJSON(data) != nil {
		return false
	}
	chunks, _ := jsonx.Elements(data)
	return slices.ContainsFunc(chunks, func(raw json.RawMessage) bool {
		return asObject(raw).has("candidates")
	})
}

// joinGemini joins the chunks of a GenerateContentResponse.
func joinGemini(events []json.RawMessage) (any, error) {
	type candidate struct {
		Content struct {
			Role  string            `json:"role"`
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason,omitempty"`
	}
	var out struct {
		Candidates     []*candidate    `json:"candidates,omitempty"`
		PromptFeedback json.RawMessage `json:"promptFeedback,omitempty"`
		ModelVersion   json.RawMessage `json:"modelVersion,omitempty"`
	}
	byIndex := map[string]*candidate{}
	for _, event := range events {
		o := asObject(event)
		if err := apiError(o); err != nil {
			return nil, err
		}
		if o.has("promptFeedback") {
			out.PromptFeedback = o["promptFeedback"]
		}
		if o.has("modelVersion") {
			out.ModelVersion = o["modelVersion"]
		}
		chunks, _ := jsonx.Elements(o["candidates"])
		for _, raw := range chunks {
			chunk := asObject(raw)
			index := strings.TrimPrefix(string(chunk["index"]), "0")
			c := byIndex[index]
			if c == nil {
				c = &candidate{}
				c.Content.Role = "model"
				byIndex[index] = c
				out.Candidates = append(out.Candidates, c)
			}
			parts, _ := jsonx.Elements(asObject(chunk["content"])["parts"])
			c.Content.Parts = append(c.Content.Parts, parts...)
			if reason := chunk.text("finishReason"); reason != "" {
				c.FinishReason = reason
			}
		}
	}
	unfinished := func(c *candidate) bool { return c.FinishReason == "" }
	blocked := asObject(out.PromptFeedback).text("blockReason") != ""
	if len(out.Candidates) == 0 && !blocked || slices.ContainsFunc(out.Candidates, unfinished) {
		return nil, errUnfinished
	}
	return out, nil
}
