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

// splitSSE returns the data of server-sent events without OpenAI's "[DONE]". The last event
// needs no empty line after it, since JSON that is cut off is not valid, and neither does one that is a whole line:
// filters such as grep remove empty lines.
func splitSSE(data []byte) []json.RawMessage {
	var events []json.RawMessage
	var event []byte
	whole := false // event is a line of valid JSON
	lines := bytes.Split(bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")),
		[]byte("\r"), []byte("\n")), []byte("\n"))
	for _, line := range append(lines, nil) {
		rest, isData := bytes.CutPrefix(line, []byte("data:"))
		if len(line) == 0 || isData && whole {
			if len(event) > 0 && string(event) != "[DONE]" {
				events = append(events, event)
			}
			event, whole = nil, false
		}
		switch {
		case isData && event == nil:
			event = slices.Clip(bytes.TrimSpace(rest))
			whole = json.Valid(event)
		case isData:
			event = append(append(event, '\n'), rest...)
		}
	}
	return events
}

func splitLines(data []byte) []json.RawMessage {
	var events []json.RawMessage
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			events = append(events, line)
		}
	}
	return events
}

// pieces collects the params of a call that come in pieces. Some servers send an empty object
// before them, or start over in each piece.
type pieces struct {
	all, last []byte
	repeated  bool // each piece begins with the previous one
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

// isWhole reports whether the params are complete.
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

func quoted(s string) json.RawMessage {
	raw, _ := jsonx.Marshal(s) // cannot fail
	return raw
}

// joinText appends the text of a part of a stream to a member. JSON strings are joined without
// being decoded, so that a text in many parts costs no more than its length, and halves of a
// surrogate pair are joined. The values must have no spare capacity, as from [jsonx.Members].
func (o object) joinText(key string, part json.RawMessage) {
	if !isText(part) {
		return
	}
	if !utf8.Valid(part) {
		part = quoted(asText(part))
	}
	if whole := o[key]; isText(whole) {
		part = append(whole[:len(whole)-1], part[1:]...)
	}
	o[key] = part
}

// joined is an object that comes in parts, such as a message, a block or a step.
type joined struct {
	object
	lists  map[string]*joinedList // members to which items were added
	depth  int                    // nesting of the object; deep lists, below those of blocks, do not come in parts
	params string                 // the member with the params of a call
	input  pieces                 // of these params
}

// joinedList is a list whose items may come in parts, too.
type joinedList struct {
	items   []*joined
	byIndex map[string]*joined // by type and index, if they have one
}

// add adds a part. Texts and lists continue; for other values, the last that is not empty wins.
func (j *joined) add(part object) {
	for key, value := range part {
		list, isList := jsonx.Elements(value)
		switch {
		case jsonx.IsNull(value) || string(value) == `""`:
		case isList && j.depth < 2 &&
			!slices.ContainsFunc(list, func(raw json.RawMessage) bool { return asObject(raw) == nil }):
			j.addItems(key, list)
		case isText(value) && slices.Contains([]string{"text", "thinking", "summary", "data", "signature"}, key):
			if whole := j.object[key]; len(whole) > 2 && part.text("signature") != "" &&
				bytes.HasPrefix(value, whole[:len(whole)-1]) {
				delete(j.object, key) // LiteLLM repeats the text with its signature
			}
			j.joinText(key, value)
		default:
			j.object[key] = value
		}
	}
}

// addItems adds items to a list. Mistral's content is a text until it is a list.
func (j *joined) addItems(key string, items []json.RawMessage) {
	list := j.lists[key]
	if list == nil {
		before, _ := jsonx.Elements(j.object[key])
		if isText(j.object[key]) {
			before = append(before, textItem(j.object[key]))
		}
		items = append(before, items...)
		list = &joinedList{byIndex: map[string]*joined{}}
		if j.lists == nil {
			j.lists = map[string]*joinedList{}
		}
		j.lists[key] = list
	}
	for _, raw := range items {
		if item := asObject(raw); item != nil {
			list.add(item, j.depth+1)
		}
	}
}

func textItem(text json.RawMessage) json.RawMessage {
	return object{"type": quoted("text"), "text": text}.json()
}

// add adds an item or a part of one: some have an index, and a text continues the text before it.
func (l *joinedList) add(item object, depth int) {
	index := string(item["type"]) + string(item["index"])
	known := l.byIndex[index]
	if n := len(l.items); jsonx.IsNull(item["index"]) && n > 0 && l.items[n-1].goesOn(item) {
		known = l.items[n-1]
	}
	if known != nil {
		known.add(item)
		return
	}
	l.items = append(l.items, &joined{object: item, depth: depth})
	if !jsonx.IsNull(item["index"]) {
		l.byIndex[index] = l.items[len(l.items)-1]
	}
}

// goesOn reports whether an item continues a text. A signature ends a text.
func (j *joined) goesOn(item object) bool {
	return jsonx.IsNull(j.object["index"]) && j.text("signature") == "" && j.text("type") == item.text("type") &&
		slices.ContainsFunc([]string{"text", "thinking", "summary"}, func(key string) bool {
			return j.has(key) && item.has(key)
		})
}

// MarshalJSON writes the object as if it had not come in parts.
func (j *joined) MarshalJSON() ([]byte, error) {
	for key, list := range j.lists {
		raw, err := jsonx.Marshal(list.items)
		if err != nil {
			return nil, err
		}
		j.object[key] = raw
	}
	if len(j.input.text()) > 0 {
		j.object[j.params] = j.input.params()
	}
	return jsonx.Marshal(j.object)
}
