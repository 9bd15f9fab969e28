package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// generator makes schemas with faults that servers have.
type generator struct{ *rand.Rand }

func (g generator) pick(list ...any) any { return list[g.IntN(len(list))] }

// schema returns a schema, or what is found in its place.
func (g generator) schema(depth int) any {
	if g.IntN(12) == 0 {
		return g.pick(nil, true, []any{}, map[string]any{}, 5)
	}
	s := map[string]any{}
	if g.IntN(4) > 0 {
		s["type"] = g.pick("string", "integer", "number", "boolean", "object", "array", "null", "STRING", "any", nil, "strin", []any{"string", "null"}, []any{"integer", "integer"})
	}
	for range g.IntN(4) {
		switch g.IntN(16) {
		case 0:
			s["minimum"], s["exclusiveMinimum"] = 1, g.pick(true, false, 2, nil)
		case 1:
			s["exclusiveMaximum"] = g.pick(true, false, 9)
		case 2:
			s["nullable"] = g.pick(true, false, nil)
		case 3:
			s["enum"] = g.pick([]any{1, "a", nil}, []any{"a", "b"}, []any{}, nil, []any{true, 2.5}, "a")
		case 4:
			s["required"] = g.pick(true, false, nil, []any{"a"}, []any{"a", "a"}, []any{})
		case 5:
			s["$ref"] = g.pick("#", "#/$defs/d", "#/definitions/d", "#/$defs/none", "#d", "https://example.com/s", "other.json#/a", "#/properties/a", "#/$defs/loop", nil)
		case 6:
			s["format"], s["description"] = g.pick("date-time", 5), g.pick("d", nil, []any{"d"})
		case 7:
			s["const"] = g.pick("a", 1, nil)
		case 8:
			s["pattern"] = g.pick("^a", "(?=a)", nil)
		case 9:
			s["id"] = g.pick("#d", "x")
		case 10:
			s["default"] = g.pick(nil, "a", 1)
		case 11:
			s["dependencies"] = g.pick(nil, []any{}, map[string]any{"a": []any{"b", "b"}})
		default:
			if depth > 0 {
				g.nested(s, depth-1)
			}
		}
	}
	return s
}

// nested adds a keyword with schemas.
func (g generator) nested(s map[string]any, depth int) {
	switch g.IntN(6) {
	case 0:
		s["items"] = g.pick(g.schema(depth), []any{g.schema(depth)}, []any{}, nil)
	case 1:
		s[g.pick("anyOf", "oneOf", "allOf").(string)] = g.pick([]any{g.schema(depth), g.schema(depth)}, []any{}, nil, []any{nil, g.schema(depth)}, map[string]any{})
	case 2:
		s["additionalProperties"] = g.pick(true, false, nil, []any{}, g.schema(depth))
	case 3:
		s["not"] = g.schema(depth)
	case 4:
		s["$defs"] = g.pick(nil, []any{}, map[string]any{"d": g.schema(depth)})
	default:
		s["properties"] = g.properties(depth)
	}
}

func (g generator) properties(depth int) any {
	p := map[string]any{}
	for _, name := range []string{"a", "b", "c"}[:g.IntN(4)] {
		p[name] = g.schema(depth)
	}
	if len(p) == 0 {
		return g.pick(nil, []any{}, p)
	}
	return p
}

// root returns the input schema of a tool.
func (g generator) root() json.RawMessage {
	s := map[string]any{"type": g.pick("object", "OBJECT", nil, "object"), "properties": g.properties(2)}
	if g.IntN(2) == 0 {
		s["required"] = g.pick(nil, []any{}, []any{"a"}, []any{"b", "b"}, true)
	}
	if g.IntN(2) == 0 {
		s[g.pick("$defs", "definitions").(string)] = map[string]any{"d": g.schema(1), "loop": map[string]any{"$ref": g.pick("#/$defs/loop", "#/definitions/loop", "#/$defs/d")}}
	}
	if g.IntN(2) == 0 {
		s["$schema"] = g.pick("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#", "https://example.com/s", nil)
	}
	if g.IntN(4) == 0 {
		g.nested(s, 1)
	}
	raw, _ := json.Marshal(s)
	return raw
}

// value returns JSON for a param.
func (g generator) value(depth int) any {
	if depth > 0 && g.IntN(3) == 0 {
		return g.pick(map[string]any{"a": g.value(depth - 1), "b": g.value(depth - 1)}, []any{g.value(depth - 1)})
	}
	return g.pick("a", "b", "zz", 1, 2, 2.5, 9, true, nil, []any{}, map[string]any{})
}

type fixed struct{ tools []registry.Tool }

func (f *fixed) Name() string { return "mcp:s" }

func (f *fixed) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	return f.tools, nil, nil
}

// TestEverythingAgrees checks for generated schemas that what is declared can be called: all
// formats declare the same tools, the validator accepts their schemas, and accepts the params
// that the declarations of MCP and of JSON Schema accept. The declarations of other formats
// may accept more, because they cannot say everything.
func TestEverythingAgrees(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 2))}
	tools := make([]registry.Tool, 1500)
	for i := range tools {
		name := fmt.Sprintf("t%d", i)
		tools[i].Definition = registry.Definition{Name: name, Source: "mcp:s", Server: "s", ServerTool: name, InputSchema: g.root()}
	}
	sent := map[string]string{}
	for _, tool := range tools {
		sent[tool.Name] = string(tool.InputSchema)
	}
	reg := registry.NewLoader(registry.Options{}).Load(t.Context(), []registry.Source{&fixed{tools}}, false)
	if n := reg.Len(); n < 500 || n == len(tools) {
		t.Fatalf("%d of %d tools are registered", n, len(tools))
	}
	var defs []registry.Definition
	for _, tool := range reg.Tools() {
		defs = append(defs, tool.Definition)
		if kept := string(tool.AsSent().InputSchema); kept != sent[tool.Name] {
			t.Errorf("%s was sent, %s is kept", sent[tool.Name], kept)
		}
	}
	params := make([]json.RawMessage, 40)
	for i := range params {
		p := map[string]any{}
		for _, name := range []string{"a", "b", "c", "d"}[:g.IntN(5)] {
			p[name] = g.value(2)
		}
		params[i], _ = json.Marshal(p)
	}
	accepts := map[string][]bool{}
	for _, tool := range reg.Tools() {
		for _, p := range params {
			err := reg.Validate(t.Context(), tool, p)
			var wrong *registry.ArgsError
			if err != nil && !asArgs(err, &wrong) {
				t.Fatalf("%s cannot be called: %v", tool.AsSent().InputSchema, err)
			}
			accepts[tool.Name] = append(accepts[tool.Name], err == nil)
		}
		described := map[string]bool{}
		for _, p := range args.Describe(&tool.Definition) {
			described[p.Name] = true
		}
		root, err := jsonx.Parse(tool.InputSchema, jsonx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if properties := root.Get("properties"); properties != nil && root.Get("$ref") == nil {
			for name := range properties.ByName() {
				if !described[name] {
					t.Errorf("%s: completion lacks %s", tool.InputSchema, name)
				}
			}
		}
	}
	for _, f := range provider.Formats() {
		out, _ := f.Encode(defs, provider.Options{})
		if len(out.Declarations) != len(defs) {
			t.Errorf("%s declares %d of %d tools", f.Name, len(out.Declarations), len(defs))
		}
		if f.Name != "mcp" && f.Name != "json-schema" {
			continue
		}
		for name, schema := range declared(t, out.Data) {
			if f.Name == "mcp" && bytes.Contains(schema, []byte(`"$ref":"#"`)) {
				continue // the type that MCP requires at the root counts for these references too
			}
			v := registry.NewValidator(schema)
			for i, p := range params {
				found, err := v.Validate(t.Context(), p)
				if err != nil || (len(found) == 0) != accepts[name][i] {
					t.Fatalf("%s: %s: %s: accepted by the tool: %v; by the declaration: %v, %v", f.Name, schema, p, accepts[name][i], found, err)
				}
			}
		}
	}
}

func asArgs(err error, to **registry.ArgsError) bool {
	var ok bool
	*to, ok = err.(*registry.ArgsError)
	return ok
}

// declared returns the schemas of params in the formats mcp and json-schema by name.
func declared(t *testing.T, data []byte) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	if list, ok := jsonx.Elements(jsonx.Get(data, "tools")); ok {
		for _, tool := range list {
			name, _ := jsonx.Text(jsonx.Get(tool, "name"))
			out[name] = jsonx.Get(tool, "inputSchema")
		}
		return out
	}
	maps.Insert(out, jsonx.Members(data))
	return out
}
