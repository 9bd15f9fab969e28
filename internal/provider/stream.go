package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// A response may be a stream of events, as it was received: server-sent events, for Gemini
// also a JSON array of chunks, and for Bedrock JSON Lines or binary frames. The events are
// joined to one response, as the providers' SDKs do. A stream that ends before the response does is an error, since calls may be missing.

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

type joinedInput struct {
	name      string
	arguments []byte
}

// MarshalJSON writes the call as decoding reads it.
func (c *joinedCall) MarshalJSON() ([]byte, error) {
	out := map[string]any{"id": c.id, "type": c.kind}
	if c.function != nil {
		out["function"] = map[string]string{"name": c.function.name, "arguments": string(c.function.arguments)}
	}
	if c.custom != nil {
		out["custom"] = map[string]string{"name": c.custom.name, "input": string(c.custom.arguments)}
	}
	return jsonx.Marshal(out)
}

// joinedChoice is a choice of a chat completion, joined from chunks.
type joinedChoice struct {
	Message      object          `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Error        json.RawMessage `json:"error,omitempty"`

	calls   []*joinedCall
	byIndex map[string]*joinedCall
}

// joinOpenAI joins the chunks of a chat completion of OpenAI and of Mistral, whose params
// may be objects.
func joinOpenAI(events []json.RawMessage) (any, error) {
	var out struct {
		Choices []*joinedChoice `json:"choices"`
	}
	byIndex := map[string]*joinedChoice{}
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
				c = &joinedChoice{Message: object{"role": quoted("assistant"), "content": json.RawMessage("null")}, byIndex: map[string]*joinedCall{}}
				byIndex[string(chunk["index"])] = c
				out.Choices = append(out.Choices, c)
			}
			c.add(chunk)
		}
	}
	unfinished := func(c *joinedChoice) bool { return c.FinishReason == "" }
	if len(out.Choices) == 0 || slices.ContainsFunc(out.Choices, unfinished) {
		return nil, errUnfinished
	}
	for _, c := range out.Choices {
		if len(c.calls) > 0 {
			var err error
			if c.Message["tool_calls"], err = jsonx.Marshal(c.calls); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// add adds a chunk. Some servers send the whole message instead of a part, or at the end.
func (c *joinedChoice) add(chunk object) {
	c.FinishReason = cmp.Or(chunk.text("finish_reason"), c.FinishReason)
	if !jsonx.IsNull(chunk["error"]) {
		c.Error = chunk["error"]
	}
	part := asObject(chunk["delta"])
	calls, _ := jsonx.Elements(part["tool_calls"])
	if message := asObject(chunk["message"]); message != nil && len(calls) == 0 {
		part = message
		if calls, _ = jsonx.Elements(part["tool_calls"]); len(calls) > 0 {
			c.calls, c.byIndex = nil, map[string]*joinedCall{}
		}
	}
	for key, value := range part { // texts are in parts, other values whole
		switch {
		case key == "role" || key == "tool_calls" || jsonx.IsNull(value) || string(value) == `""`:
		case isText(value):
			c.Message.joinText(key, value)
		default:
			c.Message[key] = value
		}
	}
	here := map[*joinedCall]bool{}
	for _, raw := range calls {
		part := asObject(raw)
		call := c.byIndex[string(part["index"])]
		if call == nil && len(c.calls) > 0 && c.calls[len(c.calls)-1].goesOn(part) {
			call = c.calls[len(c.calls)-1]
			c.byIndex[string(part["index"])] = call
		}
		if call == nil || call.endsBefore(part, here[call]) {
			call = &joinedCall{}
			c.byIndex[string(part["index"])] = call
			c.calls = append(c.calls, call)
		}
		here[call] = true
		call.add(part)
	}
}

// endsBefore reports whether a part of the same index belongs to another call, because some
// servers give each call the index 0, or none. here says whether its chunk has had a part of
// this call before.
func (c *joinedCall) endsBefore(part object, here bool) bool {
	given := asObject(part.either("function", "custom"))
	if given.text("name") == "" {
		return false
	}
	id := asText(textID(part["id"]))
	if id != "" && c.id != "" {
		return id != c.id
	}
	return here || jsonx.KindOf(params(given["arguments"])) == jsonx.Object && c.function.isWhole()
}

// goesOn reports whether a part of another index can only be the rest of this call, because some
// servers count the parts.
func (c *joinedCall) goesOn(part object) bool {
	return asText(textID(part["id"])) == "" && asObject(part.either("function", "custom")).text("name") == "" && c.function != nil && !c.function.isWhole()
}

// isWhole reports whether nothing can follow.
func (i *joinedInput) isWhole() bool { return i != nil && registry.CheckJSON(i.arguments) == nil }

// add adds a part of a call.
func (c *joinedCall) add(part object) {
	c.id = cmp.Or(asText(textID(part["id"])), c.id)
	c.kind = cmp.Or(part.text("type"), c.kind)
	for key, input := range map[string]**joinedInput{"function": &c.function, "custom": &c.custom} {
		if o := asObject(part[key]); o != nil {
			if *input == nil {
				*input = &joinedInput{}
			}
			(*input).add(o.text("name"), params(o.either("arguments", "input")))
		}
	}
}

// add adds the rest of a name or of arguments. Some servers repeat them from their beginning
// instead.
func (i *joinedInput) add(name string, arguments []byte) {
	if !strings.HasPrefix(name, i.name) {
		name = i.name + name
	}
	i.name = cmp.Or(name, i.name)
	if !bytes.Equal(i.arguments, arguments) || !i.isWhole() {
		i.arguments = append(i.arguments, arguments...)
	}
}

// joinResponses joins the events of a stream of the Responses API: the response in the event
// that ends it, and the output items that only earlier events have.
func joinResponses(events []json.RawMessage) (any, error) {
	var items []object // in the order of their first event
	arguments := map[string]string{}
	put := func(item object, index json.RawMessage) {
		item["output_index"] = index
		i := slices.IndexFunc(items, func(known object) bool { return known.same(item, "id") || known.same(item, "call_id") })
		if i < 0 {
			i = slices.IndexFunc(items, func(known object) bool { return known.same(item, "output_index") && known.same(item, "type") })
		}
		if i < 0 {
			items = append(items, item)
		} else {
			items[i] = item
		}
	}
	for _, event := range events {
		o := asObject(event)
		item := asObject(o["item"])
		switch kind := o.text("type"); kind {
		case "response.output_item.added", "response.output_item.done":
			if item != nil {
				put(item, o["output_index"])
			}
		case "response.function_call_arguments.delta":
			arguments[o.text("item_id")] += o.text("delta")
		case "response.function_call_arguments.done":
			arguments[o.text("item_id")] = o.text("arguments")
		case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
			response := asObject(o["response"])
			if response == nil {
				response = object{}
			}
			if status, _ := strings.CutPrefix(kind, "response."); status != "done" && response.text("status") == "" {
				response["status"] = quoted(status)
			}
			last, _ := jsonx.Elements(response["output"])
			for i, raw := range last {
				if item := asObject(raw); item != nil {
					put(item, strconv.AppendInt(nil, int64(i), 10))
				}
			}
			for _, item := range items {
				if text := arguments[item.text("id")]; text != "" && item.text("arguments") == "" {
					item["arguments"] = quoted(text)
				}
			}
			for _, item := range items {
				delete(item, "output_index")
			}
			raw, err := jsonx.Marshal(append([]object{}, items...))
			response["output"] = raw
			return response, err
		case "error":
			return nil, cmp.Or(apiError(o), apiError(object{"error": event}))
		}
	}
	return nil, errUnfinished
}

// same reports whether both objects have the same value for a key, which is not empty.
func (o object) same(other object, key string) bool {
	return !jsonx.IsNull(o[key]) && string(o[key]) != `""` && bytes.Equal(o[key], other[key])
}

// joinAnthropic joins the events of a message.
func joinAnthropic(events []json.RawMessage) (any, error) {
	type message struct {
		Type       string          `json:"type"`
		Role       string          `json:"role"`
		Content    []object        `json:"content"`
		StopReason string          `json:"stop_reason"`
		Details    json.RawMessage `json:"stop_details,omitempty"`
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
			delta, block := asObject(o["delta"]), out.Content[index]
			inputs[index].WriteString(delta.text("partial_json"))
			for _, key := range []string{"text", "thinking", "signature"} {
				block.joinText(key, delta[key])
			}
			if citation := delta["citation"]; citation != nil {
				all, _ := jsonx.Elements(block["citations"])
				var err error
				if block["citations"], err = jsonx.Marshal(append(slices.Clip(all), citation)); err != nil {
					return nil, err
				}
			}
		case "message_delta":
			delta := asObject(o["delta"])
			out.StopReason = cmp.Or(delta.text("stop_reason"), out.StopReason)
			if !jsonx.IsNull(delta["stop_details"]) {
				out.Details = delta["stop_details"]
			}
		case "message_stop":
			for i, input := range inputs {
				if input.Len() > 0 {
					out.Content[i]["input"] = joinedParams(input.String())
				}
			}
			return out, nil
		}
	}
	return nil, errUnfinished
}

// joinedParams returns the params of a call that came in pieces: as a JSON string if they are cut
// off, so that the response stays valid JSON.
func joinedParams(text string) json.RawMessage {
	if registry.CheckJSON([]byte(text)) != nil {
		return quoted(text)
	}
	return json.RawMessage(text)
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
		FinishReason  string `json:"finishReason,omitempty"`
		FinishMessage string `json:"finishMessage,omitempty"`
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
			c.FinishReason = cmp.Or(chunk.text("finishReason"), c.FinishReason)
			c.FinishMessage = cmp.Or(chunk.text("finishMessage"), c.FinishMessage)
		}
	}
	for _, c := range out.Candidates {
		c.Content.Parts = joinParts(c.Content.Parts)
	}
	unfinished := func(c *candidate) bool { return c.FinishReason == "" }
	blocked := asObject(out.PromptFeedback).text("blockReason") != ""
	if len(out.Candidates) == 0 && !blocked || slices.ContainsFunc(out.Candidates, unfinished) {
		return nil, errUnfinished
	}
	return out, nil
}
