package dialogue

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// object is a JSON object whose values are not looked at yet.
type object map[string]json.RawMessage

// asObject returns the members of raw, nil where it is no object.
func asObject(raw json.RawMessage) object {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil
	}
	o := object{}
	for name, value := range jsonx.Members(raw) {
		o[name] = value
	}
	return o
}

// asText returns the string that raw is, "" where it is none.
func asText(raw json.RawMessage) string {
	s, _ := jsonx.Text(raw)
	return s
}

func isText(raw json.RawMessage) bool { return jsonx.KindOf(raw) == jsonx.String }

func (o object) has(key string) bool { _, ok := o[key]; return ok }

func (o object) text(key string) string { return asText(o[key]) }

// either returns the value of the first key that is there: some clients write
// camelCase, some snake_case.
func (o object) either(keys ...string) json.RawMessage {
	for _, k := range keys {
		if raw, ok := o[k]; ok {
			return raw
		}
	}
	return nil
}

// params returns params that stand as an object or as text that holds one.
func params(raw json.RawMessage) []byte {
	switch {
	case jsonx.IsNull(raw):
		return nil
	case isText(raw):
		return []byte(asText(raw))
	}
	return raw
}

// textID returns an id that the answer has to carry, nil where there is no text
// that is one.
func textID(raw json.RawMessage) json.RawMessage {
	if asText(raw) == "" {
		return nil
	}
	return raw
}

// requestID is a text or, as JSON-RPC has it, a number.
func requestID(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) == jsonx.Number {
		return raw
	}
	return textID(raw)
}
