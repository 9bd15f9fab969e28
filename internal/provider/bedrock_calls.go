package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// decodeBedrock decodes a response of Amazon Bedrock's Converse operation (API
// version 2023-09-30), the message in it, the list of its content blocks, or
// one block.
func decodeBedrock(t *Turn, raw json.RawMessage) error {
	o := asObject(raw)
	blocks, err := bedrockBlocks(raw, o)
	if err != nil {
		return err
	}
	last := false
	for _, raw := range blocks {
		if last, err = t.bedrockBlock(asObject(raw)); err != nil {
			return err
		}
	}
	return t.ended(o.text("stopReason"), "", len(t.Calls) > 0, last)
}

// bedrockBlocks finds the content blocks.
func bedrockBlocks(raw json.RawMessage, o object) ([]json.RawMessage, error) {
	if blocks, ok := jsonx.Elements(raw); ok {
		return blocks, nil
	}
	message := o
	if output := asObject(o["output"]); output != nil {
		message = asObject(output["message"])
	}
	switch {
	case message.text("role") == "user":
		return nil, errors.New("it is a user message; send the assistant's message")
	case message.has("content") && message.text("type") == "": // Anthropic's messages have a type
		blocks, ok := jsonx.Elements(message["content"])
		if !ok {
			return nil, errUnrecognized // a string as content is another provider's format
		}
		return blocks, nil
	case o.has("toolUse"):
		return []json.RawMessage{raw}, nil
	case isText(o["message"]) || isText(o["Message"]):
		return nil, fmt.Errorf("the API returned an error: %.500s", asText(o.either("message", "Message")))
	}
	return nil, errUnrecognized
}

// bedrockBlock adds the call of a content block and reports whether it has one.
// Tools that run on the server are blocks too and need no answer.
func (t *Turn) bedrockBlock(block object) (called bool, err error) {
	switch use := asObject(block["toolUse"]); {
	case block.has("role"):
		return false, errors.New("it is a list of messages; send only the last message")
	case len(block) == 0 || block.has("type"): // other providers' blocks have a type
		return false, errUnrecognized
	case use == nil || use.text("type") == "server_tool_use":
		return false, nil
	default:
		c := Call{id: textID(use["toolUseId"]), Name: use.text("name"), Params: params(use["input"])}
		if kind := use.text("type"); kind != "" {
			c.Fault = "Calls of type " + kind + " are not supported. Call a declared tool."
		}
		t.Calls = append(t.Calls, c)
		return true, nil
	}
}

// replyBedrock writes one message of role user with a toolResult block for each
// call.
func replyBedrock(t *Turn, answers []Answer) []any {
	type result struct {
		ID      json.RawMessage `json:"toolUseId"`
		Content []any           `json:"content"`
		Status  string          `json:"status,omitempty"`
	}
	type block struct {
		Result result `json:"toolResult"`
	}
	text := func(s string) any { return bedrockText{s} }
	out := make([]block, len(answers))
	for i, a := range answers {
		id := t.Calls[i].id
		out[i].Result = result{ID: id, Content: a.blocks(text, func(n int, p part) []any { return bedrockMedia(p, fmt.Sprintf("%s %d", asText(id), n+1)) })}
		if a.IsError {
			out[i].Result.Status = "error"
		}
	}
	return []any{message{"user", out}}
}

type bedrockText struct {
	Text string `json:"text"`
}

// bedrockMedia returns the blocks for an image, a video or a document, or nil for a
// part that Converse does not accept. Document names must be unique in a
// conversation, so they are derived from the id of the call.
func bedrockMedia(p part, name string) []any {
	type source struct {
		Bytes []byte `json:"bytes"`
	}
	type media struct {
		Format string `json:"format"`
		Name   string `json:"name,omitempty"`
		Source source `json:"source"`
	}
	if len(p.Data) == 0 {
		return nil
	}
	kind, format := bedrockFormat(p.mediaType())
	switch kind {
	case "":
		return nil
	case "document": // the real name is in the text
		return []any{bedrockText{p.note()}, map[string]media{kind: {format, documentName(name), source{p.Data}}}}
	}
	return []any{map[string]media{kind: {format, "", source{p.Data}}}}
}

// bedrockFormat returns the kind of block for a part, and Converse's name for its
// format.
func bedrockFormat(mediaType string) (kind, format string) {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return "image", strings.TrimPrefix(mediaType, "image/")
	case "video/mp4", "video/webm", "video/mpeg":
		return "video", strings.TrimPrefix(mediaType, "video/")
	case "video/quicktime":
		return "video", "mov"
	case "video/x-matroska":
		return "video", "mkv"
	case "application/pdf":
		return "document", "pdf"
	case "text/csv", "text/html":
		return "document", strings.TrimPrefix(mediaType, "text/")
	case "text/markdown":
		return "document", "md"
	case "text/plain":
		return "document", "txt"
	case "application/msword":
		return "document", "doc"
	case "application/vnd.openxmlformats-officedocument.wordprocessingml.document":
		return "document", "docx"
	case "application/vnd.ms-excel":
		return "document", "xls"
	case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
		return "document", "xlsx"
	}
	return "", ""
}

// maxDocumentName is Converse's limit on the length of a document name, in
// characters.
const maxDocumentName = 200

// documentName returns a name with only the characters that Converse accepts
// for documents: letters, digits, single spaces, hyphens, parentheses and
// brackets.
func documentName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == ' ') {
			return r
		}
		return '-'
	}, name)
	return clean[max(0, len(clean)-maxDocumentName):]
}
