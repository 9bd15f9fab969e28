package overrides

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// acceptsSimple reports whether a schema accepts a value. sure is false if the
// schema has keywords other than a type, an enum and bounds. It avoids compiling
// the schema, which takes longer than the rest of applying an override.
func acceptsSimple(s *jsonx.Value, raw json.RawMessage) (ok, sure bool) {
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
		case "minimum", "maximum":
			less, known := compare(value, m.Value)
			if !known {
				return false, false
			}
			ok = ok && (less == 0 || (less > 0) == (m.Name == "minimum"))
		default:
			return false, false
		}
	}
	return ok, true
}

// compare compares two numbers. known is false if they may not be exact as
// floating-point numbers.
func compare(a, b *jsonx.Value) (order int, known bool) {
	const exact = 15 // digits
	if !a.Is(jsonx.Number) || !b.Is(jsonx.Number) || len(a.Token) > exact || len(b.Token) > exact {
		return 0, false
	}
	x, err := strconv.ParseFloat(a.Token, 64)
	y, err2 := strconv.ParseFloat(b.Token, 64)
	return cmp.Compare(x, y), err == nil && err2 == nil
}
