package provider

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// bedrock declares tools for Amazon Bedrock's Converse API (ToolSpecification):
// names match [a-zA-Z0-9_-]+ with at most 64 characters, and a description is
// absent or not empty. It requires the same plain root as Anthropic. With
// Options.Request the output is the value of toolConfig.
func bedrock() Format {
	return Format{
		Name:    "bedrock",
		Summary: "Amazon Bedrock Converse tools",
		expects: "output with a message, a message of role assistant with content, or a list of its blocks",
		decode:  decodeBedrock,
		media:   mediaLimits{image: 3_750_000, file: 4_500_000, pixels: 8000},
		callID:  "toolUseId",
		join:    joinBedrock,
		reply:   replyBedrock,
		rule:    dashedNames(),
		request: layout{open: `{"tools":[`, between: ",", close: "]}", empty: `{"tools":[]}`},
		prepare: (*encoder).prepareFlat,
		refuse:  refuseOddKeys,
		write: func(e *encoder, t *tool) {
			e.raw(`{"toolSpec":{"name":`)
			e.string(t.name)
			if t.def.Description != "" {
				e.text("description", t.def.Description)
			}
			e.raw(`,"inputSchema":{"json":`)
			e.value(t.schema)
			e.raw("}")
			e.writeStrict(t)
			e.raw("}}")
		},
		after: func(e *encoder, t *tool) {
			if point := e.cachePoint(t); point != nil {
				e.raw(`,{"cachePoint":{"type":"default"`)
				e.ttl(point)
				e.raw("}}")
			}
		},
	}
}

// decodeBedrock decodes a response of Amazon Bedrock's Converse operation (API
// version 2023-09-30), the message in it, the list of its content blocks, or
// one block.
func decodeBedrock(t *Turn, raw json.RawMessage) error {
	o := asObject(raw)
	blocks, err := bedrockBlocks(raw, o)
	if err != nil {
		return err
	}
	last, err := eachPart(blocks, t.bedrockBlock)
	return cmp.Or(err, t.ended(o.text("stopReason"), "", len(t.Calls) > 0, last))
}

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

// bedrockBlock adds the call of a content block and reports whether it has one. Tools that run on
// the server are blocks too, but need no answer.
func (t *Turn) bedrockBlock(block object) (called bool, err error) {
	switch use := asObject(block["toolUse"]); {
	case block.has("role"):
		return false, errors.New("it is a list of messages; send only the last message")
	case len(block) == 0 || block.has("type") || block.has("toolSpec"): // other providers' blocks have a type
		return false, errUnrecognized
	case use == nil || use.text("type") == "server_tool_use":
		return false, nil
	default:
		c := callOf(use, "toolUseId", "input")
		if c.kind != "" {
			c.Fault = "Calls of type " + c.kind + " are not supported. Call a declared tool."
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
	out := make([]map[string]result, len(answers))
	for i, a := range answers {
		c := t.Calls[i]
		r := result{ID: c.id, Content: a.blocks(bedrockText,
			func(n int, p part) []any { return bedrockMedia(p, fmt.Sprintf("%s %d", c.idText(), n+1)) })}
		if a.IsError {
			r.Status = "error"
		}
		out[i] = map[string]result{"toolResult": r}
	}
	return []any{message{"user", out}}
}

func bedrockText(s string) any { return map[string]string{"text": s} }

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
		return []any{bedrockText(p.Note()), map[string]media{kind: {format, documentName(name), source{p.Data}}}}
	}
	return []any{map[string]media{kind: {format, "", source{p.Data}}}}
}

// bedrockFormat returns the kind of block for a part, and Converse's name for its
// format.
func bedrockFormat(mediaType string) (kind, format string) {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "video/mp4", "video/webm", "video/mpeg":
		kind, format, _ = strings.Cut(mediaType, "/")
		return kind, format
	case "video/quicktime":
		return "video", "mov"
	case "video/x-matroska":
		return "video", "mkv"
	}
	format = map[string]string{
		"application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/markdown": "md", "text/plain": "txt",
		"application/msword": "doc", "application/vnd.ms-excel": "xls",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":       "xlsx",
	}[mediaType]
	if format != "" {
		kind = "document"
	}
	return kind, format
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

// isBedrockException returns the name of the exception in an event, or "" if it is not one.
func isBedrockException(o object) string {
	for name := range o {
		if len(o) == 1 && strings.HasSuffix(name, "Exception") {
			return name
		}
	}
	return ""
}

// joinBedrock joins the events of ConverseStream. Blocks of text have no event for their
// beginning.
func joinBedrock(events []json.RawMessage) (any, error) {
	var out struct {
		Output struct {
			Message message `json:"message"`
		} `json:"output"`
		StopReason string `json:"stopReason"`
	}
	content := []*bedrockBlock{}
	byIndex := map[string]*bedrockBlock{}
	blockOf := func(o object) *bedrockBlock {
		index := string(o["contentBlockIndex"])
		if byIndex[index] == nil {
			byIndex[index] = &bedrockBlock{joined: joined{object: object{"text": quoted("")}}}
			content = append(content, byIndex[index])
		}
		return byIndex[index]
	}
	for _, event := range events {
		o := asObject(event)
		if name := isBedrockException(o); name != "" {
			return nil, fmt.Errorf("the API returned an error: %s: %.500s", name, asObject(o[name]).text("message"))
		}
		start, delta := asObject(o["contentBlockStart"]), asObject(o["contentBlockDelta"])
		switch {
		case start != nil:
			for _, kind := range []string{"toolUse", "toolResult"} {
				if begun := asObject(asObject(start["start"])[kind]); begun != nil {
					b := blockOf(start)
					b.kind, b.object, b.params = kind, begun, "input"
				}
			}
		case delta != nil:
			b, d := blockOf(delta), asObject(delta["delta"])
			switch input := asObject(d["toolUse"]); {
			case b.kind == "toolUse":
				b.input.add([]byte(input.text("input")))
			case input != nil:
				return nil, errors.New("the beginning of a call is missing in the stream")
			case b.kind == "toolResult":
				b.add(object{"content": d["toolResult"]})
			case asObject(d["reasoningContent"]) != nil:
				b.kind = "reasoningContent"
				b.add(asObject(d["reasoningContent"]))
			default:
				b.add(object{"text": d["text"]})
			}
		case o.has("messageStop"):
			out.Output.Message = message{"assistant", content}
			out.StopReason = asObject(o["messageStop"]).text("stopReason")
			return out, nil
		}
	}
	return nil, errUnfinished
}

// bedrockBlock is a content block, joined from its beginning and deltas.
type bedrockBlock struct {
	joined        // the value of its member, but for texts
	kind   string // the name of its member, "" for a text
}

// MarshalJSON writes the block as decoding reads it.
func (b *bedrockBlock) MarshalJSON() ([]byte, error) {
	switch {
	case b.kind == "":
		return b.joined.MarshalJSON()
	case b.kind == "toolUse" && !b.has("input"):
		b.object["input"] = b.input.params()
	case b.kind == "reasoningContent" && !b.has("redactedContent"):
		return jsonx.Marshal(map[string]object{b.kind: {"reasoningText": b.object.json()}})
	case b.kind == "reasoningContent":
		delete(b.object, "text")
	}
	return jsonx.Marshal(map[string]*joined{b.kind: &b.joined})
}

// splitFrames returns the events in binary frames of the media type
// application/vnd.amazon.eventstream, each as an object with one member as in JSON Lines. A
// frame is: its length, the length of its headers, the checksum of both; headers; payload;
// the checksum of all before it.
func splitFrames(data []byte) ([]json.RawMessage, error) {
	const prelude, sum = 12, 4
	var events []json.RawMessage
	damaged := func(why string) error {
		return fmt.Errorf("frame %d of the stream is damaged: %s", len(events)+1, why)
	}
	for len(data) > 0 {
		if len(data) < prelude {
			return nil, errUnfinished
		}
		size, headers := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
		switch {
		case crc32.ChecksumIEEE(data[:8]) != binary.BigEndian.Uint32(data[8:]):
			return nil, damaged("its checksum is wrong")
		case size < prelude+sum || headers > size-prelude-sum:
			return nil, damaged("its lengths are wrong")
		case uint64(size) > uint64(len(data)):
			return nil, errUnfinished
		}
		frame := data[:size]
		data = data[size:]
		if crc32.ChecksumIEEE(frame[:size-sum]) != binary.BigEndian.Uint32(frame[size-sum:]) {
			return nil, damaged("its checksum is wrong")
		}
		name, err := eventName(frame[prelude : prelude+headers])
		if err != nil {
			return nil, damaged(err.Error())
		}
		payload := frame[prelude+headers : size-sum]
		if len(payload) == 0 {
			payload = []byte("{}")
		}
		events = append(events, fmt.Appendf(nil, "{%s:%s}", quoted(name), payload))
	}
	return events, nil
}

// eventName returns the kind of event or exception that the headers of a frame name.
func eventName(headers []byte) (string, error) {
	errShort := errors.New("its headers are cut off")
	sizes := [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16} // of values by type; -1: a length comes first
	name := ""
	for len(headers) > 0 {
		n := int(headers[0])
		if len(headers) < 1+n+1 {
			return "", errShort
		}
		key, kind := string(headers[1:1+n]), headers[1+n]
		headers = headers[1+n+1:]
		if int(kind) >= len(sizes) {
			return "", fmt.Errorf("a header has the unknown type %d", kind)
		}
		size := sizes[kind]
		if size < 0 {
			if len(headers) < 2 {
				return "", errShort
			}
			size, headers = int(binary.BigEndian.Uint16(headers)), headers[2:]
		}
		if len(headers) < size {
			return "", errShort
		}
		if key == ":event-type" || key == ":exception-type" {
			name = string(headers[:size])
		}
		headers = headers[size:]
	}
	return name, nil
}
