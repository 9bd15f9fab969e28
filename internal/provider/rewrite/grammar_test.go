package rewrite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// strictDeclared encodes tools with the setting strict for Anthropic, and returns
// their declarations and the diagnostics.
func strictDeclared(t *testing.T, schemas ...string) (declared []anthropicTool, diagnostics string) {
	t.Helper()
	yes := true
	var defs []registry.Definition
	for i, schema := range schemas {
		defs = append(defs, registry.Definition{Name: fmt.Sprintf("t%d", i), Source: "mcp:s", Server: "s", InputSchema: json.RawMessage(schema), Provider: registry.ProviderFields{Strict: &yes}})
	}
	f, err := provider.Lookup("anthropic")
	if err != nil {
		t.Fatal(err)
	}
	out, diags := f.Encode(defs, provider.Options{})
	if err := json.Unmarshal(out.Data, &declared); err != nil {
		t.Fatal(err)
	}
	for _, d := range diags {
		diagnostics += d.Code + ": " + d.Message + "\n"
	}
	return declared, diagnostics
}

type anthropicTool struct {
	Strict bool
	Schema json.RawMessage `json:"input_schema"`
}

// TestStrictGrammar checks which keywords are removed for Anthropic's models.
func TestStrictGrammar(t *testing.T) {
	const closed = `"additionalProperties":false`
	for name, c := range map[string]struct{ schema, want, diag string }{
		"optional params stay": {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}},"required":["a"],` + closed + `}`, "objects closed"},
		"bounds go": {`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":5},"b":{"type":"string","pattern":"^x","format":"uri","maxLength":3},"c":{"type":"array","items":{"type":"string","format":"color"},"minItems":2}},` + closed + `}`,
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","format":"uri"},"c":{"type":"array","items":{"type":"string"}}},` + closed + `,"required":[]}`,
			"dropped: format, maxLength, maximum, minItems, minimum, pattern"},
		"shared definitions": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}},"required":["a","b"],"$defs":{"d":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}},"required":["a","b"],"$defs":{"d":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],` + closed + `}},` + closed + `}`, "objects closed"},
		"no params": {`{"type":"object","properties":{}}`, `{"type":"object","properties":{},` + closed + `,"required":[]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := strictDeclared(t, c.schema)
			if !got[0].Strict || string(got[0].Schema) != c.want {
				t.Errorf("declared\n%s, want\n%s", got[0].Schema, c.want)
			}
			if !strings.Contains(diags, c.diag) {
				t.Errorf("diagnostics %q, want %q", diags, c.diag)
			}
		})
	}
}

// TestStrictGrammarImpossible checks that a schema that cannot be strict is
// declared unchanged.
func TestStrictGrammarImpossible(t *testing.T) {
	for schema, why := range map[string]string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/d","properties":{"y":{"type":"string"}}}},"$defs":{"d":{"type":"object","properties":{"x":{"type":"string"}}}}}`: "must match several schemas",
		`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"string"}},"anyOf":[{"type":"object","properties":{"y":{"type":"string"}}}]}}}`:        "must match several schemas",
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`:                                                                     "properties of any name",
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`: "it contains itself",
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"object","properties":{"x":{"anyOf":[{"$ref":"#/$defs/d"}]}}}}}`: "it contains itself",
		`{"type":"object","properties":{"a":{"enum":[{"x":1}]}}}`:                                                                                                "objects or arrays",
		`{"type":"object","properties":{"a":{"const":[1]}}}`:                                                                                                     "objects or arrays",
		`{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"p%":{"type":"string"},`, 25), ",") + `}}`:                                        "24 optional params",
		`{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"p%":{"type":["string","null"]},`, 17), ",") + `},"required":["p0"` + ps() + `]}`: "16 params of several types",
	} {
		schema = numbered(schema)
		got, diags := strictDeclared(t, schema)
		if got[0].Strict || string(got[0].Schema) != schema {
			t.Errorf("%.200s was declared as %.200s", schema, got[0].Schema)
		}
		if !strings.Contains(diags, "strict_impossible") || !strings.Contains(diags, why) {
			t.Errorf("%.200s: diagnostics %q, want %q", schema, diags, why)
		}
	}
}

// numbered replaces each p% with a different name.
func numbered(schema string) string {
	for i := 0; strings.Contains(schema, "p%"); i++ {
		schema = strings.Replace(schema, "p%", fmt.Sprintf("p%d", i), 1)
	}
	return schema
}

// ps returns the names p1 to p16 as JSON.
func ps() string {
	var b strings.Builder
	for i := range 16 {
		fmt.Fprintf(&b, `,"p%d"`, i+1)
	}
	return b.String()
}

// TestStrictGrammarLimits checks that only 20 tools and 24 optional params in a
// request are strict. The other tools are declared as not strict.
func TestStrictGrammarLimits(t *testing.T) {
	strict := func(schemas []string) (n int, diags string) {
		tools, diags := strictDeclared(t, schemas...)
		for _, tool := range tools {
			if tool.Strict {
				n++
			}
		}
		return n, diags
	}
	many := make([]string, 25)
	for i := range many {
		many[i] = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	}
	if n, diags := strict(many); n != 20 || strings.Count(diags, "a request may have at most 20 strict tools") != 5 {
		t.Errorf("%d of 25 tools are strict: %s", n, diags)
	}
	for i := range many {
		many[i] = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}}`
	}
	if n, diags := strict(many); n != 8 || !strings.Contains(diags, "at most 24 optional params in total") {
		t.Errorf("%d of 25 tools with three optional params are strict: %s", n, diags)
	}
}

// TestStrictGrammarOfServers declares the tools of published servers one by one,
// and checks that the API would accept them.
func TestStrictGrammarOfServers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "servers", "*.json"))
	if err != nil || len(files) < 12 {
		t.Fatalf("%d servers: %v", len(files), err)
	}
	strict, all := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var listing struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage `json:"inputSchema"`
			}
		}
		if err := json.Unmarshal(data, &listing); err != nil {
			t.Fatal(err)
		}
		for _, tool := range listing.Tools {
			declared, _ := strictDeclared(t, string(tool.InputSchema))
			all++
			if len(declared) == 0 || !declared[0].Strict {
				continue
			}
			strict++
			var schema any
			if err := json.Unmarshal(declared[0].Schema, &schema); err != nil {
				t.Fatal(err)
			}
			if err := refusedByGrammar(schema); err != nil {
				t.Errorf("%s of %s: %v: %s", tool.Name, filepath.Base(file), err, declared[0].Schema)
			}
		}
	}
	t.Logf("%d of %d tools are strict", strict, all)
	if strict < all*2/3 {
		t.Errorf("only %d of %d tools are strict", strict, all)
	}
}

// refusedByGrammar returns an error if a schema is not valid as a strict schema for
// Anthropic's models.
func refusedByGrammar(schema any) error {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if s["type"] == "object" && s["additionalProperties"] != false {
		return fmt.Errorf("an object is open")
	}
	for keyword, value := range s {
		switch keyword {
		case "type", "required", "title", "description", "default", "enum", "const", "format", "$ref", "additionalProperties":
		case "properties", "$defs", "definitions":
			for _, sub := range value.(map[string]any) {
				if err := refusedByGrammar(sub); err != nil {
					return err
				}
			}
		case "items":
			if err := refusedByGrammar(value); err != nil {
				return err
			}
		case "anyOf":
			for _, sub := range value.([]any) {
				if err := refusedByGrammar(sub); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("keyword %s", keyword)
		}
	}
	return nil
}
