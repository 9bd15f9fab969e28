package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

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
	root, err := jsonx.Parse(schema, jsonx.Options{})
	if err != nil {
		return nil, errors.New("its schema is not valid JSON")
	}
	if key, twice := jsonx.DuplicateKey(schema); twice { // the server might read another value than the one that is shown
		return nil, fmt.Errorf("its schema repeats %q", text.Clip(key, maxTitle))
	}
	if err := checkFlat(root, 0); err != nil {
		return nil, err
	}
	if !root.Is(jsonx.Object) {
		return nil, errors.New("its schema is not an object")
	}
	if hasValue(root, "type") && !root.Get("type").IsText("object") {
		return nil, errors.New("its schema must have type object")
	}
	f := &Form{Schema: schema}
	if !hasValue(root, "properties") {
		return f, nil
	}
	properties, settled := root.Get("properties"), false
	if properties.Is(jsonx.Array) && len(properties.Items) == 0 { // PHP writes an empty object as a list
		properties, settled = jsonx.NewObject(), true
		root.Set("properties", properties)
	}
	if !properties.Is(jsonx.Object) {
		return nil, errors.New("the properties of its schema: is not an object")
	}
	if len(properties.Members) > maxFields {
		return nil, fmt.Errorf("it has %d fields, but the limit is %d", len(properties.Members), maxFields)
	}
	required := texts(root.Get("required"))
	for _, p := range properties.Members {
		field, err := parseField(p.Name, p.Value)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", text.Clip(p.Name, maxTitle), err)
		}
		field.Required = slices.Contains(required, p.Name)
		f.Fields = append(f.Fields, field)
		settled = setType(p.Value) || settled
	}
	if settled {
		f.Schema = root.JSON()
	}
	return f, nil
}

// setType gives the schema of a field its kind as the type, and reports false if it has one.
func setType(o *jsonx.Value) bool {
	if o.Get("type").Text() != "" {
		return false
	}
	if inner := optional(o); inner != nil {
		o.Remove("anyOf")
		for _, m := range inner.Members {
			if !hasValue(o, m.Name) {
				o.Set(m.Name, m.Value)
			}
		}
	}
	o.Set("type", jsonx.NewString(kindOf(o)))
	if !hasValue(o, "default") { // null, for a value that may be absent
		o.Remove("default")
	}
	return true
}

// hasValue reports whether a key has a value other than null.
func hasValue(o *jsonx.Value, key string) bool {
	v := o.Get(key)
	return v != nil && !v.Is(jsonx.Null)
}

// texts returns the strings of a list, in which null may be too. It returns nil if anything else is.
func texts(list *jsonx.Value) []string {
	for _, v := range list.Elements() {
		if !v.Is(jsonx.String) && !v.Is(jsonx.Null) {
			return nil
		}
	}
	return list.Strings()
}

// number returns a number. It returns nil if v is not a number or does not fit.
func number(v *jsonx.Value) *float64 {
	if !v.Is(jsonx.Number) {
		return nil
	}
	f, err := strconv.ParseFloat(v.Token, 64)
	if err != nil {
		return nil
	}
	return &f
}

// count returns a number of characters or items.
func count(v *jsonx.Value) *int {
	f := number(v)
	if f == nil || *f < 0 || *f > 1<<30 {
		return nil
	}
	n := int(*f)
	return &n
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

func parseField(name string, o *jsonx.Value) (Field, error) {
	if !o.Is(jsonx.Object) {
		return Field{}, errors.New("is not an object")
	}
	f := Field{Name: name, Title: text.Clip(o.Get("title").Text(), maxTitle),
		Description: text.Clip(o.Get("description").Text(), maxText)}
	preset := o.Get("default")
	if inner := optional(o); inner != nil {
		o = inner
	}
	if err := f.parseKind(o); err != nil {
		return f, err
	}
	if f.empty() {
		return f, errors.New("no answer can satisfy it")
	}
	if hasValue(o, "default") {
		preset = o.Get("default")
	}
	if preset != nil && f.Check(preset.JSON()) == nil { // ignore one that does not fit
		f.Default = preset.JSON()
	}
	return f, nil
}

// optional unwraps {"anyOf":[X,{"type":"null"}]}, which libraries write for an
// optional field, and returns X.
func optional(o *jsonx.Value) *jsonx.Value {
	both := o.Get("anyOf").Elements()
	if len(both) != 2 || hasValue(o, "type") {
		return nil
	}
	for i := range both {
		if both[i].Get("type").IsText("null") && both[1-i].Is(jsonx.Object) {
			return both[1-i]
		}
	}
	return nil
}

func (f *Field) parseKind(o *jsonx.Value) error {
	switch kind := kindOf(o); kind {
	case "string":
		return f.parseText(o)
	case "number", "integer":
		f.Kind, f.Minimum, f.Maximum = Kind(kind), number(o.Get("minimum")), number(o.Get("maximum"))
	case "boolean":
		f.Kind = Boolean
	case "array":
		items := o.Get("items")
		if !items.Is(jsonx.Object) {
			return errors.New("a list without a type for its items")
		}
		f.Kind, f.Least, f.Most = Choices, count(o.Get("minItems")), count(o.Get("maxItems"))
		f.Options, _ = options(items)
		return f.checkOptions()
	case "object":
		return errors.New("it is nested")
	default:
		given, _ := json.Marshal(o.Get("type")) // what was parsed
		return fmt.Errorf("a type that forms do not support: %.100s", given)
	}
	return nil
}

// kindOf returns the type of a field, which may be a list of the type and null. Choices are text.
func kindOf(o *jsonx.Value) string {
	switch kind := o.Get("type").Text(); {
	case kind != "":
		return kind
	case !hasValue(o, "type") && (hasValue(o, "enum") || hasValue(o, "oneOf") || hasValue(o, "anyOf")):
		return "string"
	}
	list := texts(o.Get("type"))
	if len(list) == 2 && list[0] == "null" {
		return list[1]
	}
	if len(list) == 2 && list[1] == "null" {
		return list[0]
	}
	return ""
}

func (f *Field) parseText(o *jsonx.Value) error {
	var isChoice bool
	if f.Options, isChoice = options(o); isChoice {
		f.Kind = Choice
		return f.checkOptions()
	}
	f.Kind, f.Format, f.Pattern = Text, o.Get("format").Text(), o.Get("pattern").Text()
	f.Least, f.Most = count(o.Get("minLength")), count(o.Get("maxLength"))
	if f.Pattern != "" {
		f.pattern = schema.Pattern(f.Pattern) // if RE2 does not support it, the server checks it
		f.Pattern = text.Clip(f.Pattern, maxTitle)
	}
	return nil
}

// options reads the options of a choice: an enum, with the titles in enumNames as before revision 2025-11-25, or
// a list of {"const","title"}. It returns none if one of them is malformed. is is false if the schema has no
// options.
func options(o *jsonx.Value) (out []Option, is bool) {
	if hasValue(o, "enum") {
		values, titles := texts(o.Get("enum")), texts(o.Get("enumNames"))
		for i, v := range values {
			out = append(out, Option{Value: v})
			if len(titles) == len(values) {
				out[i].Title = text.Clip(titles[i], maxTitle)
			}
		}
		return out, true
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if !hasValue(o, key) {
			continue
		}
		for _, e := range o.Get(key).Elements() {
			if !e.Get("const").Is(jsonx.String) {
				return nil, true
			}
			out = append(out, Option{e.Get("const").Text(), text.Clip(e.Get("title").Text(), maxTitle)})
		}
		return out, true
	}
	return nil, false
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
	f, err := parseField(name, resolved)
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
