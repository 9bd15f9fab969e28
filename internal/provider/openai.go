package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/local"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
)

// openai declares functions for OpenAI's chat completions. Names must match
// ^[a-zA-Z0-9_-]{1,64}$. The root of parameters must be of type object with
// properties and without oneOf, anyOf, allOf, enum and not.
func openai() Format {
	return Format{
		Name:    "openai",
		Summary: "OpenAI chat completions tools",
		expects: "choices, a message with tool_calls, or a list of tool calls",
		decode:  decodeOpenAI,
		media:   mediaLimits{image: 20 << 20, file: 50 << 20 / 4 * 3},
		callID:  "id",
		join:    joinOpenAI,
		reply:   replyOpenAI,
		rule:    dashedNames(),
		strict:  true,
		prepare: (*encoder).prepareOpenAI,
		write: func(e *encoder, t *tool) {
			e.declare(t, `{"type":"function","function":{`, "parameters")
			switch { // if absent, strict is false in this API
			case t.strict:
				e.raw(`,"strict":true`)
			case e.opts.Strict, t.def.Provider.Strict != nil:
				e.raw(`,"strict":false`)
			}
			e.raw("}}")
		},
	}
}

// dashedNames is the rule of all APIs that accept ^[a-zA-Z0-9_-]{1,64}$.
func dashedNames() nameRule { return nameRule{extra: "-", max: 64} }

func (e *encoder) prepareOpenAI(t *tool) {
	changes := openAIRoot(t)
	if e.opts.Target == "" { // other servers have their own rules
		changes = slices.Concat(changes, rewrite.DropPatterns(t.schema), rewrite.DropHugeNumbers(t.schema))
	}
	if e.requiresStrict(t) {
		strict := t.schema.Clone()
		if done, err := rewrite.Strict(strict); err != nil {
			e.diagnose(registry.SeverityWarning, "strict_impossible", t,
				"declared without strict: "+err.Error(), "strict schemas accept only objects with named properties")
		} else {
			t.schema, t.strict = strict, true
			changes = append(changes, done...)
		}
	}
	if e.opts.Target != "" {
		fitted, done := local.Fit(t.schema, e.opts.Target)
		t.schema, changes = fitted, append(changes, done...)
	}
	e.changed(t, changes)
}

func openAIRoot(t *tool) []string {
	root := t.schema
	changes := flattened(t, "enum", "not")
	if !root.Get("properties").Is(jsonx.Object) {
		root.Set("properties", jsonx.NewObject())
		changes = append(changes, "properties added at the root")
	}
	return append(changes, rewrite.ForOpenAI(root)...)
}

// openAIOutput is outputSchema for OpenAI, which applies the same checks to both schemas of a tool.
func (e *encoder) openAIOutput(raw []byte) (*jsonx.Value, error) {
	n, err := e.outputSchema(raw)
	if err == nil {
		rewrite.ForOpenAI(n)
		if e.opts.Target == "" {
			rewrite.DropPatterns(n)
			rewrite.DropHugeNumbers(n)
		}
	}
	return n, err
}

// decodeOpenAI decodes a chat completion, its message, or a list of tool calls.
// Mistral, Ollama and many other APIs have the same format.
func decodeOpenAI(t *Turn, raw json.RawMessage) error {
	if list, ok := jsonx.Elements(raw); ok {
		return t.addOpenAI(list, false)
	}
	o := asObject(raw)
	switch {
	case o.has("choices"):
		return t.openAIChoices(o)
	case o.has("tool_calls") || o.text("role") == "assistant":
		return t.openAIMessage(o)
	case isOpenAICall(o):
		return t.addOpenAI([]json.RawMessage{raw}, false)
	}
	if said := o.either("detail", "message"); o.has("detail") || isText(said) {
		return cmp.Or(apiError(object{"error": said}), errUnrecognized)
	}
	return errUnrecognized
}

func (t *Turn) openAIChoices(o object) error {
	return t.alternatives(o, "choices",
		"call tools; send only the message that continues the conversation", func(choice object) error {
			message := asObject(choice["message"])
			if message == nil {
				return errors.New("a choice in it has no message; a chunk of a stream cannot be used")
			}
			before := len(t.Calls)
			err := cmp.Or(apiError(choice), t.openAIMessage(message))
			has := len(t.Calls) > before
			return cmp.Or(err, t.ended(choice.text("finish_reason"), "", has, has))
		})
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

// isOpenAICall reports whether an element of a list is a call in this format, of any kind: it has a
// member with the name of its type.
func isOpenAICall(o object) bool {
	return o.has("function") || o.has("custom") || asObject(o[o.text("type")]) != nil
}

// addOpenAI adds the calls of a list. In a message, and beside other calls, a call of unknown kind
// is answered too, because the API requires an answer to each. Elsewhere it may belong to another
// format.
func (t *Turn) addOpenAI(list []json.RawMessage, inMessage bool) error {
	inMessage = inMessage ||
		slices.ContainsFunc(list, func(raw json.RawMessage) bool { return isOpenAICall(asObject(raw)) })
	for _, raw := range list {
		o := asObject(raw)
		function := asObject(o["function"])
		c := callOf(function, "", "arguments")
		c.id = idOf(o["id"])
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
	messages, media := t.toolMessages(answers, openAIMedia)
	if len(media) > 0 {
		messages = append(messages, message{"user", media})
	}
	return messages
}

func (t *Turn) toolMessages(answers []Answer, of func(part) any) (messages, media []any) {
	type toolMessage struct {
		Role    string          `json:"role"`
		Name    string          `json:"name,omitempty"`
		ID      json.RawMessage `json:"tool_call_id"`
		Content string          `json:"content"`
	}
	for i, a := range answers {
		text, blocks := t.textAndMedia(i, a, of)
		name := ""
		if t.format.Name == "mistral" {
			name = t.format.repeated(t.Calls[i].Name)
		}
		messages = append(messages, toolMessage{"tool", name, t.Calls[i].id, text})
		media = append(media, blocks...)
	}
	return messages, media
}

// textAndMedia returns the text of an answer. If the answer has media that the
// format accepts, it also returns blocks for a user message: a line that names the
// call, and the media.
func (t *Turn) textAndMedia(i int, a Answer, media func(part) any) (text string, blocks []any) {
	lines, blocks := a.split(media, func(p part) string { return p.Note() + " in the message below" })
	if len(blocks) > 0 {
		from := "From the call " + t.Calls[i].idText() + " of " + cmp.Or(a.Tool, t.Calls[i].Name) + ":"
		blocks = append([]any{textBlock{"text", from}}, blocks...)
	}
	return lines.result(a.IsError), blocks
}

// mediaBlock is a block of content for the APIs of OpenAI and Mistral, with the members that blocks of its
// type have.
type mediaBlock struct {
	Type         string `json:"type,omitempty"`
	ImageURL     any    `json:"image_url,omitempty"` // text, or an object with the member url
	Sound        any    `json:"input_audio,omitempty"`
	File         any    `json:"file,omitempty"` // an object with filename and file_data
	DocumentURL  string `json:"document_url,omitempty"`
	DocumentName string `json:"document_name,omitempty"`
	FileName     string `json:"filename,omitempty"`
	FileData     string `json:"file_data,omitempty"`
}

func openAIMedia(p part) any {
	switch {
	case p.isImage():
		return mediaBlock{Type: "image_url", ImageURL: map[string]string{"url": p.dataURL()}}
	case p.soundFormat() != "":
		return mediaBlock{Type: "input_audio", Sound: map[string]any{"data": p.Data, "format": p.soundFormat()}}
	case p.isPDF():
		return mediaBlock{Type: "file", File: mediaBlock{FileName: p.fileName(), FileData: p.dataURL()}}
	}
	return nil
}

// joinedCall is a call of a chat completion, joined from parts.
type joinedCall struct {
	joined           // what the call has beside the fields below, such as a signature
	id               json.RawMessage
	kind             string
	function, custom *joinedInput
}

type joinedInput struct {
	name      []byte
	arguments pieces
}

// MarshalJSON writes the call as decoding reads it.
func (c *joinedCall) MarshalJSON() ([]byte, error) {
	c.object["id"], c.object["type"] = c.id, quoted(cmp.Or(c.kind, "function"))
	if c.function != nil {
		c.object["function"] = object{"name": quoted(string(c.function.name)), "arguments": c.function.text()}.json()
	}
	if c.custom != nil {
		c.object["type"] = quoted(cmp.Or(c.kind, "custom"))
		c.object["custom"] = object{"name": quoted(string(c.custom.name)), "input": c.custom.text()}.json()
	}
	return c.joined.MarshalJSON()
}

// joinedChoice is a choice of a chat completion, joined from chunks.
type joinedChoice struct {
	Message      joined          `json:"message"`
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
				c = &joinedChoice{byIndex: map[string]*joinedCall{}}
				c.Message.object = object{"role": quoted("assistant"), "content": json.RawMessage("null")}
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
			if c.Message.object["tool_calls"], err = jsonx.Marshal(c.calls); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// add adds a chunk. Some servers send the message so far instead of, or beside, a part, or at the
// end.
func (c *joinedChoice) add(chunk object) {
	c.FinishReason = cmp.Or(chunk.text("finish_reason"), c.FinishReason)
	if !jsonx.IsNull(chunk["error"]) {
		c.Error = chunk["error"]
	}
	part := asObject(chunk["delta"])
	calls, _ := jsonx.Elements(part["tool_calls"])
	message := asObject(chunk["message"])
	whole := message != nil && len(calls) == 0
	if whole {
		part = message
		if calls, _ = jsonx.Elements(part["tool_calls"]); len(calls) > 0 {
			c.calls, c.byIndex = nil, map[string]*joinedCall{}
		}
	}
	delete(part, "role")
	delete(part, "tool_calls")
	for key, value := range part {
		if whole && !jsonx.IsNull(value) {
			c.Message.object[key] = nil
			delete(c.Message.lists, key)
		}
		switch { // all texts are in parts
		case !isText(value) || string(value) == `""`:
			continue
		case c.Message.lists[key] != nil:
			c.Message.addItems(key, []json.RawMessage{textItem(value)})
		default:
			c.Message.joinText(key, value)
		}
		delete(part, key)
	}
	c.Message.add(part)
	here := map[*joinedCall]bool{}
	for _, raw := range calls {
		part := asObject(raw)
		call := c.byIndex[string(part["index"])]
		if call == nil && len(c.calls) > 0 && c.calls[len(c.calls)-1].continuedBy(part) {
			call = c.calls[len(c.calls)-1]
			c.byIndex[string(part["index"])] = call
		}
		if call == nil || call.endsBefore(part, here[call]) {
			call = &joinedCall{joined: joined{object: object{}}, id: quoted("")}
			c.byIndex[string(part["index"])] = call
			c.calls = append(c.calls, call)
		}
		here[call] = true
		call.add(part)
	}
}

// endsBefore reports whether a part with the same index belongs to another call, because some
// servers give every call index 0, or none. here says that the part's chunk had a part of this call
// before.
func (c *joinedCall) endsBefore(part object, here bool) bool {
	given := asObject(part.either("function", "custom"))
	if given.text("name") == "" {
		return false
	}
	if id := idOf(part["id"]); id != nil && idOf(c.id) != nil {
		return !bytes.Equal(id, c.id)
	}
	return here || jsonx.KindOf(params(given["arguments"])) == jsonx.Object &&
		c.function != nil && c.function.arguments.isWhole()
}

// continuedBy reports whether a part with another index can only continue this call, because some
// servers number the parts.
func (c *joinedCall) continuedBy(part object) bool {
	return idOf(part["id"]) == nil && asObject(part.either("function", "custom")).text("name") == "" &&
		c.function != nil
}

func (i *joinedInput) text() json.RawMessage { return quoted(string(i.arguments.text())) }

func (c *joinedCall) add(part object) {
	if id := idOf(part["id"]); id != nil {
		c.id = id
	}
	c.kind = cmp.Or(part.text("type"), c.kind)
	for key, input := range map[string]**joinedInput{"function": &c.function, "custom": &c.custom} {
		if o := asObject(part[key]); o != nil {
			if *input == nil {
				*input = &joinedInput{}
			}
			piece := o.either("arguments", "input")
			if isText(piece) { // also "null", which params would take for none
				piece = []byte(asText(piece))
			} else if jsonx.IsNull(piece) {
				piece = nil
			}
			(*input).add(o.text("name"), piece)
		}
	}
	for _, key := range []string{"index", "id", "type", "function", "custom"} {
		delete(part, key)
	}
	c.joined.add(part)
}

// add adds the rest of a name or of arguments. Some servers repeat the name from its beginning
// instead.
func (i *joinedInput) add(name string, arguments []byte) {
	if bytes.HasPrefix([]byte(name), i.name) {
		i.name = nil
	}
	i.name = append(i.name, name...)
	i.arguments.add(arguments)
}
