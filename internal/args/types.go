package args

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// types determines the types of params from an input schema. It follows local
// references. If the type is unknown, it is a string.
type types struct {
	refs   *schema.Refs
	byName map[*jsonx.Value]map[string]*jsonx.Value // see named
}

func newTypes(raw json.RawMessage) types {
	root, err := jsonx.Parse(raw, jsonx.Options{})
	if err != nil {
		root = nil // validation reports invalid schemas with a better message
	}
	return types{refs: schema.NewRefs(root), byName: map[*jsonx.Value]map[string]*jsonx.Value{}}
}

// path splits a key at its dots, unless the schema has a property with the whole
// key.
func (t types) path(key string) []string {
	if t.refs.Root().Get("properties").Get(key) != nil {
		return []string{key}
	}
	return strings.Split(key, ".")
}

func (t types) at(path []string) schemaType {
	s := t.refs.Root()
	for _, key := range path {
		named := t.named(s)[key]
		if named == nil {
			named = t.further(s, key, visited{})
		}
		if s = named; s == nil {
			return schemaType{}
		}
	}
	return t.typeOf(s, 0)
}

// visited is the set of schemas already visited. Alternatives may share schemas and
// refer back to themselves.
type visited map[*jsonx.Value]bool

// first marks a schema as visited and reports whether it was not visited before.
func (v visited) first(s *jsonx.Value) bool {
	if s == nil || v[s] {
		return false
	}
	v[s] = true
	return true
}

// named returns the schemas of the properties that s, or a schema that applies together with it,
// declares by name.
func (t types) named(s *jsonx.Value) map[string]*jsonx.Value {
	all := t.byName[s]
	if all == nil {
		all = map[string]*jsonx.Value{}
		t.addNamed(s, all, visited{})
		t.byName[s] = all
	}
	return all
}

func (t types) addNamed(s *jsonx.Value, all map[string]*jsonx.Value, seen visited) {
	s, err := t.refs.Resolve(s)
	if err != nil || !seen.first(s) {
		return
	}
	for _, m := range s.Get("properties").Fields() {
		if all[m.Name] == nil {
			all[m.Name] = jsonx.NewObject()
			all[m.Name].Set("anyOf", jsonx.NewArray())
		}
		either := all[m.Name].Get("anyOf")
		either.Items = append(either.Items, m.Value)
	}
	for _, alternative := range alternatives(s) {
		t.addNamed(alternative, all, seen)
	}
}

// further returns the schema of a property that is not declared by name, or nil.
func (t types) further(s *jsonx.Value, key string, seen visited) *jsonx.Value {
	s, err := t.refs.Resolve(s)
	if err != nil || !seen.first(s) {
		return nil
	}
	for _, m := range s.Get("patternProperties").Fields() {
		if re := schema.Pattern(m.Name); re != nil && re.MatchString(key) {
			return m.Value
		}
	}
	if p := s.Get("additionalProperties"); p != nil {
		return p
	}
	for _, alternative := range alternatives(s) {
		if p := t.further(alternative, key, seen); p != nil {
			return p
		}
	}
	return nil
}

// alternatives returns the schemas that apply, or may apply, together with s.
func alternatives(s *jsonx.Value) []*jsonx.Value {
	var out []*jsonx.Value
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		out = append(out, s.Get(keyword).Elements()...)
	}
	return out
}

// schemaType determines how the text of an argument is converted to JSON. The
// zero value accepts any text as a string.
type schemaType struct {
	names  []string // types of the schema and its alternatives
	enum   []*jsonx.Value
	file   bool // a string with the bytes of a file
	items  *schemaType
	places []schemaType // types of the first items, if the schema describes them individually
}

// maxNested limits the nesting of lists.
const maxNested = 16

func (t types) typeOf(s *jsonx.Value, depth int) schemaType {
	var out schemaType
	items := t.collect(s, &out, visited{})
	if slices.Contains(out.names, "array") && depth < maxNested {
		item := t.typeOf(items.rest, depth+1) // if rest is a boolean schema, items are strings
		out.items = &item
		for _, place := range items.places.Elements() {
			out.places = append(out.places, t.typeOf(place, depth+1))
		}
	}
	return out
}

// listItems has the schemas for the items of a list: an array for the first ones,
// and a schema for the rest. Both may be nil.
type listItems struct{ places, rest *jsonx.Value }

// collect adds the types and values of s and of its alternatives to out, and
// returns the schema of the items of the first list among them.
func (t types) collect(s *jsonx.Value, out *schemaType, seen visited) (items listItems) {
	s, err := t.refs.Resolve(s)
	if err != nil || !seen.first(s) {
		return items
	}
	names := typeNames(s.Get("type"))
	out.file = out.file || s.Get("format").IsText("binary")
	out.names = append(out.names, names...)
	out.enum = append(out.enum, s.Get("enum").Elements()...)
	if value := s.Get("const"); value != nil {
		out.enum = append(out.enum, value)
	}
	if slices.Contains(names, "array") {
		items = listItems{s.Get("prefixItems"), s.Get("items")}
	}
	for _, alternative := range alternatives(s) {
		if i := t.collect(alternative, out, seen); items == (listItems{}) {
			items = i
		}
	}
	return items
}

func typeNames(v *jsonx.Value) []string {
	if v.Is(jsonx.String) {
		return []string{v.Text()}
	}
	return v.Strings()
}

func (s schemaType) has(name string) bool { return slices.Contains(s.names, name) }

// isList reports whether a value given for s is one element of a list. If s also allows the value
// by itself, it is one only if several are given.
func (s schemaType) isList(given string, several bool) bool {
	return s.items != nil && (several || !s.has("string") && (strings.HasPrefix(given, "[") || !s.fits(given)))
}

// isWhole reports whether the text given for a list is the whole list: as JSON, or null in place of
// a list.
func (s schemaType) isWhole(given string, several bool) bool {
	v, err := parseStrict(given)
	return err == nil && (v.Is(jsonx.Array) || v.Is(jsonx.Null) && !several && s.fits(v.Token))
}

func (s schemaType) item(i int) schemaType {
	if i < len(s.places) {
		return s.places[i]
	}
	return *s.items
}

// encode converts text to JSON of one of the schema's types, trying the most
// specific first and text last.
func (s schemaType) encode(given string) (*jsonx.Value, error) {
	trimmed := strings.TrimSpace(given)
	for _, e := range s.enum { // an enum may have numbers or booleans without a type
		if e.Kind != jsonx.String && string(e.AppendTo(nil)) == trimmed {
			return e, nil
		}
	}
	var invalid error
	if s.fits(trimmed) {
		v, err := parseStrict(trimmed)
		if err == nil {
			return v, nil
		}
		if trimmed[0] == '{' || trimmed[0] == '[' {
			invalid = err
		}
	}
	if len(s.names) == 0 || s.has("string") {
		return jsonx.NewString(given), nil
	}
	if invalid != nil {
		return nil, fmt.Errorf("expected %s, but the value is not valid JSON: %w",
			strings.Join(article(s.names), " or "), invalid)
	}
	return nil, fmt.Errorf("expected %s, got %q", strings.Join(article(s.names), " or "), text.Clip(given, 60))
}

// parseStrict parses JSON with the restrictions on params.
func parseStrict(text string) (*jsonx.Value, error) {
	data := []byte(strings.TrimSpace(text))
	if err := registry.CheckJSON(data); err != nil {
		return nil, err
	}
	if err := registry.CheckSurrogates(data); err != nil {
		return nil, err
	}
	return jsonx.Parse(data, jsonx.Options{})
}

// fits reports whether text looks like a value of one of the types, not counting
// string.
func (s schemaType) fits(text string) bool {
	if text == "" {
		return false
	}
	switch c := text[0]; {
	case c == '{':
		return s.has("object")
	case c == '[':
		return s.has("array")
	case c == 't' || c == 'f':
		return s.has("boolean")
	case c == 'n':
		return s.has("null") && !s.has("string")
	case c == '-' || c >= '0' && c <= '9':
		return s.has("number") || s.has("integer") && !strings.ContainsAny(text, ".eE") ||
			s.has("integer") && !s.has("string")
	}
	return false
}

func article(names []string) []string {
	var out []string
	for _, n := range names {
		word := "a " + n
		if strings.IndexAny(n, "aeio") == 0 {
			word = "an " + n
		}
		if n == "array" {
			word = "a list ([…] as JSON)"
		}
		if n == "object" {
			word = "an object ({…} as JSON, or its members as NAME.MEMBER=VALUE)"
		}
		out = text.AppendNew(out, word)
	}
	return out
}

// Format is the inverse of [Parse]: it returns arguments that produce the params.
// ok is false if that is not possible, for example if a key contains "=".
func Format(params, inputSchema json.RawMessage) (arguments []string, ok bool) {
	root, err := jsonx.Parse(params, jsonx.Options{})
	if err != nil || !root.Is(jsonx.Object) {
		return nil, false
	}
	t := newTypes(inputSchema)
	for _, m := range root.Members {
		one := t.argument(m.Name, m.Value)
		if one == nil {
			return nil, false
		}
		arguments = append(arguments, one...)
	}
	return arguments, true
}

// argument returns the simplest arguments that [Parse] converts back to the value
// of one key, or nil if there are none.
func (t types) argument(key string, v *jsonx.Value) []string {
	spelled := []string{key + "=" + escapeAt(v.Plain())}
	if v.Is(jsonx.Array) && len(v.Items) > 0 {
		spelled = nil
		for _, item := range v.Items {
			spelled = append(spelled, key+"="+escapeAt(item.Plain()))
		}
	}
	for _, arguments := range [][]string{spelled, {key + ":=" + string(text.EscapeJSON(v.AppendTo(nil)))}} {
		if !slices.ContainsFunc(arguments, notCopyable) && t.parsesTo(arguments, key, v) {
			return arguments
		}
	}
	return nil
}

// notCopyable reports whether an argument cannot be part of a command line to copy: it
// would be parsed as a flag, or contains characters that a terminal does not show.
func notCopyable(argument string) bool {
	return strings.HasPrefix(argument, "-") || text.FirstInvisible([]byte(argument)) >= 0 ||
		strings.ContainsAny(argument, "\n\t\r")
}

// parsesTo reports whether [Parse] converts the arguments to the value under a key.
func (t types) parsesTo(arguments []string, key string, v *jsonx.Value) bool {
	root := jsonx.NewObject()
	if t.parse(root, arguments, Options{}) != nil {
		return false
	}
	for _, step := range t.path(key) {
		root = root.Get(step)
	}
	return root != nil && jsonx.Canonical(root.AppendTo(nil)) == jsonx.Canonical(v.AppendTo(nil))
}

// escapeAt escapes a value that begins with @, which would otherwise name a file.
func escapeAt(value string) string {
	if strings.HasPrefix(value, "@") {
		return "@" + value
	}
	return value
}

// parent returns the object that contains the last key of path. It creates missing
// objects.
func parent(root *jsonx.Value, arg string, path []string) (*jsonx.Value, error) {
	if slices.Contains(path, "") {
		return nil, &Error{Arg: arg,
			Message: fmt.Sprintf("the key %s has an empty part", text.Quote(strings.Join(path, ".")))}
	}
	for _, key := range path[:len(path)-1] {
		next := root.Get(key)
		switch {
		case next == nil:
			next = jsonx.NewObject()
			root.Set(key, next)
		case next.Is(jsonx.Array):
			return nil, &Error{Arg: arg,
				Message: fmt.Sprintf("%s is a list, so its members cannot be set", text.Quote(key))}
		case !next.Is(jsonx.Object):
			return nil, &Error{Arg: arg,
				Message: fmt.Sprintf("%s is not an object, so its members cannot be set", text.Quote(key))}
		}
		root = next
	}
	return root, nil
}
