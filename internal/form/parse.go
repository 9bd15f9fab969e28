package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// member is one entry of an object.
type member struct {
	key   string
	value json.RawMessage
}

// object is a decoded object in the order in which it was sent.
type object []member

// members decodes one object, keeping its order. A key that comes twice is an
// error: what is shown must be what the server checks.
func members(raw json.RawMessage) (object, error) {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil, errors.New("is no object")
	}
	var o object
	seen := map[string]bool{}
	for key, value := range jsonx.Members(raw) {
		if seen[key] {
			return nil, fmt.Errorf("has %q twice", text.Clip(key, maxTitle))
		}
		seen[key] = true
		o = append(o, member{key, value})
	}
	return o, nil
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

func parseField(name string, raw json.RawMessage) (Field, error) {
	o, err := members(raw)
	if err != nil {
		return Field{}, err
	}
	f := Field{Name: name, Title: text.Clip(o.text("title"), maxTitle), Description: text.Clip(o.text("description"), maxText)}
	preset := o.get("default")
	if inner := optional(o); inner != nil {
		o = inner
	}
	if err := f.parseKind(o); err != nil {
		return f, err
	}
	if f.empty() {
		return f, errors.New("no answer could fit it")
	}
	if o.has("default") {
		preset = o.get("default")
	}
	if len(preset) > 0 && f.Check(preset) == nil { // one that does not fit is none
		f.Default = preset
	}
	return f, nil
}

// optional unwraps {"anyOf":[X,{"type":"null"}]}, which libraries write for a
// field that may be left out, and returns X.
func optional(o object) object {
	both := o.objects("anyOf")
	if len(both) != 2 || o.has("type") {
		return nil
	}
	for i := range both {
		if both[i].text("type") == "null" {
			return both[1-i]
		}
	}
	return nil
}

func (f *Field) parseKind(o object) error {
	switch kind := kindOf(o); kind {
	case "string":
		return f.parseText(o)
	case "number", "integer":
		f.Kind, f.Minimum, f.Max = Kind(kind), o.number("minimum"), o.number("maximum")
	case "boolean":
		f.Kind = Boolean
	case "array":
		items, err := members(o.get("items"))
		if err != nil {
			return errors.New("a list that does not say of what")
		}
		f.Kind, f.Least, f.Most = Choices, o.count("minItems"), o.count("maxItems")
		for _, key := range []string{"anyOf", "oneOf"} {
			if items.has(key) {
				f.Options = titled(items, key)
			}
		}
		if items.has("enum") {
			f.Options = named(items)
		}
		return f.checkOptions()
	case "object":
		return errors.New("it is nested")
	default:
		return fmt.Errorf("a type that forms do not have: %.100s", o.get("type"))
	}
	return nil
}

// kindOf returns the type of a field, which may be a list of it and null.
func kindOf(o object) string {
	if kind := o.text("type"); kind != "" {
		return kind
	}
	list := o.texts("type")
	if len(list) == 2 && list[0] == "null" {
		return list[1]
	}
	if len(list) == 2 && list[1] == "null" {
		return list[0]
	}
	return ""
}

func (f *Field) parseText(o object) error {
	switch {
	case o.has("enum"):
		f.Kind, f.Options = Choice, named(o)
		return f.checkOptions()
	case o.has("oneOf"):
		f.Kind, f.Options = Choice, titled(o, "oneOf")
		return f.checkOptions()
	case o.has("anyOf"):
		f.Kind, f.Options = Choice, titled(o, "anyOf")
		return f.checkOptions()
	}
	f.Kind, f.Format, f.Pattern = Text, o.text("format"), o.text("pattern")
	f.Least, f.Most = o.count("minLength"), o.count("maxLength")
	if f.Pattern != "" {
		f.pattern, _ = regexp.Compile(f.Pattern) // what RE2 does not take, the server checks
		f.Pattern = text.Clip(f.Pattern, maxTitle)
	}
	return nil
}

// named reads the options of an enum, with the titles that enumNames gave before
// revision 2025-11-25.
func named(o object) []Option {
	values, titles := o.texts("enum"), o.texts("enumNames")
	out := make([]Option, len(values))
	for i, v := range values {
		out[i].Value = v
		if len(titles) == len(values) {
			out[i].Title = text.Clip(titles[i], maxTitle)
		}
	}
	return out
}

// titled reads options written as {"const","title"}.
func titled(o object, key string) []Option {
	list := o.objects(key)
	out := make([]Option, 0, len(list))
	for _, e := range list {
		var value string
		if !e.has("const") || json.Unmarshal(e.get("const"), &value) != nil {
			return nil
		}
		out = append(out, Option{Value: value, Title: text.Clip(e.text("title"), maxTitle)})
	}
	return out
}

func (f *Field) checkOptions() error {
	switch n := len(f.Options); {
	case n == 0:
		return errors.New("choices that are missing, or no text")
	case n > MaxOptions:
		return fmt.Errorf("%d choices, the limit is %d", n, MaxOptions)
	}
	seen := map[string]bool{}
	for _, o := range f.Options {
		if seen[o.Value] {
			return fmt.Errorf("the choice %q comes twice", text.Clip(o.Value, maxTitle))
		}
		seen[o.Value] = true
	}
	return nil
}

// empty reports whether the bounds leave nothing to answer.
func (f *Field) empty() bool {
	return f.Least != nil && f.Most != nil && *f.Least > *f.Most ||
		f.Minimum != nil && f.Max != nil && *f.Minimum > *f.Max ||
		f.Kind == Choices && f.Least != nil && *f.Least > len(f.Options)
}
