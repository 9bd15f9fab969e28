package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
)

// anthropic declares tools for Anthropic's Messages API. Names must match
// ^[a-zA-Z0-9_-]{1,128}$. Only 64 characters are used, which older models and other
// clouds with Anthropic's models also accept. The root of input_schema must be of
// type object, without oneOf, allOf and anyOf, its properties must match
// ^[a-zA-Z0-9_.-]{1,64}$, and the schema must be valid in draft 2020-12.
func anthropic() Format {
	return Format{
		Name:    "anthropic",
		Summary: "Anthropic Messages API tools",
		expects: "a message of role assistant with content, or a list of its blocks",
		decode:  decodeAnthropic,
		media:   mediaLimits{image: 5 << 20 / 4 * 3, file: 32 << 20 / 4 * 3, pixels: 8000},
		callID:  "id",
		join:    joinAnthropic,
		reply:   replyAnthropic,
		rule:    dashedNames(),
		prepare: (*encoder).prepareFlat,
		refuse:  refuseOddKeys,
		search: func(e *encoder) { // for words; the other search expects regular expressions
			e.raw(`{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}`)
		},
		write: func(e *encoder, t *tool) {
			e.declare(t, "{", "input_schema")
			e.writeStrict(t)
			e.flag("defer_loading", t.def.Provider.DeferLoading)
			e.flag("eager_input_streaming", t.def.Provider.EagerInputStreaming)
			e.callers(t, isOpenAICaller)
			e.cacheControl(t)
			e.examples(t)
			e.raw("}")
		},
	}
}

// cacheControl writes the cache point of a tool. The API rejects a request with a
// cache point on a deferred tool.
func (e *encoder) cacheControl(t *tool) {
	if deferred := t.def.Provider.DeferLoading; deferred != nil && *deferred && t.def.Provider.CacheControl != nil {
		e.omitField(t, "cacheControl", errors.New("a deferred tool cannot be cached"))
	} else if point := e.cachePoint(t); point != nil {
		e.raw(`,"cache_control":{"type":"ephemeral"`)
		e.ttl(point)
		e.raw("}")
	}
}

// refuseOddKeys rejects a tool with property names that would make the API reject
// the whole request. The API checks only the properties at the root.
func refuseOddKeys(t *tool) error {
	rule := nameRule{extra: "_.-", max: 64}
	for _, m := range t.schema.Get("properties").Fields() {
		if m.Name == "" || len(m.Name) > rule.max || rule.clean(m.Name) != m.Name {
			return fmt.Errorf("its param %.80q has a name that the API rejects (allowed are 1 to 64 letters, digits, _, . and -)", m.Name)
		}
	}
	return nil
}

// prepareFlat makes the root a plain object schema, and removes numbers that are too large.
func (e *encoder) prepareFlat(t *tool) {
	e.changed(t, append(flattened(t), rewrite.DropHugeNumbers(t.schema)...))
	e.prepareGrammar(t)
}

// decodeAnthropic decodes a message of the Messages API, the list of its
// content blocks, or one block.
func decodeAnthropic(t *Turn, raw json.RawMessage) error {
	o := asObject(raw)
	blocks, err := anthropicBlocks(raw, o)
	if err != nil {
		return err
	}
	last, err := eachPart(blocks, t.anthropicBlock)
	return cmp.Or(err,
		t.ended(o.text("stop_reason"), asObject(o["stop_details"]).text("explanation"), len(t.Calls) > 0, last))
}

func anthropicBlocks(raw json.RawMessage, o object) ([]json.RawMessage, error) {
	if blocks, ok := jsonx.Elements(raw); ok {
		return blocks, nil
	}
	switch {
	case o.text("role") == "user":
		return nil, errors.New("it is a user message; send the assistant's message")
	case o.has("content") && (o.text("role") == "assistant" || o.text("type") == "message"):
		blocks, ok := jsonx.Elements(o["content"])
		if !ok && !isText(o["content"]) { // a string as content has no calls
			return nil, errors.New("content must be a list or a string")
		}
		return blocks, nil
	case o.text("type") == "tool_use":
		return []json.RawMessage{raw}, nil
	}
	return nil, errUnrecognized
}

// anthropicBlock adds the call of a content block and reports whether it has
// one. Calls that the server runs (server_tool_use, mcp_tool_use) need no
// answer.
func (t *Turn) anthropicBlock(block object) (called bool, err error) {
	switch block.text("type") {
	case "":
		if block.has("role") {
			return false, errors.New("it is a list of messages; send only the last message")
		}
		return false, errUnrecognized
	case "tool_result":
		return false, errors.New("it contains answers to calls; send the assistant's message")
	case "tool_use":
		c := callOf(block, "id", "input")
		if set := block.text("toolset_name"); set != "" { // tools of the API, whatever their names are
			c.Fault = "Calls of the toolset " + set + " are not supported. Call a declared tool."
		}
		t.Calls = append(t.Calls, c)
		return true, nil
	}
	return false, nil
}

// replyAnthropic writes one message of role user with a tool_result block for
// each call.
func replyAnthropic(t *Turn, answers []Answer) []any {
	type result struct {
		Type    string          `json:"type"`
		ID      json.RawMessage `json:"tool_use_id"`
		Toolset json.RawMessage `json:"toolset_name,omitempty"`
		Content []any           `json:"content"`
		IsError bool            `json:"is_error,omitempty"`
	}
	text := func(s string) any { return textBlock{"text", s} }
	out := make([]any, len(answers))
	for i, a := range answers {
		out[i] = result{"tool_result", t.Calls[i].id, t.Calls[i].echoed("toolset_name"),
			a.blocks(text, anthropicMedia), a.IsError}
	}
	return []any{message{"user", out}}
}

func anthropicMedia(_ int, p part) []any {
	type source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	}
	type block struct {
		Type   string `json:"type"`
		Source source `json:"source"`
	}
	switch {
	case p.isImage():
		return []any{block{"image", source{"base64", p.mediaType(), p.Data}}}
	case p.isPDF():
		return []any{block{"document", source{"base64", p.mediaType(), p.Data}}}
	}
	return nil
}

func joinAnthropic(events []json.RawMessage) (any, error) {
	type message struct {
		Type       string          `json:"type"`
		Role       string          `json:"role"`
		Content    []*joined       `json:"content"`
		StopReason string          `json:"stop_reason"`
		Details    json.RawMessage `json:"stop_details,omitempty"`
	}
	out := message{Type: "message", Role: "assistant", Content: []*joined{}}
	byIndex := map[int]*joined{} // the last one, since some servers give an index twice
	begin := func(block object, index int) {
		byIndex[index] = &joined{object: block, params: "input"}
		out.Content = append(out.Content, byIndex[index])
	}
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
			for i, raw := range content {
				if block := asObject(raw); block != nil {
					begin(block, i)
				}
			}
		case "content_block_start":
			block := asObject(o["content_block"])
			if index > len(out.Content) || block == nil {
				return nil, errors.New("a content block of the stream is missing")
			}
			begin(block, index)
		case "content_block_delta":
			block := byIndex[index]
			if block == nil {
				return nil, errors.New("a content block of the stream is missing")
			}
			delta, part := asObject(o["delta"]), object{}
			block.input.add([]byte(delta.text("partial_json")))
			for _, key := range []string{"text", "thinking", "signature", "content", "encrypted_content"} {
				part[key] = delta[key]
			}
			if citation := delta["citation"]; citation != nil {
				block.addItems("citations", []json.RawMessage{citation})
			}
			block.add(part)
		case "message_delta":
			delta := asObject(o["delta"])
			out.StopReason = cmp.Or(delta.text("stop_reason"), out.StopReason)
			if !jsonx.IsNull(delta["stop_details"]) {
				out.Details = delta["stop_details"]
			}
		case "message_stop":
			return out, nil
		}
	}
	return nil, errUnfinished
}
