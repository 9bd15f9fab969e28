package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// A response may be a stream of events, as it was received: server-sent events, for Gemini
// also a JSON array of chunks, and for Bedrock JSON Lines or binary frames. The events are
// joined to one response, as the providers' SDKs do. A stream that ends before the response does is
// an error, since calls may be missing.

// errUnfinished reports that a stream has no event that ends the response.
var errUnfinished = errors.New("the stream ended before the response was finished; request the response again")

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
	lines := bytes.Split(bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")),
		[]byte("\r"), []byte("\n")), []byte("\n"))
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

// pieces are the params of a call that come in pieces. Some servers send an empty object before
// them, or begin anew in each piece.
type pieces struct {
	all, last []byte
	repeated  bool // each piece begins with the one before it
}

func (p *pieces) add(next []byte) {
	if len(next) == 0 {
		return
	}
	if string(p.all) == "{}" {
		*p = pieces{}
	}
	p.repeated = (p.last == nil || p.repeated) && bytes.HasPrefix(next, p.last)
	p.all, p.last = append(p.all, next...), next
}

func (p *pieces) text() []byte {
	if p.repeated && registry.CheckJSON(p.all) != nil && registry.CheckJSON(p.last) == nil {
		return p.last
	}
	return p.all
}

// isWhole reports whether nothing can follow.
func (p *pieces) isWhole() bool { return registry.CheckJSON(p.text()) == nil }

// params returns the params as JSON: {} for none, and a string if they are cut off, so that the
// response stays valid JSON.
func (p *pieces) params() json.RawMessage {
	if len(p.all) == 0 {
		return json.RawMessage("{}")
	}
	if !p.isWhole() {
		return quoted(string(p.text()))
	}
	return p.text()
}

// quoted returns s as a JSON string.
func quoted(s string) json.RawMessage {
	raw, _ := jsonx.Marshal(s) // cannot fail
	return raw
}

// joinText adds the text of a part of a stream to a member of what is put together.
func (o object) joinText(key string, part json.RawMessage) {
	if isText(part) {
		o[key] = joinTexts(o[key], part)
	}
}

// joinTexts returns two JSON strings as one; the first may be missing. They are joined without being decoded,
// so that a text in many parts costs no more than its length, and halves of a surrogate pair become one
// character. The memory of each must end where it does, as for [jsonx.Members], and the first must not be used
// again.
func joinTexts(whole, part json.RawMessage) json.RawMessage {
	if !utf8.Valid(part) {
		part = quoted(asText(part))
	}
	if !isText(whole) {
		return part
	}
	return append(whole[:len(whole)-1], part[1:]...)
}
