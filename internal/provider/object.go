package provider

import (
	"encoding/json"
	"maps"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// object is a JSON object whose values are not decoded yet.
type object map[string]json.RawMessage

// asObject returns the members of raw, or nil if it is not an object.
func asObject(raw json.RawMessage) object {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil
	}
	return maps.Collect(jsonx.Members(raw))
}

// asText returns the string in raw, or "" if it is not a string.
func asText(raw json.RawMessage) string {
	s, _ := jsonx.Text(raw)
	return s
}

func isText(raw json.RawMessage) bool { return jsonx.KindOf(raw) == jsonx.String }

func (o object) has(key string) bool { _, ok := o[key]; return ok }

func (o object) text(key string) string { return asText(o[key]) }

// either returns the value of the first key that exists: some clients use
// camelCase, others snake_case.
func (o object) either(keys ...string) json.RawMessage {
	for _, k := range keys {
		if raw, ok := o[k]; ok {
			return raw
		}
	}
	return nil
}

// params returns params that are an object or a string that contains one. It
// returns nil for null, which some models write for a tool without params.
func params(raw json.RawMessage) []byte {
	if isText(raw) {
		raw = []byte(asText(raw))
	}
	if jsonx.IsNull(raw) {
		return nil
	}
	return raw
}

// textID returns an id that the answer must repeat, or nil if there is none: "null" is what
// Mistral's streams have in place of one.
func textID(raw json.RawMessage) json.RawMessage {
	if id := asText(raw); id == "" || id == "null" {
		return nil
	}
	return raw
}

// requestID returns an id that is a string or, as in JSON-RPC, a number.
func requestID(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) == jsonx.Number {
		return raw
	}
	return textID(raw)
}
