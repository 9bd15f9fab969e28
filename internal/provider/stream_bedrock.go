package provider

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// isBedrockEvent reports whether the first line of data is an event of ConverseStream.
func isBedrockEvent(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	o := asObject(line)
	return o.has("messageStart") || o.has("contentBlockStart") || o.has("contentBlockDelta") || isBedrockException(o) != ""
}

// isBedrockException returns the name of the exception that an event is, or "".
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
	type use struct {
		ID    json.RawMessage `json:"toolUseId"`
		Name  json.RawMessage `json:"name"`
		Type  json.RawMessage `json:"type,omitempty"`
		Input json.RawMessage `json:"input,omitempty"`
	}
	type block struct {
		Text      *string           `json:"text,omitempty"`
		Use       *use              `json:"toolUse,omitempty"`
		Reasoning *bedrockReasoning `json:"reasoningContent,omitempty"`

		input strings.Builder
	}
	type message struct {
		Role    string   `json:"role"`
		Content []*block `json:"content"`
	}
	var out struct {
		Output struct {
			Message message `json:"message"`
		} `json:"output"`
		StopReason string `json:"stopReason"`
	}
	m := &out.Output.Message
	m.Role, m.Content = "assistant", []*block{}
	byIndex := map[string]*block{}
	blockOf := func(o object) *block {
		index := string(o["contentBlockIndex"])
		if byIndex[index] == nil {
			byIndex[index] = &block{Text: new(string)}
			m.Content = append(m.Content, byIndex[index])
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
			if u := asObject(asObject(start["start"])["toolUse"]); u != nil {
				b := blockOf(start)
				b.Text, b.Use = nil, &use{ID: u["toolUseId"], Name: u["name"], Type: u["type"]}
			}
		case delta != nil:
			b, d := blockOf(delta), asObject(delta["delta"])
			if input := asObject(d["toolUse"]); b.Use != nil {
				b.input.WriteString(input.text("input"))
			} else if input != nil {
				return nil, errors.New("the beginning of a call is missing in the stream")
			}
			if isText(d["text"]) && b.Text != nil {
				*b.Text += d.text("text")
			}
			if r := asObject(d["reasoningContent"]); r != nil {
				if b.Reasoning == nil {
					b.Text, b.Reasoning = nil, &bedrockReasoning{}
				}
				b.Reasoning.add(r)
			}
		case o.has("messageStop"):
			for _, b := range m.Content {
				if b.Use != nil {
					b.Use.Input = joinedParams(b.input.String())
				}
			}
			out.StopReason = asObject(o["messageStop"]).text("stopReason")
			return out, nil
		}
	}
	return nil, errUnfinished
}

// bedrockReasoning is the content of a block of reasoning.
type bedrockReasoning struct {
	Text     object          `json:"reasoningText,omitempty"`
	Redacted json.RawMessage `json:"redactedContent,omitempty"`
}

func (r *bedrockReasoning) add(delta object) {
	if delta.has("redactedContent") {
		r.Redacted = delta["redactedContent"]
		return
	}
	if r.Text == nil {
		r.Text = object{}
	}
	r.Text.joinText("text", delta["text"])
	r.Text.joinText("signature", delta["signature"])
}

// splitFrames returns the events in binary frames of the media type
// application/vnd.amazon.eventstream, each as an object with one member as in JSON Lines. A
// frame is: its length, the length of its headers, the checksum of both; headers; payload;
// the checksum of all before it.
func splitFrames(data []byte) ([]json.RawMessage, error) {
	const prelude, sum = 12, 4
	var events []json.RawMessage
	for len(data) > 0 {
		if len(data) < prelude {
			return nil, errUnfinished
		}
		size, headers := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
		if crc32.ChecksumIEEE(data[:8]) != binary.BigEndian.Uint32(data[8:]) {
			return nil, fmt.Errorf("frame %d of the stream is damaged: its checksum is wrong", len(events)+1)
		}
		if size < prelude+sum || headers > size-prelude-sum {
			return nil, fmt.Errorf("frame %d of the stream is damaged: its lengths are wrong", len(events)+1)
		}
		if uint64(size) > uint64(len(data)) {
			return nil, errUnfinished
		}
		frame := data[:size]
		data = data[size:]
		if crc32.ChecksumIEEE(frame[:size-sum]) != binary.BigEndian.Uint32(frame[size-sum:]) {
			return nil, fmt.Errorf("frame %d of the stream is damaged: its checksum is wrong", len(events)+1)
		}
		name, err := eventName(frame[prelude : prelude+headers])
		if err != nil {
			return nil, fmt.Errorf("frame %d of the stream is damaged: %w", len(events)+1, err)
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
