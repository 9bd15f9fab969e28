package spec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// responses notes which media types the operation responds with, and returns the schema of
// its JSON responses; nil if there is none. What is wrong with it costs the schema alone.
func (r *reader) responses(n node, op *Operation) *whole {
	var types []string
	var kinds, others []Output // default stands for errors too, so it counts only where nothing else means success
	schemas := map[string]node{}
	for _, one := range n.get("responses").members() {
		response, err := r.resolve(one)
		status := one.name()
		if err != nil || !response.Is(jsonx.Object) || !(strings.HasPrefix(status, "2") || status == "default") {
			continue
		}
		schema, isJSON := response.get("schema"), false // Swagger 2.0
		for _, media := range response.get("content").members() {
			types = append(types, media.name())
			if kindOf(media.name()) == kindJSON {
				isJSON = true
				if schema.Value == nil {
					schema = media.get("schema")
				}
			}
		}
		kind := &kinds
		if status == "default" {
			kind = &others
		}
		if schemas[status] = schema; isJSON || schema.Value != nil {
			*kind = append(*kind, Output{Status: status})
		}
	}
	if len(schemas) == 1 {
		kinds = append(kinds, others...)
	}
	if r.version == 20 {
		types = n.get("produces").strings()
		if n.get("produces").Value == nil {
			types = r.root.get("produces").strings()
		}
		if types != nil && !slices.ContainsFunc(types, func(t string) bool { return kindOf(t) == kindJSON }) {
			kinds = nil
		}
	}
	slices.SortStableFunc(types, func(a, b string) int { return min(kindOf(a), 1) - min(kindOf(b), 1) })
	for _, t := range types {
		if isMedia(t) && !slices.Contains(op.Plan.Accept, t) {
			op.Plan.Accept = append(op.Plan.Accept, t)
		}
	}
	if len(kinds) == 0 || r.output.total > maxOutputs {
		return nil
	}
	f := r.outputOf(kinds, schemas)
	if f == nil {
		return nil
	}
	output, err := r.output.whole(f, n)
	if err != nil {
		return nil
	}
	op.Plan.Outputs = kinds
	return output
}

// outputOf returns the schema of an operation's results, of several kinds if these differ, and notes
// which of its parts is for which. It returns nil if none is described.
func (r *reader) outputOf(kinds []Output, schemas map[string]node) *fragment {
	var branches []string
	all, described := &fragment{}, false
	for i := range kinds {
		kind := &kinds[i]
		f := r.kindOfOutput(kind, schemas[kind.Status])
		if described = described || f != nil; f == nil {
			f = &fragment{json: []byte(`{"type":"object"}`)} // one that is no object is in one
		}
		if at := slices.Index(branches, string(f.json)); at >= 0 {
			kind.Branch = at + 1
			continue
		}
		branches = append(branches, string(f.json))
		kind.Branch = len(branches)
		all.refs, all.err = append(all.refs, f.refs...), cmp.Or(all.err, f.err)
	}
	if !described {
		return nil
	}
	if all.json = []byte(`{"type":"object","anyOf":[` + strings.Join(branches, ",") + `]}`); len(branches) == 1 {
		all.json = []byte(branches[0])
		for i := range kinds {
			kinds[i].Branch = 0
		}
	}
	return all
}

// kindOfOutput returns the schema of one kind of an operation's results; nil if they are not described.
func (r *reader) kindOfOutput(kind *Output, s node) *fragment {
	resolved, err := r.resolve(s)
	if err != nil {
		return nil
	}
	switch r.shape(resolved, map[*jsonx.Value]string{}, 0) {
	case "object":
		f := r.output.schema(resolved, "")
		if resolved.Value.Get("type") == nil || resolved.Value.Get("type").Is(jsonx.Array) {
			f.json = asObject(resolved, f.json)
		}
		return f
	case "array":
		kind.Wrap = "items"
	case "scalar":
		kind.Wrap = "value"
	default:
		return nil
	}
	return object([]property{{kind.Wrap, r.output.schema(s, ""), true}}, nil)
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
