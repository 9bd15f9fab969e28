package provider

import (
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// decodeAnthropic decodes a message of the Messages API, the list of its
// content blocks, or one block.
func decodeAnthropic(t *Turn, raw json.RawMessage) error {
	o := asObject(raw)
	blocks, err := anthropicBlocks(raw, o)
	if err != nil {
		return err
	}
	last := false
	for _, raw := range blocks {
		if last, err = t.anthropicBlock(asObject(raw)); err != nil {
			return err
		}
	}
	return t.ended(o.text("stop_reason"), asObject(o["stop_details"]).text("explanation"), len(t.Calls) > 0, last)
}

// anthropicBlocks finds the content blocks.
func anthropicBlocks(raw json.RawMessage, o object) ([]json.RawMessage, error) {
	if blocks, ok := jsonx.Elements(raw); ok {
		return blocks, nil
	}
	if err := apiError(o); err != nil {
		return nil, err
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
		c := Call{id: textID(block["id"]), Name: block.text("name"), Params: params(block["input"]), item: block}
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
		out[i] = result{"tool_result", t.Calls[i].id, t.Calls[i].given("toolset_name"), a.blocks(text, anthropicMedia), a.IsError}
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
