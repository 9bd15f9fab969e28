package form

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
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
