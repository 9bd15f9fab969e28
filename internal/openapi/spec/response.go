package spec

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// responses notes which media types the operation responds with, and returns the schema of
// its JSON responses; nil if there is none. What is wrong with it costs the schema alone.
func (r *reader) responses(n node, op *Operation) *whole {
	var types []string
	var success node
	for _, one := range n.get("responses").members() {
		response, err := r.resolve(one)
		status := one.name()
		if err != nil || !response.Is(jsonx.Object) || !(strings.HasPrefix(status, "2") || status == "default") {
			continue
		}
		schema := response.get("schema") // Swagger 2.0
		for _, media := range response.get("content").members() {
			types = append(types, media.name())
			if schema.Value == nil && kindOf(media.name()) == kindJSON {
				schema = media.get("schema")
			}
		}
		if schema.Value != nil && (success.Value == nil || op.OutputStatus == "default") {
			success, op.OutputStatus = schema, status
		}
	}
	if r.version == 20 {
		types = n.get("produces").strings()
		if n.get("produces").Value == nil {
			types = r.root.get("produces").strings()
		}
		if types != nil && !slices.ContainsFunc(types, func(t string) bool { return kindOf(t) == kindJSON }) {
			success = node{}
		}
	}
	slices.SortStableFunc(types, func(a, b string) int { return min(kindOf(a), 1) - min(kindOf(b), 1) })
	for _, t := range types {
		if isMedia(t) && !slices.Contains(op.Plan.Accept, t) {
			op.Plan.Accept = append(op.Plan.Accept, t)
		}
	}
	var output *whole
	if success.Value != nil && r.output.total <= maxOutputs {
		output = r.outputOf(success, op)
	}
	if output == nil {
		op.OutputStatus, op.Wrap = "", ""
	}
	return output
}

// outputOf returns the schema of an operation's result; nil if it has none.
func (r *reader) outputOf(s node, op *Operation) *whole {
	resolved, err := r.resolve(s)
	if err != nil {
		return nil
	}
	var f *fragment
	switch r.shape(resolved, map[*jsonx.Value]string{}, 0) {
	case "object":
		f = r.output.schema(resolved, "")
		if resolved.Value.Get("type") == nil || resolved.Value.Get("type").Is(jsonx.Array) {
			f.json = asObject(resolved, f.json)
		}
	case "array":
		op.Wrap = "items"
		f = object([]property{{op.Wrap, r.output.schema(s, ""), true}}, nil)
	case "scalar":
		op.Wrap = "value"
		f = object([]property{{op.Wrap, r.output.schema(s, ""), true}}, nil)
	default:
		return nil
	}
	out, err := r.output.whole(f, s)
	if err != nil {
		return nil
	}
	return out
}

// asObject sets the type of a schema to object.
func asObject(s node, json []byte) []byte {
	if s.Value.Get("type") == nil {
		return append([]byte(`{"type":"object"`+[]string{"", ","}[min(len(json)-2, 1)]), json[1:]...)
	}
	v, err := jsonx.Parse(json, jsonx.Options{})
	if err != nil {
		return json
	}
	v.Set("type", jsonx.NewString("object"))
	return v.JSON()
}

// shape returns what the values of a schema are: "object", "array", "scalar", or "" if that
// is not certain. known has the shapes of schemas that were found before.
func (r *reader) shape(s node, known map[*jsonx.Value]string, depth int) string {
	s, err := r.resolve(s)
	if err != nil || depth > maxChain || !s.Is(jsonx.Object) {
		return ""
	}
	shape, ok := known[s.Value]
	if !ok {
		known[s.Value] = "" // while it is open, for schemas that contain themselves
		shape = r.findShape(s, known, depth+1)
		known[s.Value] = shape
	}
	return shape
}

func (r *reader) findShape(s node, known map[*jsonx.Value]string, depth int) string {
	typ := s.Value.Get("type")
	names := typ.Strings()
	if typ.Is(jsonx.String) {
		names = []string{typ.Text()}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "null" && len(names) > 1 })
	switch {
	case len(names) > 1:
		return ""
	case len(names) == 1 && (names[0] == "object" || names[0] == "array"):
		return names[0]
	case len(names) == 1:
		return "scalar"
	case s.Value.Get("properties") != nil || s.Value.Get("additionalProperties") != nil:
		return "object"
	case s.Value.Get("items") != nil:
		return "array"
	}
	for _, one := range s.get("allOf").items() {
		if shape := r.shape(one, known, depth); shape != "" {
			return shape
		}
	}
	shape := ""
	for _, keyword := range []string{"oneOf", "anyOf"} {
		for i, one := range s.get(keyword).items() {
			this := r.shape(one, known, depth)
			if this == "" || i > 0 && this != shape {
				return ""
			}
			shape = this
		}
	}
	return shape
}
