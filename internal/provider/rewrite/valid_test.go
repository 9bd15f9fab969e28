package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// TestInvalidSchemas checks that tools are omitted if their schemas would make APIs
// and clients reject all tools, and that CheckValid agrees with the validator of
// calls.
func TestInvalidSchemas(t *testing.T) {
	for property, want := range map[string]string{
		`{}`: "", `true`: "", `{"type":["string","null"],"enum":["a",null],"minLength":0,"pattern":"a"}`: "",
		`{"anyOf":[{"type":"string"},false],"x-own":[],"default":5,"examples":[1],"const":{"type":5},"minimum":-1.5,"multipleOf":0.5}`: "",
		`{"dependencies":{"a":["b"],"c":{}},"$defs":{"a":true},"maxItems":2.0,"uniqueItems":true}`:                                     "",
		`null`:                          `"/properties/p" is null, not a schema`,
		`[]`:                            `"/properties/p" is an array, not a schema`,
		`{"type":"strng"}`:              `"/properties/p/type" is not a type`,
		`{"type":[]}`:                   `"/properties/p/type" is not a type`,
		`{"type":["string","string"]}`:  `"/properties/p/type" is not a type`,
		`{"anyOf":"x"}`:                 `"/properties/p/anyOf" is not a list of schemas`,
		`{"oneOf":[]}`:                  `"/properties/p/oneOf" is not a list of schemas`,
		`{"allOf":[{},{"not":5}]}`:      `"/properties/p/allOf/1/not" is a number, not a schema`,
		`{"properties":[]}`:             `"/properties/p/properties" is an array, not an object`,
		`{"properties":{"a/b":"c"}}`:    `"/properties/p/properties/a~1b" is a string, not a schema`,
		`{"required":["a","a"]}`:        `"/properties/p/required" is not a list of different names`,
		`{"required":[1]}`:              `"/properties/p/required" is not a list of different names`,
		`{"enum":"a"}`:                  `"/properties/p/enum" is not a list`,
		`{"minimum":"1"}`:               `"/properties/p/minimum" is not a number`,
		`{"multipleOf":0}`:              `"/properties/p/multipleOf" is not a positive number`,
		`{"minLength":-1}`:              `"/properties/p/minLength" is not a non-negative integer`,
		`{"maxItems":1.5}`:              `"/properties/p/maxItems" is not a non-negative integer`,
		`{"format":5}`:                  `"/properties/p/format" is not a string`,
		`{"uniqueItems":"yes"}`:         `"/properties/p/uniqueItems" is not a boolean`,
		`{"items":{"pattern":["a"]}}`:   `"/properties/p/items/pattern" is not a string`,
		`{"additionalProperties":null}`: `"/properties/p/additionalProperties" is null, not a schema`,
	} {
		schema := fmt.Sprintf(`{"type":"object","properties":{"p":%s}}`, property)
		_, err := registry.NewValidator([]byte(schema)).Compile(t.Context())
		if (err == nil) != (want == "") {
			t.Errorf("%s: the validator says %v", property, err)
		}
		for _, format := range []string{"openai", "openai-responses", "anthropic", "bedrock", "mcp"} {
			got, diags := declaredSchema(t, format, schema, provider.Options{})
			if (got == "") != (want != "") || !strings.Contains(diags, want) {
				t.Errorf("%s of %s: declared as %q\n%s", format, property, got, diags)
			}
		}
	}
}

// TestBooleanProperties checks that properties are written as objects in an MCP
// listing.
func TestBooleanProperties(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":true,"b":{"properties":{"c":false},"items":true}},"additionalProperties":false}`
	got, diags := declaredSchema(t, "mcp", schema, provider.Options{})
	if want := `{"type":"object","properties":{"a":{},"b":{"properties":{"c":{"not":{}}},"items":true}},"additionalProperties":false}`; got != want || !strings.Contains(diags, "written as objects") {
		t.Errorf("%s\n%s", got, diags)
	}
	got, _ = declaredSchema(t, "mcp", `{"type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, provider.Options{})
	if !strings.Contains(got, `"exclusiveMinimum":true`) {
		t.Errorf("a schema of draft 4 became %q", got)
	}
	f, err := provider.Lookup("mcp")
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{`{"properties":{"a":true}}`: `"outputSchema":{"type":"object","properties":{"a":{}}}`, `{"properties":{"a":null}}`: `"name":"t"`} {
		out, _ := f.Encode([]registry.Definition{{Name: "t", OutputSchema: []byte(output)}}, provider.Options{})
		if got := string(out.Data); !strings.Contains(got, want) || strings.Contains(got, "null") {
			t.Errorf("output schema %s: %s", output, got)
		}
	}
}
