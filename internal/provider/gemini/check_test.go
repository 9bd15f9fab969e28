package gemini

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// TestCheck checks the problems that are found according to the API's type Schema.
func TestCheck(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`: nil,
		`{"$schema":"x","type":"object","properties":{"a/b":{"oneOf":[],"type":"string"}},"additionalProperties":false}`: {
			"keyword_refused /$schema", "keyword_refused /additionalProperties", "keyword_refused /properties/a~1b/oneOf"},
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"description":"x"}}}`: {"type_refused /properties/a/type", "type_missing /properties/b"},
		`{"type":"object","required":["z"],"properties":{"a":{"type":"object"},"b":{"type":"array"},"c":{"type":"string","properties":{"d":{"type":"string"}}}}}`: {
			"required_unknown /required", "properties_missing /properties/a", "items_missing /properties/b", "properties_refused /properties/c/properties"},
		`{"type":"object","properties":{"a":{"type":"string","items":{"type":"string"}}}}`:     {"items_refused /properties/a/items"},
		`{"type":"object","properties":{}}`:                                                    {"properties_missing "},
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}],"description":"d"}}}`: {"union_not_alone /properties/a/anyOf"},
		`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]},"b":true,"c":{"anyOf":[5]}}}`: {
			"schema_refused /properties/a/items", "schema_refused /properties/b", "schema_refused /properties/c/anyOf/0"},
		`{"type":"object","properties":{"a":{"type":"strung"},"b":{"type":"string","enum":["x"],"nullable":"yes"},"c":{"type":"string","minLength":-1}}}`: {
			"type_refused /properties/a/type", "value_refused /properties/b/nullable", "value_refused /properties/c/minLength"},
		`{"type":"object","properties":{"a":{"type":"integer","enum":[1]}},"required":"a"}`:                      {"value_refused /required", "value_refused /properties/a/enum/0"},
		`{"type":"object","properties":{"a":{"type":"STRING","enum":["x",""]},"b":{"type":"STRING","enum":[]}}}`: {"value_refused /properties/a/enum/1", "value_refused /properties/b/enum"},
	} {
		n, err := jsonx.Parse([]byte(schema), jsonx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range Check(n) {
			got = append(got, p.Code+" "+p.Pointer)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", schema, diff)
		}
	}
}
