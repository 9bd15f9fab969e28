package rewrite_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/restore"
	"github.com/toolreg/toolreg/internal/registry"
)

// declaredSchema encodes one tool and returns the declared schema and the
// diagnostics. The schema is "" if the tool was omitted.
func declaredSchema(t *testing.T, format, schema string, opts provider.Options) (string, string) {
	t.Helper()
	def := registry.Definition{Name: "t", Source: "mcp:s", Server: "s", InputSchema: json.RawMessage(schema)}
	f, err := provider.Lookup(format)
	if err != nil {
		t.Fatal(err)
	}
	out, diags := f.Encode(settled([]registry.Definition{def}), opts)
	var texts []string
	for _, d := range diags {
		texts = append(texts, d.Code+": "+d.Message)
	}
	if len(out.Declarations) == 0 {
		return "", strings.Join(texts, "\n")
	}
	key := map[string]string{
		"openai": "parameters", "openai-responses": "parameters", "anthropic": "input_schema", "bedrock": "json",
		"mistral": "parameters", "mcp": "inputSchema", "json-schema": "t",
	}[format]
	n, err := jsonx.Parse(out.Declarations[0].Data, jsonx.Options{})
	if format == "json-schema" {
		n, err = jsonx.Parse(out.Data, jsonx.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"toolSpec", "inputSchema", "function"} {
		if inner := n.Get(step); inner != nil && step != key {
			n = inner
		}
	}
	return string(n.Get(key).AppendTo(nil)), strings.Join(texts, "\n")
}

// TestRoots checks how schemas are rewritten whose root would make an API reject
// the whole request.
func TestRoots(t *testing.T) {
	for name, c := range map[string]struct{ format, schema, want, diag string }{
		"type added": {"anthropic", `{"properties":{"a":{}}}`,
			`{"type":"object","properties":{"a":{}}}`, "added at the root"},
		"type narrowed":    {"mistral", `{"$schema":"x","$id":"y","type":["object","null"]}`, `{"type":"object"}`, "narrowed"},
		"properties added": {"openai", `{"type":"object"}`, `{"type":"object","properties":{}}`, "properties added"},
		"reference": {"bedrock", `{"$schema":"x","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"object","properties":{"x":{}}}}}`,
			`{"type":"object","properties":{"x":{}},"$schema":"x","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"object","properties":{"x":{}}}}}`, "reference at the root"},
		"reference stays for MCP": {"mcp", `{"type":"object","$ref":"#/$defs/b","$defs":{"b":{}}}`, `{"type":"object","$ref":"#/$defs/b","$defs":{"b":{}}}`, ""},
		"anyOf of required": {"anthropic", `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{}}}`, "anyOf at the root flattened"},
		"oneOf of objects": {"openai", `{"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"a":{"const":2},"b":{}}},true]}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"const":1},{"const":2}]},"b":{}}}`, "oneOf at the root flattened"},
		"alternatives with a constant": {"anthropic", `{"oneOf":[{"properties":{"do":{"const":"add"},"n":{"type":"integer"}},"required":["do","n"]},{"properties":{"do":{"type":"string","enum":["drop"]},"n":{"type":"string"}},"required":["do"]}]}`,
			`{"type":"object","properties":{"do":{"type":"string","enum":["add","drop"]},"n":{"anyOf":[{"type":"integer"},{"type":"string"}]}},"required":["do"]}`, "oneOf at the root flattened"},
		"alternatives within allOf": {"openai", `{"type":"object","properties":{"a":{}},"allOf":[{"anyOf":[{"properties":{"b":{}},"required":["b"]},{"allOf":[{"properties":{"c":{}}}]}]}]}`,
			`{"type":"object","properties":{"a":{},"b":{},"c":{}}}`, "allOf at the root flattened"},
		"reference to what was flattened": {"anthropic", `{"type":"object","properties":{"a":{"$ref":"#/anyOf/0/properties/b"}},"anyOf":[{"properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{},"b":{"type":"string"}}}`, "dangling references dropped"},
		"properties next to the reference": {"openai", `{"$ref":"#/$defs/a","properties":{"y":{}},"required":["y","x"],"$defs":{"a":{"type":"object","properties":{"x":{}},"required":["x"]}}}`,
			`{"properties":{"y":{},"x":{}},"required":["y","x"],"type":"object","$defs":{"a":{"type":"object","properties":{"x":{}},"required":["x"]}}}`, "reference at the root"},
		"definitions within the target": {"anthropic", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a/$defs/b"}},"$defs":{"b":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"x":{"$ref":"#/$defs/a/$defs/b"}},"$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a/$defs/b"}},"$defs":{"b":{"type":"string"}}}}}`, "reference at the root"},
		"allOf keeps what is required": {"anthropic", `{"required":["z"],"allOf":[{"properties":{"a":{}},"required":["a","z"]},{"$ref":"#/$defs/b"}],"$defs":{"b":{"properties":{"b":{}},"required":["b"]}}}`,
			`{"type":"object","required":["z","a","b"],"$defs":{"b":{"properties":{"b":{}},"required":["b"]}},"properties":{"a":{},"b":{}}}`, "allOf at the root flattened"},
		"huge numbers": {"anthropic", `{"type":"object","properties":{"a":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807},` +
			`"b":{"maximum":9223372036854774784,"exclusiveMinimum":-1e308,"minimum":0,"enum":[1,1e20]},"c":{"oneOf":[{"maxLength":18446744073709551615},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"maximum":9223372036854774784,"minimum":0},"c":{"anyOf":[{},{"type":"null"}]}}}`,
			"numbers removed that are too large"},
		"huge numbers of generators in JavaScript": {"openai", `{"type":"object","properties":{"a":{"not":{"default":3,"multipleOf":9223372036854776000}}}}`,
			`{"type":"object","properties":{"a":{}}}`, "numbers removed that are too large"},
		"not and enum": {"openai", `{"type":"object","properties":{},"not":{"required":["a"]},"enum":[{}]}`,
			`{"type":"object","properties":{}}`, "not at the root flattened"},
		"items": {"openai", `{"type":"object","properties":{"a":{"type":["array","null"]},"b":{"anyOf":[{"type":"array"}]}}}`,
			`{"type":"object","properties":{"a":{"type":["array","null"],"items":{}},"b":{"anyOf":[{"type":"array","items":{}}]}}}`, "items added"},
		"odd key":               {"anthropic", `{"type":"object","properties":{"filter[id]":{}}}`, "", `declaration_left_out: not declared for anthropic: its param "filter[id]"`},
		"odd key deeper":        {"bedrock", `{"type":"object","properties":{"a":{"properties":{"b c":{}}}}}`, `{"type":"object","properties":{"a":{"properties":{"b c":{}}}}}`, ""},
		"odd key elsewhere":     {"openai", `{"type":"object","properties":{"filter[id]":{}}}`, `{"type":"object","properties":{"filter[id]":{}}}`, ""},
		"twice the same key":    {"openai", `{"type":"object","properties":{"a":{}},"properties":{"b":{}}}`, `{"type":"object","properties":{"b":{}}}`, "duplicate keys"},
		"title and description": {"json-schema", `{"type":"object"}`, `{"title":"t","type":"object"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := declaredSchema(t, c.format, c.schema, provider.Options{})
			if got != c.want {
				t.Errorf("declared\n%s, want\n%s", got, c.want)
			}
			if (c.diag == "") != (diags == "") || !strings.Contains(diags, c.diag) {
				t.Errorf("diagnostics %q, want %q", diags, c.diag)
			}
		})
	}
}

// TestPatterns checks that OpenAI is sent no pattern for which it would reject the whole request.
func TestPatterns(t *testing.T) {
	const params = `{"type":"object","properties":{"a":%s},"required":["a"],"additionalProperties":false}`
	for schema, want := range map[string]string{
		`{"type":"string","pattern":"^\\d{3}[\\w.-]\\u0041(?:a|b)\\/$"}`:                            `{"type":"string","pattern":"^\\d{3}[\\w.-]\\u0041(?:a|b)\\/$"}`,
		`{"type":"string","pattern":"^(?!\\.)[a-z]+$"}`:                                             `{"type":"string"}`,
		`{"type":"string","pattern":"(?<=a)b"}`:                                                     `{"type":"string"}`,
		`{"type":"string","pattern":"^[^\\p{Cc}\"]{1,200}$"}`:                                       `{"type":"string"}`,
		`{"type":"string","pattern":"^\\P{L}$"}`:                                                    `{"type":"string"}`,
		`{"type":"string","pattern":"(?<year>[0-9]+)"}`:                                             `{"type":"string"}`,
		`{"type":"string","pattern":"^\\u{1F600}$"}`:                                                `{"type":"string"}`,
		`{"type":"string","pattern":"^[\\w-.]+$"}`:                                                  `{"type":"string"}`,
		`{"type":"string","pattern":"^[a-z[\\]{}|]*$"}`:                                             `{"type":"string"}`,
		`{"type":"string","pattern":"^a$?[$?]"}`:                                                    `{"type":"string"}`,
		`{"type":"string","pattern":"a\\b+"}`:                                                       `{"type":"string"}`,
		`{"type":"string","pattern":"a|{,5}"}`:                                                      `{"type":"string"}`,
		`{"type":"string","pattern":"[$?]\\\\b+"}`:                                                  `{"type":"string","pattern":"[$?]\\\\b+"}`,
		`{"type":"string","pattern":"*.go"}`:                                                        `{"type":"string"}`,
		`{"type":"string","const":"(?=a)"}`:                                                         `{"type":"string","const":"(?=a)"}`,
		`{"type":"object","patternProperties":{"^\\p{L}":{},"^x":{}},"additionalProperties":false}`: `{"type":"object","patternProperties":{"^x":{}}}`,
		`{"type":"string","not":{"pattern":"^(?!a)"}}`:                                              `{"type":"string"}`,
		`{"oneOf":[{"type":"string","pattern":"^(?!a)"},{"type":"string","pattern":"^a"}]}`:         `{"anyOf":[{"type":"string"},{"type":"string","pattern":"^a"}]}`,
	} {
		for _, format := range []string{"openai", "openai-responses"} {
			got, diags := declaredSchema(t, format, fmt.Sprintf(params, schema), provider.Options{})
			if got != fmt.Sprintf(params, want) || (schema == want) != (diags == "") {
				t.Errorf("%s: %s is declared as\n%s; %s", format, schema, got, diags)
			}
		}
	}
	const email = `{"type":"string","pattern":"^(?!\\.)[a-z]+$"}`
	got, diags := declaredSchema(t, "openai", fmt.Sprintf(params, email), provider.Options{Strict: true})
	if got != fmt.Sprintf(params, `{"type":"string"}`) || !strings.Contains(diags, "patterns removed") {
		t.Errorf("strict: %s; %s", got, diags)
	}
	if got, _ := declaredSchema(t, "anthropic", fmt.Sprintf(params, email), provider.Options{}); got != fmt.Sprintf(params, email) {
		t.Errorf("anthropic takes all patterns, but is sent %s", got)
	}

	f, err := provider.Lookup("openai-responses")
	if err != nil {
		t.Fatal(err)
	}
	def := registry.Definition{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	for schema, want := range map[string]string{
		email: `{"type":"string"}`, `{"type":"array"}`: `{"type":"array","items":{}}`, // and what else OpenAI refuses
	} {
		def.Provider.OutputSchema = json.RawMessage(fmt.Sprintf(params, schema))
		out, _ := f.Encode([]registry.Definition{def}, provider.Options{})
		if want := `"output_schema":` + fmt.Sprintf(params, want); !strings.Contains(string(out.Data), want) {
			t.Errorf("declared as %s, want %s in it", out.Data, want)
		}
	}
}

func TestStrict(t *testing.T) {
	const closedEnd = `"additionalProperties":false`
	for name, c := range map[string]struct{ schema, want, diag string }{
		"already strict": {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],` + closedEnd + `}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],` + closedEnd + `}`, ""},
		"optional": {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"]},"c":{"enum":["x",1]},"d":{"const":"y"}},` + closedEnd + `}`,
			`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["integer","null"]},"c":{"type":["string","integer","null"],"enum":["x",1,null]},"d":{"anyOf":[{"type":"string","const":"y"},{"type":"null"}]}},` + closedEnd + `,"required":["a","b","c","d"]}`,
			"optional properties made nullable: a, b, c, d"},
		"nested": {`{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"string","minLength":3,"format":"uri"}},"required":["a"]}},"required":["o"]}`,
			`{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],` + closedEnd + `}},"required":["o"],` + closedEnd + `}`,
			"objects closed to additional properties; dropped: format, minLength"},
		"anyOf and oneOf": {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]},"b":{"oneOf":[{"type":"null"},{"type":"number"}]}},` + closedEnd + `}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"anyOf":[{"type":"null"},{"type":"number"}]}},` + closedEnd + `,"required":["a","b"]}`,
			"oneOf converted to anyOf"},
		"reference": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/d","title":"x"},"b":{"$ref":"#/$defs/d","description":"y"}},"required":["a"],` + closedEnd + `,"$defs":{"d":{"type":"object","properties":{},` + closedEnd + `}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}],"description":"y"}},"required":["a","b"],` + closedEnd + `,"$defs":{"d":{"type":"object","properties":{},` + closedEnd + `,"required":[]}}}`,
			"references with a description put in anyOf; optional properties made nullable: b; dropped: title next to $ref"},
		"references to properties": {`{"type":"object","properties":{"a":{"type":"object","properties":{"k":{"type":"string"},"n":{"$ref":"#/properties/a"}}},"b":{"$ref":"#/properties/a/properties/k"},"c":{"$ref":"#/$defs/ref1"},"d":{"$ref":"#"}},"required":["b","c","d"],"$defs":{"ref1":{"type":"integer"}}}`,
			`{"type":"object","properties":{"a":{"type":["object","null"],"properties":{"k":{"type":["string","null"]},"n":{"anyOf":[{"$ref":"#/$defs/ref1_"},{"type":"null"}]}},` + closedEnd + `,"required":["k","n"]},"b":{"$ref":"#/$defs/ref2"},"c":{"$ref":"#/$defs/ref1"},"d":{"$ref":"#"}},"required":["a","b","c","d"],` +
				`"$defs":{"ref1":{"type":"integer"},"ref1_":{"type":"object","properties":{"k":{"type":["string","null"]},"n":{"anyOf":[{"$ref":"#/$defs/ref1_"},{"type":"null"}]}},` + closedEnd + `,"required":["k","n"]},"ref2":{"type":"string"}},` + closedEnd + `}`,
			"the targets of references copied to $defs"},
		"allOf of one": {`{"type":"object","properties":{"a":{"description":"x","allOf":[{"$ref":"#/$defs/d"}]}},"required":["a"],` + closedEnd + `,"$defs":{"d":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/d"}],"description":"x"}},"required":["a"],` + closedEnd + `,"$defs":{"d":{"type":"string"}}}`, "allOf of one schema merged"},
		"values of another type": {`{"type":"object","properties":{"a":{"type":"integer","enum":[1,2.0,"x",null]}},"required":["a"],` + closedEnd + `}`,
			`{"type":"object","properties":{"a":{"type":"integer","enum":[1,2.0]}},"required":["a"],` + closedEnd + `}`, "values of another type removed from an enum"},
		"required without property": {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","zz"],` + closedEnd + `}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],` + closedEnd + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := declaredSchema(t, "openai", c.schema, provider.Options{Strict: true})
			if got != c.want {
				t.Errorf("declared\n%s, want\n%s", got, c.want)
			}
			if !strings.Contains(diags, c.diag) || strings.Contains(diags, "strict_impossible") {
				t.Errorf("diagnostics %q, want %q", diags, c.diag)
			}
		})
	}
}

// TestStrictImpossible checks that a schema that cannot be strict is declared
// unchanged, with a diagnostic.
func TestStrictImpossible(t *testing.T) {
	nested := `{"type":"string","description":"` + strings.Repeat("x", 1<<15) + `"}`
	var references []string
	for i := range 40 {
		nested = `{"type":"object","properties":{"a":` + nested + `}}`
		references = append(references, fmt.Sprintf(`"r%d":{"$ref":"#%s"}`, i, strings.Repeat("/properties/a", i+1)))
	}
	for schema, why := range map[string]string{
		strings.TrimSuffix(nested, "}}") + `,` + strings.Join(references, ",") + `}}`:                                                                 "too large to be copied",
		`{"type":"object","properties":{"a":{}}}`:                                                                                                     "accepts any value",
		`{"type":"object","properties":{"a":{"type":"boolean","enum":[0,1]}}}`:                                                                        "no value of its type",
		`{"type":"object","properties":{"a":{}},"else":{"properties":{"b":{}}}}`:                                                                      "properties in it depend on others",
		`{"type":"object","properties":{"a":true}}`:                                                                                                   "accepts any value",
		`{"type":"object","properties":{"a":{"type":"object"}}}`:                                                                                      "properties of any name",
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}`:                                             "properties of any name",
		`{"type":"object","properties":{},"additionalProperties":true}`:                                                                               "properties of any name",
		`{"type":"object","properties":{},"patternProperties":{"^x":{}}}`:                                                                             "patternProperties",
		`{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"minLength":1}]}}}`:                                                          "several schemas at once",
		`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{}],"items":{}}}}`:                                                         "prefixItems",
		`{"type":"object","properties":{"a":{"type":"array","items":{}}}}`:                                                                            "accepts any value",
		`{"type":"object","properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 12) + `{"type":"string"}` + strings.Repeat("}", 12) + `}}`: "nested deeper than 10",
		`{"type":"object","properties":{"a":{"enum":[` + strings.Repeat("1,", 1000) + `1]}}}`:                                                         "1001 enum values",
		`{"type":"object","properties":{"a":{"type":"string","enum":[` + strings.Repeat(`"`+strings.Repeat("x", 60)+`",`, 251) + `"y"]}}}`:            "15061 characters",
		`{"type":"object","properties":{"` + strings.Repeat("x", 120_001) + `":{"type":"string"}}}`:                                                   "120001 characters",
	} {
		got, diags := declaredSchema(t, "openai-responses", schema, provider.Options{Strict: true})
		if got != schema {
			t.Errorf("%s was declared as %s", schema, got)
		}
		if !strings.Contains(diags, "strict_impossible") || !strings.Contains(diags, why) {
			t.Errorf("%.200s: diagnostics %q, want %q", schema, diags, why)
		}
	}
}

// TestStrictThenRestored checks that a model may send null for an optional param.
func TestStrictThenRestored(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`
	if got := string(restore.Optional(json.RawMessage(schema), json.RawMessage(`{"a":"x","b":null}`))); got != `{"a":"x"}` {
		t.Errorf("got %s", got)
	}
}

// TestFlattenExpensiveSchemas flattens schemas that would take hours without a
// limit on the work.
func TestFlattenExpensiveSchemas(t *testing.T) {
	big := `"` + strings.Repeat("x", 20_000) + `"`
	var tree, wide strings.Builder
	tree.WriteString(`{"type":"object","$ref":"#/$defs/n0","$defs":{"p":{"properties":{"a":{"const":` + big + `}}},"q":{"properties":{"a":{"const":1,"title":` + big + `}}}`)
	for i := range 16 {
		fmt.Fprintf(&tree, `,"n%d":{"anyOf":[{"$ref":"#/$defs/n%d"},{"$ref":"#/$defs/n%d"}]}`, i, i+1, i+1)
	}
	tree.WriteString(`,"n16":{"anyOf":[{"$ref":"#/$defs/p"},{"$ref":"#/$defs/q"}]}}}`)
	wide.WriteString(`{"type":"object","anyOf":[{}` + strings.Repeat(`,{"$ref":"#/$defs/m"}`, 5_000) + `],"$defs":{"m":{"properties":{"z":{}`)
	for i := range 5_000 {
		fmt.Fprintf(&wide, `,"p%d":{}`, i)
	}
	wide.WriteString(`}}}}`)
	for _, schema := range []string{tree.String(), wide.String()} {
		if got, diags := declaredSchema(t, "anthropic", schema, provider.Options{}); got == "" || !strings.Contains(diags, "flattened") {
			t.Errorf("not declared: %.300s", diags)
		}
	}
}

func TestBooleanProperties(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":true,"b":{"properties":{"c":false},"items":true}},"additionalProperties":false}`
	got, diags := declaredSchema(t, "mcp", schema, provider.Options{})
	if want := `{"type":"object","properties":{"a":{},"b":{"properties":{"c":{"not":{}}},"items":true}},"additionalProperties":false}`; got != want || !strings.Contains(diags, "written as objects") {
		t.Errorf("%s\n%s", got, diags)
	}
	f, err := provider.Lookup("mcp")
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{
		`{"properties":{"a":true}}`: `"outputSchema":{"type":"object","properties":{"a":{}}}`,
		`{"properties":{"a":5}}`:    `"name":"t"`,
		// Some clients refuse a tool because of the draft that its schema names.
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`:      `"outputSchema":{"type":"object"}`,
		`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema"}`: `"outputSchema":{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema"}`,
	} {
		out, _ := f.Encode(settled([]registry.Definition{{Name: "t", OutputSchema: []byte(output)}}), provider.Options{})
		if got := string(out.Data); !strings.Contains(got, want) || strings.Contains(got, ":5") {
			t.Errorf("output schema %s: %s", output, got)
		}
	}
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
