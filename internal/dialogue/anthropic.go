package dialogue

import (
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// decodeAnthropic reads a message of the Messages API, the list of its content
// blocks, or one block.
func decodeAnthropic(t *Turn, raw json.RawMessage) error {
	blocks, ok := jsonx.Elements(raw)
	o := asObject(raw)
	if !ok {
		if err := apiError(o); err != nil {
			return err
		}
		switch {
		case o.text("role") == "user":
			return errors.New("it is a message of the user; send the assistant's")
		case o.has("content") && (o.text("role") == "assistant" || o.text("type") == "message"):
			if blocks, ok = jsonx.Elements(o["content"]); !ok && !isText(o["content"]) { // a plain text calls nothing
				return errors.New("content is neither a list nor a text")
			}
		case o.text("type") == "tool_use":
			blocks = []json.RawMessage{raw}
		default:
			return errUnrecognised
		}
	}
	last := false
	for _, raw := range blocks {
		block := asObject(raw)
		last = false
		switch block.text("type") {
		case "":
			if block.has("role") {
				return errors.New("it is a list of messages; send the last message alone")
			}
			return errUnrecognised
		case "tool_result":
			return errors.New("it holds answers to calls; send the assistant's message")
		case "tool_use":
			c := Call{id: textID(block["id"]), Name: block.text("name"), Params: params(block["input"])}
			if c.id == nil {
				return errors.New("a call in it has no id to answer to")
			}
			t.Calls = append(t.Calls, c)
			last = true
		}
	}
	if last && o.text("stop_reason") == "max_tokens" {
		t.Calls[len(t.Calls)-1].Fault = cutOff
	}
	return nil
}

// replyAnthropic writes one message of role user with a tool_result block for
// each call.
func replyAnthropic(t *Turn, answers []Answer) []any {
	type result struct {
		Type    string          `json:"type"`
		ID      json.RawMessage `json:"tool_use_id"`
		Content []any           `json:"content"`
		IsError bool            `json:"is_error,omitempty"`
	}
	type message struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	m := message{Role: "user"}
	for i, a := range answers {
		r := result{Type: "tool_result", ID: t.Calls[i].id, IsError: a.IsError}
		for _, p := range a.parts() {
			media := anthropicMedia(p)
			if media == nil || a.IsError { // an error result takes text alone
				if text := p.asText(); !isBlank(text) { // blank text is refused
					r.Content = append(r.Content, textBlock{"text", text})
				}
				continue
			}
			r.Content = append(r.Content, media)
		}
		if len(r.Content) == 0 {
			r.Content = []any{textBlock{"text", noOutput}}
		}
		m.Content = append(m.Content, r)
	}
	return []any{m}
}

func anthropicMedia(p part) any {
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
		return block{"image", source{"base64", p.mediaType(), p.Data}}
	case p.isPDF():
		return block{"document", source{"base64", p.mediaType(), p.Data}}
	}
	return nil
}
