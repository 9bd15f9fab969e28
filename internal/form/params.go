package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// Params returns two forms for the params of a tool that are missing in given, an object:
// one for the required params and one for the others. A param that no other field can
// represent, such as an object, is typed as JSON. Whether the values match the whole
// schema is checked by the call.
func Params(inputSchema, given json.RawMessage) (needed, more *Form) {
	needed, more = &Form{}, &Form{}
	root, err := jsonx.Parse(inputSchema, jsonx.Options{})
	if err != nil {
		return needed, more
	}
	refs := schema.NewRefs(root)
	if root, err = refs.Resolve(root); err != nil || root.Get("properties") == nil {
		return needed, more
	}
	required := schema.Required(root)
	for _, property := range root.Get("properties").Members {
		if jsonx.Get(given, property.Name) != nil {
			continue
		}
		field := paramField(refs, property.Name, property.Value)
		if field.Required = required[property.Name]; field.Required {
			needed.Fields = append(needed.Fields, field)
		} else {
			more.Fields = append(more.Fields, field)
		}
	}
	return needed, more
}

func paramField(refs *schema.Refs, name string, property *jsonx.Value) Field {
	resolved, err := refs.Resolve(property)
	if err != nil || !resolved.Is(jsonx.Object) {
		return Field{Name: name, Kind: Text}
	}
	if words := resolved.Get("enum"); words != nil && resolved.Get("type") == nil &&
		!slices.ContainsFunc(words.Items, func(v *jsonx.Value) bool { return !v.Is(jsonx.String) }) {
		resolved = resolved.Clone()
		resolved.Set("type", jsonx.NewString("string"))
	}
	f, err := parseField(name, resolved.AppendTo(nil))
	if err != nil { // types that questions of servers must not have
		f = Field{Name: name, Title: f.Title, Description: f.Description, Kind: otherKind(resolved)}
		if items := resolved.Get("items"); items.Is(jsonx.Object) && resolved.Get("type").IsText("array") {
			if item := paramField(refs, name, items); item.Kind != JSON && item.Kind != List {
				f.Kind, f.Item = List, &item
			}
		}
	}
	if d := property.Get("description").Text(); d != "" {
		f.Description = d
	}
	return f
}

// otherKind returns JSON if the schema has a type, or Text, as for arguments of the form
// k=v.
func otherKind(s *jsonx.Value) Kind {
	for _, keyword := range []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items"} {
		if s.Get(keyword) != nil {
			return JSON
		}
	}
	return Text
}

// readJSON parses any JSON that is valid in params.
func readJSON(typed string) (json.RawMessage, error) {
	if err := jsonx.Check([]byte(typed), jsonx.Options{Strict: true}); err != nil {
		return nil, fmt.Errorf("that is not JSON: %w", err)
	}
	return json.RawMessage(typed), nil
}

// readList parses a list: JSON, or items separated by commas.
func (f *Field) readList(typed string) (json.RawMessage, error) {
	if strings.HasPrefix(typed, "[") {
		return readJSON(typed)
	}
	list := []json.RawMessage{}
	for word := range strings.SplitSeq(typed, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		item, err := f.Item.Read(word)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	if len(list) == 0 {
		return nil, errors.New("that is not an item; [] is the empty list")
	}
	return json.Marshal(list)
}

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
