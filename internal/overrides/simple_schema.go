package overrides

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// certainlyAccepts reports whether a schema without keywords other than a type, an enum
// and bounds accepts a value. It avoids compiling the schema, which takes longer than the
// rest of applying an override.
func certainlyAccepts(s *jsonx.Value, raw json.RawMessage) bool {
	if !s.Is(jsonx.Object) {
		return s.Is(jsonx.True)
	}
	value := parse(raw)
	for _, m := range s.Members {
		ok := false
		switch m.Name {
		case "description", "title", "default", "examples":
			ok = true
		case "type":
			ok = schema.HasType(s, schema.TypeOf(value)) || value.Is(jsonx.Number) && schema.HasType(s, "number")
		case "enum":
			ok = slices.ContainsFunc(m.Value.Items, func(v *jsonx.Value) bool {
				return jsonx.Canonical(v.AppendTo(nil)) == jsonx.Canonical(raw)
			})
		case "minimum", "maximum":
			order, known := compare(value, m.Value)
			ok = known && (order == 0 || (order == 1) == (m.Name == "minimum"))
		}
		if !ok {
			return false
		}
	}
	return true
}

// compare compares two numbers. known is false if one is no number, or may not be exact as
// a floating-point number.
func compare(a, b *jsonx.Value) (order int, known bool) {
	const exact = 15 // digits
	if len(a.Token) > exact || len(b.Token) > exact {
		return 0, false
	}
	x, err := strconv.ParseFloat(a.Token, 64)
	y, err2 := strconv.ParseFloat(b.Token, 64)
	return cmp.Compare(x, y), err == nil && err2 == nil
}
