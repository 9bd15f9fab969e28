package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// object is a JSON object that keeps the order of its keys and, below what is
// edited, the bytes of its values.
type object struct {
	keys   []string
	values map[string]any // json.RawMessage, *object or *list
}

type list struct{ items []json.RawMessage }

func newObject() *object { return &object{values: map[string]any{}} }

func decodeObject(raw json.RawMessage) (*object, error) {
	raw, err := registry.DecodeParams("", raw)
	if err != nil {
		return nil, err
	}
	o := newObject()
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		o.put(key.(string), v) // CheckJSON saw that keys are strings
	}
	return o, nil
}

func (o *object) put(key string, value any) {
	if !slices.Contains(o.keys, key) {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// parent returns the object that holds the last key of path, making objects on
// the way.
func (o *object) parent(arg string, path []string) (*object, error) {
	for _, key := range path[:len(path)-1] {
		switch v := o.values[key].(type) {
		case nil:
			next := newObject()
			o.put(key, next)
			o = next
		case *object:
			o = v
		case json.RawMessage:
			if len(v) == 0 || v[0] != '{' {
				return nil, &Error{Arg: arg, Message: fmt.Sprintf("%q is no object, so nothing can be set in it", key)}
			}
			next, err := decodeObject(v)
			if err != nil {
				return nil, err
			}
			o.put(key, next)
			o = next
		default:
			return nil, &Error{Arg: arg, Message: fmt.Sprintf("%q is a list, so nothing can be set in it", key)}
		}
	}
	return o, nil
}

func (o *object) setAt(arg string, path []string, value json.RawMessage) error {
	if slices.Contains(path, "") {
		return &Error{Arg: arg, Message: fmt.Sprintf("the key %q has an empty part", strings.Join(path, "."))}
	}
	at, err := o.parent(arg, path)
	if err != nil {
		return err
	}
	at.put(path[len(path)-1], value)
	return nil
}

// appendAt adds an element to a list that arguments build; the first one
// replaces what the base had.
func (o *object) appendAt(arg string, path []string, value json.RawMessage, repeated bool) error {
	if !repeated {
		if err := o.setAt(arg, path, nil); err != nil {
			return err
		}
	}
	at, err := o.parent(arg, path)
	if err != nil {
		return err
	}
	key := path[len(path)-1]
	l, ok := at.values[key].(*list)
	if !ok {
		l = &list{}
		at.put(key, l)
	}
	l.items = append(l.items, value)
	return nil
}

func (o *object) encode() json.RawMessage {
	var b bytes.Buffer
	o.write(&b)
	return b.Bytes()
}

func (o *object) write(b *bytes.Buffer) {
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(key))
		b.WriteByte(':')
		switch v := o.values[key].(type) {
		case *object:
			v.write(b)
		case *list:
			b.WriteByte('[')
			b.Write(bytes.Join(rawBytes(v.items), []byte(",")))
			b.WriteByte(']')
		case json.RawMessage:
			b.Write(v)
		}
	}
	b.WriteByte('}')
}

func rawBytes(items []json.RawMessage) [][]byte {
	out := make([][]byte, len(items))
	for i, it := range items {
		out[i] = it
	}
	return out
}
