package overrides

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// quickly reports whether a schema accepts a value, if the schema has only a
// type and a list of values. It avoids compiling the schema, which takes longer
// than everything else about an override.
func quickly(s *jsonx.Value, raw json.RawMessage) (ok, sure bool) {
	if !s.Is(jsonx.Object) {
		return s.Is(jsonx.True), s.Is(jsonx.True) || s.Is(jsonx.False)
	}
	value := parse(raw)
	ok = true
	for _, m := range s.Members {
		switch m.Name {
		case "description", "title", "default", "examples":
		case "type":
			ok = ok && (schema.HasType(s, schema.TypeOf(value)) || value.Is(jsonx.Number) && schema.HasType(s, "number"))
		case "enum":
			ok = ok && m.Value.Is(jsonx.Array) && slices.ContainsFunc(m.Value.Items, func(v *jsonx.Value) bool {
				return jsonx.Canonical(v.AppendTo(nil)) == jsonx.Canonical(raw)
			})
		default:
			return false, false
		}
	}
	return ok, true
}
