package gemini_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/registry"
)

func discovered(name, schema string) registry.Definition {
	return registry.Definition{Name: name, Source: registry.SourceCommand, Description: "d", InputSchema: json.RawMessage(schema)}
}

func encode(t testing.TB, defs []registry.Definition, opts provider.Options) (provider.Output, []registry.Diagnostic) {
	t.Helper()
	f, err := provider.Lookup("gemini")
	if err != nil {
		t.Fatal(err)
	}
	return f.Encode(settled(defs), opts)
}

// settled returns the definitions as a registry has them; it leaves out those with a schema
// that cannot be used.
func settled(defs []registry.Definition) (out []registry.Definition) {
	for _, d := range defs {
		t := []registry.Tool{{Definition: d}}
		if registry.Settle(t); t[0].Quarantine == nil {
			out = append(out, t[0].Definition)
		}
	}
	return out
}

// declaredSchema returns the schema in a declaration, and the name of its field.
func declaredSchema(t testing.TB, declaration []byte) (schema *jsonx.Value, field string) {
	t.Helper()
	n, err := jsonx.Parse(declaration, jsonx.Options{})
	if err != nil {
		t.Fatalf("unreadable: %s", declaration)
	}
	if schema := n.Get("parameters"); schema != nil {
		return schema, "parameters"
	}
	schema = n.Get("parametersJsonSchema")
	if schema == nil {
		t.Fatalf("no schema in %s", declaration)
	}
	return schema, "parametersJsonSchema"
}

// fittedProperty declares a discovered tool with a property p, and returns the
// declared schema of the property, with the field that it is in.
func fittedProperty(t *testing.T, schema string, forced bool) (property, field string, changes []string) {
	t.Helper()
	def := discovered("t", `{"type":"object","properties":{"p":`+schema+`,"q":{"type":"string"}}}`)
	out, diags := encode(t, []registry.Definition{def}, provider.Options{GeminiParameters: forced})
	for _, d := range diags {
		changes = append(changes, d.Message)
	}
	if len(out.Declarations) == 0 {
		return "", "", changes
	}
	declared, field := declaredSchema(t, out.Declarations[0].Data)
	if p := declared.Get("properties").Get("p"); p != nil {
		property = string(p.AppendTo(nil))
	}
	if found := gemini.Check(declared); field == "parameters" && len(found) > 0 {
		t.Errorf("%s: the API would still refuse %v", schema, found)
	}
	return property, field, changes
}

func TestGeminiFit(t *testing.T) {
	tests := []struct{ name, schema, want, change string }{
		{"nothing to do", `{"type":"string","description":"d"}`, `{"type":"string","description":"d"}`, ""},
		{"a list of types with null", `{"type":["string","null"],"description":"d"}`, `{"type":"string","description":"d","nullable":true}`, "nullable"},
		{"a list of types", `{"type":["string","integer","null"],"minimum":3,"minLength":1}`, `{"anyOf":[{"type":"string","minLength":1,"nullable":true},{"type":"integer","minimum":3,"nullable":true}]}`, "nullable"},
		{"const", `{"const":"on","description":"d"}`, `{"type":"STRING","description":"d","enum":["on"]}`, "const written as an enum of one"},
		{"const number", `{"type":"integer","const":5}`, `{"type":"STRING","enum":["5"]}`, "const"},
		{"enum with null", `{"enum":["a",null],"x-y":1}`, `{"type":"STRING","enum":["a"],"nullable":true}`, "x-y dropped"},
		{"null alone", `{"const":null,"description":"d"}`, `{"type":"null","description":"d"}`, ""},
		{"null as the one value", `{"enum":[null]}`, `{"type":"null"}`, "an enum of null written as the type null"},
		{"an enum of numbers", `{"type":"integer","enum":[1,2]}`, `{"type":"STRING","enum":["1","2"]}`, "values of an enum written as strings"},
		{"an enum of numbers to be fitted", `{"type":"integer","enum":[1,2],"x-y":1}`, `{"type":"STRING","enum":["1","2"]}`, "values of an enum written as strings"},
		{"null beside texts", `{"type":"string","enum":["a",null]}`, `{"type":"STRING","enum":["a"]}`, "null omitted from an enum"},
		{"null beside texts, to be fitted", `{"type":"string","enum":["a",null],"x-y":1}`, `{"type":"STRING","enum":["a"]}`, "null omitted from an enum"},
		{"tuple of 2020-12", `{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false}`,
			`{"type":"array","maxItems":2,"items":{"anyOf":[{"type":"string"},{"type":"number"}]}}`, "items of a tuple"},
		{"tuple of draft 7", `{"type":"array","items":[{"type":"string"},{"type":"string"}],"minItems":2}`, `{"type":"array","minItems":2,"items":{"type":"string"}}`, "items of a tuple"},
		{"oneOf", `{"oneOf":[{"type":"string"},{"type":"integer"}],"description":"d"}`, `{"anyOf":[{"type":"string","description":"d"},{"type":"integer","description":"d"}]}`, "oneOf converted to anyOf"},
		{"one branch and null", `{"anyOf":[{"type":"string","format":"uri"},{"type":"null"}],"default":null,"title":"T","deprecated":true}`, `{"type":"string","title":"T","nullable":true}`, "deprecated dropped"},
		{"formats", `{"type":"object","properties":{"a":{"type":"string","format":"uri"},"b":{"type":"string","format":"date-time"},"c":{"type":"integer","format":"int64"},"d":{"type":"integer","format":"uint8"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","format":"date-time"},"c":{"type":"integer","format":"int64"},"d":{"type":"integer"}}}`, `format "uri" dropped`},
		{"branches that are conditions", `{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{"not":{}}]}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		{"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`, "allOf merged"},
		{"exclusive limits", `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10}`, `{"type":"integer","minimum":1,"maximum":9}`, "exclusiveMinimum written as minimum"},
		{"limits of fractions", `{"type":"number","exclusiveMinimum":0.5}`, `{"type":"number","minimum":0.5}`, "exclusiveMinimum"},
		{"object", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","gone"],"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "additionalProperties dropped"},
		{"never", `{"type":"object","properties":{"a":{"type":"string"},"b":false}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		{"types guessed", `{"properties":{"a":{"minLength":1}}}`, `{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`, "types added"},
		{"enum of objects", `{"type":"object","enum":[{"a":1}],"properties":{"a":{"type":"integer"}},"x-y":1}`, `{"type":"STRING","enum":["[object Object]"]}`, "x-y dropped"},
		{"examples", `{"type":"string","examples":["a","b"],"title":7}`, `{"type":"string","example":"a"}`, ""},
		{"type beside a union", `{"type":"string","anyOf":[{"enum":["a"]},{"enum":["b"]}]}`, `{"anyOf":[{"type":"STRING","enum":["a"]},{"type":"STRING","enum":["b"]}]}`, ""},
		{"text beside a union", `{"anyOf":[{"type":"string"},{"type":"integer","description":"own"}],"description":"d"}`, `{"anyOf":[{"type":"string","description":"d"},{"type":"integer","description":"own"}]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, field, changes := fittedProperty(t, tt.schema, false)
			if diff := cmp.Diff(tt.want, got); diff != "" || field != "parameters" || !strings.Contains(strings.Join(changes, "\n"), tt.change) {
				t.Errorf("declared by %s, said %q:\n%s", field, changes, diff)
			}
		})
	}
}

// A schema that the type Schema cannot express is declared as JSON Schema. If that
// is turned off, the parts that can be expressed are declared.
func TestGeminiFitLost(t *testing.T) {
	tests := []struct{ name, schema, want, lost string }{
		{"any keys", `{"type":"object","additionalProperties":{"type":"string"}}`, ``, `the property "p", an object with properties of any name`},
		{"any value", `{"description":"d"}`, `{"anyOf":[{"type":"string","description":"d"},{"type":"number","description":"d"},{"type":"boolean","description":"d"}]}`, "a value of any type"},
		{"any items", `{"type":"array"}`, `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]}}`, "a value of any type"},
		{"any keys among others", `{"anyOf":[{"type":"string"},{"type":"object"}]}`, `{"type":"string"}`, "properties of any name"},
		{"an empty text", `{"enum":["a",""],"description":"d"}`, `{"type":"STRING","description":"d","enum":["a"]}`, "an empty string as a value of an enum"},
		{"only an empty text", `{"type":"string","enum":[""]}`, `{"type":"string"}`, "an empty string as a value of an enum"},
		{"null as a text", `{"type":"string","enum":[null]}`, `{"type":"string"}`, "an enum without values"},
		{"keys by pattern", `{"type":"object","patternProperties":{"^x-":{"type":"string"}}}`, ``, `the property "p", an object with properties of any name`},
		{"two types at once", `{"allOf":[{"type":"string"},{"type":"integer"}]}`, `{"type":"string"}`, "two types at once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			whole, field, changes := fittedProperty(t, tt.schema, false)
			if whole != tt.schema || field != "parametersJsonSchema" || !strings.Contains(strings.Join(changes, "\n"), tt.lost) {
				t.Errorf("declared by %s: %s\nsaid %q", field, whole, changes)
			}
			got, field, changes := fittedProperty(t, tt.schema, true)
			if diff := cmp.Diff(tt.want, got); diff != "" || field != "parameters" || !strings.Contains(strings.Join(changes, "\n"), "omitted: ") || !strings.Contains(strings.Join(changes, "\n"), tt.lost) {
				t.Errorf("forced, by %s, said %q:\n%s", field, changes, diff)
			}
		})
	}
	patterns := `{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`
	if out, diags := encode(t, []registry.Definition{discovered("t", patterns)}, provider.Options{}); !strings.Contains(string(out.Data), `"parametersJsonSchema":`+patterns) {
		t.Errorf("params by pattern are declared as %s, %v", out.Data, diags)
	}
	out, diags := encode(t, []registry.Definition{discovered("t", `{"type":"object","properties":{"p":{"type":"object"}},"required":["p"]}`)}, provider.Options{GeminiParameters: true})
	if len(out.Declarations) != 0 || len(diags) != 1 || !strings.Contains(diags[0].Message, `property "p", which is required`) {
		t.Errorf("got %s, %v", out.Data, diags)
	}
}

// References are inlined; recursive ones are cut.
func TestGeminiFitReferences(t *testing.T) {
	declareIt := func(schema string) (string, string) {
		out, diags := encode(t, []registry.Definition{discovered("t", schema)}, provider.Options{GeminiParameters: true})
		said := ""
		for _, d := range diags {
			said += d.Message
		}
		return string(out.Data), said
	}
	got, _ := declareIt(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"mine"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string","description":"its","enum":["u"]}}}`)
	const want = `"properties":{"a":{"type":"STRING","description":"mine","enum":["u"]},"b":{"type":"STRING","description":"its","enum":["u"]}}`
	if !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	got, said := declareIt(`{"type":"object","properties":{"n":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"v":{"type":"string"},"next":{"$ref":"#/$defs/node"}}}}}`)
	if !strings.Contains(got, `"v":{"type":"string"}`) || !strings.Contains(said, "a schema that contains itself") {
		t.Errorf("got %s, said %s", got, said)
	}
	if got, said = declareIt(`{"type":"object","properties":{"n":{"$ref":"#"},"m":{"$ref":"https://example.com/x"}}}`); !strings.Contains(said, "contains itself") {
		t.Errorf("got %s, said %s", got, said)
	}
	bomb := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		next := string(rune('0'+(i+1)%10)) + strings.Repeat("x", (i+1)/10)
		bomb += `"d` + string(rune('0'+i%10)) + strings.Repeat("x", i/10) + `":{"type":"object","properties":{"l":{"$ref":"#/$defs/d` + next + `"},"r":{"$ref":"#/$defs/d` + next + `"}}},`
	}
	bomb += `"d0xxxx":{"type":"string"}}}`
	if got, said = declareIt(bomb); got != "[]" || !strings.Contains(said, "too large") {
		t.Errorf("got %.200s, said %s", got, said)
	}
}

// A schema that requires endless work is soon declared as JSON Schema instead.
func TestGeminiFitExpensiveSchemas(t *testing.T) {
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "%", strconv.Itoa(i))
		}
		return strings.Join(all, ",")
	}
	for name, schema := range map[string]string{
		"branches beside members": `{"type":"object","properties":{"a":{"anyOf":[` + many(5_000, `{"type":"string","title":"%"}`) + `],` + many(5_000, `"x-%":1`) + `}}}`,
		"allOf of members":        `{"type":"object","properties":{"a":{"allOf":[` + many(3_000, `{"$ref":"#/$defs/d"}`) + `]}},"$defs":{"d":{` + many(10_000, `"x-%":1`) + `}}}`,
		"keywords":                `{"type":"object","properties":{"a":{"type":"string",` + many(20_000, `"x-%":1`) + `}}}`,
		"free objects":            `{"type":"object","properties":{` + many(10_000, `"p%":{"type":"object"}`) + `}}`,
		"enum":                    `{"type":"object","properties":{"a":{"enum":[` + many(50_000, `%`) + `]}},"x":1}`,
	} {
		start := time.Now()
		out, diags := encode(t, []registry.Definition{discovered("t", schema)}, provider.Options{GeminiParameters: true})
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		for _, d := range diags {
			if len(d.Message) > 4000 {
				t.Errorf("%s: a message of %d bytes", name, len(d.Message))
			}
		}
		if !json.Valid(out.Data) {
			t.Errorf("%s: not valid", name)
		}
	}
}

// FuzzGeminiFit checks that the API would accept every schema that is declared with
// parameters.
func FuzzGeminiFit(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"type":["string","null"]}},"$defs":{"x":{"oneOf":[{"const":1},{"$ref":"#"}]}}}`,
		`{"allOf":[{"properties":{"a":{"prefixItems":[{},true,false],"items":{"enum":[null,1]}}}}],"required":["a",5]}`,
		`{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object"}],"type":"array","minItems":-1,"title":3}}}`,
		`{"properties":{"a":{"anyOf":[{"anyOf":[{"type":"string"}]}],"nullable":true,"default":1},"b":{"type":"strung"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		for _, forced := range []bool{false, true} {
			defs := []registry.Definition{{Name: "t", Source: registry.SourceCommand, InputSchema: schema}}
			out, _ := encode(t, defs, provider.Options{GeminiParameters: forced})
			for _, d := range out.Declarations {
				declared, field := declaredSchema(t, d.Data)
				if found := gemini.Check(declared); field == "parameters" && len(declared.Members) > 0 && len(found) > 0 {
					t.Fatalf("%q was declared as %s, which the API would refuse: %v", schema, d.Data, found)
				}
			}
		}
	})
}
