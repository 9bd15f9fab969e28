package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// A response may be a stream of events, as it was received: server-sent events, for Gemini
// also a JSON array of chunks, and for Bedrock JSON Lines or binary frames. The events are
// joined to one response, as the providers' SDKs do. A stream that ends before the response does is
// an error, since calls may be missing.

// errUnfinished reports that a stream has no event that ends the response.
var errUnfinished = errors.New("the stream ended before the response was finished; request the response again")

// splitStream returns the events of a stream; nil if the data is not a stream.
func (f Format) splitStream(data []byte) ([]json.RawMessage, error) {
	var events []json.RawMessage
	switch {
	case f.join == nil:
		return nil, nil
	case isSSE(data):
		events = splitSSE(data)
	case f.Name == "bedrock" && bytes.HasPrefix(data, []byte{0}): // the first byte of a length
		var err error
		if events, err = splitFrames(data); err != nil {
			return nil, err
		}
	case f.Name == "bedrock" && isBedrockEvent(data):
		events = splitLines(data)
	case f.Name == "gemini" && isGeminiChunks(data):
		events, _ = jsonx.Elements(data)
	default:
		return nil, nil
	}
	for i, event := range events {
		err := registry.CheckJSON(event)
		if err != nil && i == len(events)-1 {
			return nil, errUnfinished // it is cut off
		}
		if err != nil {
			return nil, fmt.Errorf("event %d of the stream is not valid JSON: %s", i+1, err.Message)
		}
	}
	if len(events) == 0 {
		return nil, errUnfinished
	}
	return events, nil
}

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

// text returns what the pieces are together.
func (p *pieces) text() []byte {
	if p.repeated && registry.CheckJSON(p.all) != nil && registry.CheckJSON(p.last) == nil {
		return p.last
	}
	return p.all
}

// isWhole reports whether nothing can follow.
func (p *pieces) isWhole() bool { return registry.CheckJSON(p.text()) == nil }

// params returns the params as JSON: as a string if they are cut off, so that the response stays
// valid JSON.
func (p *pieces) params() json.RawMessage {
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
