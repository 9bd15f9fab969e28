package provider

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Message returns the model's own message, which comes before the messages of [Turn.Reply] in the
// conversation: what the response has of it, or what its stream was put together to. For
// openai-responses it is the list of output items, for gemini-interactions that of steps. It is nil if only calls were given, and for mcp.
func (t *Turn) Message() json.RawMessage { return t.message }

// messageOf returns the message in a response that could be decoded.
func (f Format) messageOf(data json.RawMessage) json.RawMessage {
	o := asObject(data)
	switch f.Name {
	case "openai", "mistral":
		if o.has("choices") {
			return openAIChoice(o)
		}
		if o.has("tool_calls") || o.text("role") == "assistant" {
			return data
		}
	case "openai-responses", "gemini-interactions":
		if jsonx.KindOf(data) == jsonx.Array {
			return data
		}
		return o[map[string]string{"openai-responses": "output", "gemini-interactions": "steps"}[f.Name]]
	case "anthropic":
		return f.assistant(o["content"], data)
	case "gemini":
		candidates, _ := jsonx.Elements(o["candidates"])
		if len(candidates) > 0 {
			return asObject(candidates[0])["content"]
		}
		if o.has("parts") {
			return data
		}
	case "bedrock":
		if message := asObject(o["output"])["message"]; message != nil {
			return message
		}
		return f.assistant(o["content"], data)
	}
	return nil
}

// assistant returns the message with these blocks; if there are none, data may be the list of
// them.
func (f Format) assistant(content, data json.RawMessage) json.RawMessage {
	if content == nil && jsonx.KindOf(data) == jsonx.Array {
		content = data
	}
	if content == nil {
		return nil
	}
	out, _ := jsonx.Marshal(message{"assistant", content}) // nil if it fails
	return out
}

// openAIChoice returns the message of the choice that calls tools, or else of the first.
func openAIChoice(o object) json.RawMessage {
	choices, _ := jsonx.Elements(o["choices"])
	if len(choices) == 0 {
		return nil
	}
	i := slices.IndexFunc(choices, func(c json.RawMessage) bool {
		return !jsonx.IsNull(asObject(asObject(c)["message"])["tool_calls"])
	})
	return asObject(choices[max(i, 0)])["message"]
}

// joinText adds the text of a part of a stream to a member of what is put together.
func (o object) joinText(key string, part json.RawMessage) {
	if isText(part) {
		o[key] = quoted(o.text(key) + asText(part))
	}
}

// joinParts returns parts of a Gemini content in which texts that follow one another are one,
// unless something is said of one of them, such as a signature.
func joinParts(parts []json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	var last object // of the last part, if a text can be added to it
	for _, raw := range parts {
		part := asObject(raw)
		plain := isText(part["text"]) && (len(part) == 1 || len(part) == 2 && part.has("thought"))
		if plain && part.text("text") == "" { // often the last one
			continue
		}
		if plain && last != nil && string(last["thought"]) == string(part["thought"]) {
			last.joinText("text", part["text"])
			if joined, err := jsonx.Marshal(last); err == nil {
				out[len(out)-1] = joined
				continue
			}
		}
		last = nil
		if plain {
			last = part
		}
		out = append(out, raw)
	}
	return out
}
