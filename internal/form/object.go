package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

type member struct {
	key   string
	value json.RawMessage
}

// object is a decoded object with its members in the original order.
type object []member

// members decodes one object in order. A duplicate key is an error, because the server
// might read another value than the one that is shown.
func members(raw json.RawMessage) (object, error) {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil, errors.New("is not an object")
	}
	var o object
	seen := map[string]bool{}
	for key, value := range jsonx.Members(raw) {
		if seen[key] {
			return nil, fmt.Errorf("repeats %q", text.Clip(key, maxTitle))
		}
		seen[key] = true
		o = append(o, member{key, value})
	}
	return o, nil
}

func (o object) with(key string, value json.RawMessage) object {
	for i, m := range o {
		if m.key == key {
			o = slices.Clone(o)
			o[i].value = value
			return o
		}
	}
	return append(slices.Clip(o), member{key, value})
}

func (o object) without(key string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.key == key })
}

func (o object) encode() json.RawMessage {
	out := []byte("{")
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendQuote(out, m.key), ':'), m.value...)
	}
	return append(out, '}')
}

func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// has reports whether a key has a value other than null.
func (o object) has(key string) bool {
	v := o.get(key)
	return len(v) > 0 && string(v) != "null"
}

func (o object) text(key string) string {
	s, _ := jsonx.Text(o.get(key))
	return s
}

func (o object) texts(key string) []string {
	var list []string
	if json.Unmarshal(o.get(key), &list) != nil {
		return nil
	}
	return list
}

func (o object) objects(key string) []object {
	var list []json.RawMessage
	if json.Unmarshal(o.get(key), &list) != nil {
		return nil
	}
	out := make([]object, 0, len(list))
	for _, raw := range list {
		m, err := members(raw)
		if err != nil {
			return nil
		}
		out = append(out, m)
	}
	return out
}

func (o object) number(key string) *float64 {
	var f float64
	if !o.has(key) || json.Unmarshal(o.get(key), &f) != nil {
		return nil
	}
	return &f
}

// count reads a number of characters or items.
func (o object) count(key string) *int {
	f := o.number(key)
	if f == nil || *f < 0 || *f > 1<<30 {
		return nil
	}
	n := int(*f)
	return &n
}
