package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// decodeOpenAI decodes a chat completion, its message, or a list of tool calls.
// Ollama and many other APIs have the same format.
func decodeOpenAI(t *Turn, raw json.RawMessage) error {
	if list, ok := jsonx.Elements(raw); ok {
		return t.addOpenAI(list, false)
	}
	o := asObject(raw)
	if err := apiError(o); err != nil {
		return err
	}
	switch {
	case o.has("choices"):
		return t.openAIChoices(o)
	case o.has("tool_calls") || o.text("role") == "assistant":
		return t.openAIMessage(o)
	case isOpenAICall(o):
		return t.addOpenAI([]json.RawMessage{raw}, false)
	}
	return errUnrecognized
}

func (t *Turn) openAIChoices(o object) error {
	choices, ok := jsonx.Elements(o["choices"])
	if !ok {
		return errors.New("choices is not a list")
	}
	if len(choices) == 0 {
		return errors.New("choices is empty; request the response again")
	}
	calling := 0
	for _, raw := range choices {
		choice := asObject(raw)
		message := asObject(choice["message"])
		if message == nil {
			return errors.New("a choice in it has no message; a chunk of a stream cannot be used")
		}
		before := len(t.Calls)
		err := cmp.Or(apiError(choice), t.openAIMessage(message))
		has := len(t.Calls) > before
		if err = cmp.Or(err, t.ended(choice.text("finish_reason"), "", has, has)); err != nil {
			return err
		}
		if has {
			calling++
		}
	}
	if calling > 1 {
		return fmt.Errorf("%d of its choices call tools; send the message of the one with which the conversation continues", calling)
	}
	return nil
}

func (t *Turn) openAIMessage(m object) error {
	if refusal := m.text("refusal"); refusal != "" {
		return t.ended("refusal", refusal, false, false)
	}
	if !jsonx.IsNull(m["function_call"]) && jsonx.IsNull(m["tool_calls"]) {
		return errors.New("its message has a function_call, which tools have replaced; send the declarations of schema --request in the field tools")
	}
	if jsonx.IsNull(m["tool_calls"]) {
		return nil
	}
	list, ok := jsonx.Elements(m["tool_calls"])
	if !ok {
		return errors.New("tool_calls is not a list")
	}
	return t.addOpenAI(list, true)
}

// isOpenAICall reports whether an element of a list is a call of this format, of whatever
// kind: it has a member of the name of its type.
func isOpenAICall(o object) bool {
	return o.has("function") || o.has("custom") || asObject(o[o.text("type")]) != nil
}

// addOpenAI adds the calls of a list. In a message, and beside other calls, one of an
// unknown kind is answered too, because the API requires an answer to each; elsewhere it
// may be that of another format.
func (t *Turn) addOpenAI(list []json.RawMessage, inMessage bool) error {
	inMessage = inMessage || slices.ContainsFunc(list, func(raw json.RawMessage) bool { return isOpenAICall(asObject(raw)) })
	for _, raw := range list {
		o := asObject(raw)
		function := asObject(o["function"])
		c := Call{id: textID(o["id"]), Name: function.text("name"), Params: params(function["arguments"])}
		switch {
		case o.has("role"):
			return errors.New("it is a list of messages; send only the last message")
		case o.has("custom") && c.Name == "": // some SDKs write the empty fields of other types, too
			c.Name = asObject(o["custom"]).text("name")
			c.Fault = "Calls of type custom are not supported. Call a declared function."
		case function == nil && inMessage && c.id != nil:
			c.Name = cmp.Or(o.text("type"), "unknown")
			c.Fault = fmt.Sprintf("Calls of type %.80q are not supported. Call a declared function.", c.Name)
		case function == nil:
			return errUnrecognized
		}
		t.Calls = append(t.Calls, c)
	}
	return nil
}

// replyOpenAI writes a message of role tool for each call. These may have only
// text, so images, audio and files follow in a message of role user.
func replyOpenAI(t *Turn, answers []Answer) []any {
	type toolMessage struct {
		Role    string          `json:"role"`
		ID      json.RawMessage `json:"tool_call_id"`
		Content string          `json:"content"`
	}
	var messages, media []any
	for i, a := range answers {
		text, blocks := t.textAndMedia(i, a, openAIMedia)
		messages = append(messages, toolMessage{"tool", t.Calls[i].id, text})
		media = append(media, blocks...)
	}
	if len(media) > 0 {
		messages = append(messages, message{"user", media})
	}
	return messages
}

// textAndMedia returns the text of an answer. If the answer has media that the
// format accepts, it also returns blocks for a user message: a line that names the
// call, and the media.
func (t *Turn) textAndMedia(i int, a Answer, media func(part) any) (text string, blocks []any) {
	lines := notes{}
	for _, p := range a.parts() {
		m := media(p)
		if m == nil {
			lines.add(p.asText())
			continue
		}
		if blocks == nil {
			blocks = []any{textBlock{"text", "From the call " + asText(t.Calls[i].id) + " of " + cmp.Or(a.Tool, t.Calls[i].Name) + ":"}}
		}
		lines.add(p.note() + " in the message below")
		blocks = append(blocks, m)
	}
	return lines.result(a.IsError), blocks
}

func openAIMedia(p part) any {
	type location struct {
		URL string `json:"url"`
	}
	type sound struct {
		Data   []byte `json:"data"`
		Format string `json:"format"`
	}
	type file struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	}
	type block struct {
		Type  string    `json:"type"`
		URL   *location `json:"image_url,omitempty"`
		Sound *sound    `json:"input_audio,omitempty"`
		File  *file     `json:"file,omitempty"`
	}
	switch {
	case p.isImage():
		return block{Type: "image_url", URL: &location{p.dataURL()}}
	case p.soundFormat() != "":
		return block{Type: "input_audio", Sound: &sound{p.Data, p.soundFormat()}}
	case p.isPDF():
		return block{Type: "file", File: &file{p.fileName(), p.dataURL()}}
	}
	return nil
}
