package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// Parse parses a requested schema. The error says why the form cannot be shown, and may
// quote names from the schema.
func Parse(schema json.RawMessage) (*Form, error) {
	if len(schema) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, but the limit is %d", len(schema), maxSchema)
	}
	whole, err := jsonx.Parse(schema, jsonx.Options{})
	if err != nil {
		return nil, errors.New("its schema is not valid JSON")
	}
	if err := checkFlat(whole, 0); err != nil {
		return nil, err
	}
	root, err := members(schema)
	if err != nil {
		return nil, fmt.Errorf("its schema %w", err)
	}
	if kind := root.text("type"); root.has("type") && kind != "object" {
		return nil, errors.New("its schema must have type object")
	}
	f := &Form{Schema: schema}
	if !root.has("properties") {
		return f, nil
	}
	given, settled := root.get("properties"), false
	if jsonx.IsEmptyList(given) {
		given, settled = json.RawMessage("{}"), true
	}
	properties, err := members(given)
	if err != nil {
		return nil, fmt.Errorf("the properties of its schema: %w", err)
	}
	if len(properties) > maxFields {
		return nil, fmt.Errorf("it has %d fields, but the limit is %d", len(properties), maxFields)
	}
	required := root.texts("required")
	for i, p := range properties {
		field, err := parseField(p.key, p.value)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", text.Clip(p.key, maxTitle), err)
		}
		field.Required = slices.Contains(required, p.key)
		f.Fields = append(f.Fields, field)
		if plain := plainField(p.value); plain != nil {
			properties[i].value, settled = plain, true
		}
	}
	if settled {
		f.Schema = root.with("properties", properties.encode()).encode()
	}
	return f, nil
}

// plainField returns the schema of a field with a type that is its kind; nil if it has one.
func plainField(raw json.RawMessage) json.RawMessage {
	o, _ := members(raw) // it was parsed
	if o.text("type") != "" {
		return nil
	}
	if inner := optional(o); inner != nil {
		o = o.without("anyOf")
		for _, m := range inner {
			if !o.has(m.key) {
				o = o.with(m.key, m.value)
			}
		}
	}
	o = o.with("type", json.RawMessage(jsonx.Quote(kindOf(o))))
	if !o.has("default") { // null, for a value that may be absent
		o = o.without("default")
	}
	return o.encode()
}

// checkFlat rejects references and deep nesting anywhere in a decoded schema.
func checkFlat(v *jsonx.Value, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("its schema is nested more than %d deep", maxDepth)
	}
	for _, m := range v.Members {
		if m.Name == "$ref" || m.Name == "$dynamicRef" || m.Name == "$recursiveRef" {
			return errors.New("its schema contains references")
		}
		if err := checkFlat(m.Value, depth+1); err != nil {
			return err
		}
	}
	for _, item := range v.Items {
		if err := checkFlat(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func parseField(name string, raw json.RawMessage) (Field, error) {
	o, err := members(raw)
	if err != nil {
		return Field{}, err
	}
	f := Field{Name: name, Title: text.Clip(o.text("title"), maxTitle),
		Description: text.Clip(o.text("description"), maxText)}
	preset := o.get("default")
	if inner := optional(o); inner != nil {
		o = inner
	}
	if err := f.parseKind(o); err != nil {
		return f, err
	}
	if f.empty() {
		return f, errors.New("no answer can satisfy it")
	}
	if o.has("default") {
		preset = o.get("default")
	}
	if len(preset) > 0 && f.Check(preset) == nil { // ignore one that does not fit
		f.Default = preset
	}
	return f, nil
}

// optional unwraps {"anyOf":[X,{"type":"null"}]}, which libraries write for an
// optional field, and returns X.
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
		f.Kind, f.Minimum, f.Maximum = Kind(kind), o.number("minimum"), o.number("maximum")
	case "boolean":
		f.Kind = Boolean
	case "array":
		items, err := members(o.get("items"))
		if err != nil {
			return errors.New("a list without a type for its items")
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
		return fmt.Errorf("a type that forms do not support: %.100s", o.get("type"))
	}
	return nil
}

// kindOf returns the type of a field, which may be a list of the type and null. Choices are text.
func kindOf(o object) string {
	switch kind := o.text("type"); {
	case kind != "":
		return kind
	case !o.has("type") && (o.has("enum") || o.has("oneOf") || o.has("anyOf")):
		return "string"
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
		f.pattern = schema.Pattern(f.Pattern) // if RE2 does not support it, the server checks it
		f.Pattern = text.Clip(f.Pattern, maxTitle)
	}
	return nil
}

// named reads the options of an enum with the titles in enumNames, as before
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
		return errors.New("choices that are missing or not text")
	case n > maxOptions:
		return fmt.Errorf("%d choices, but the limit is %d", n, maxOptions)
	}
	seen := map[string]bool{}
	for _, o := range f.Options {
		if seen[o.Value] {
			return fmt.Errorf("the choice %q occurs twice", text.Clip(o.Value, maxTitle))
		}
		seen[o.Value] = true
	}
	return nil
}

// empty reports whether the bounds exclude every answer.
func (f *Field) empty() bool {
	return f.Least != nil && f.Most != nil && *f.Least > *f.Most ||
		f.Minimum != nil && f.Maximum != nil && *f.Minimum > *f.Maximum ||
		f.Kind == Choices && f.Least != nil && *f.Least > len(f.Options)
}

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
