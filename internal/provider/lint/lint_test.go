package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

func lintLines(t *testing.T, formats []string, defs ...registry.Definition) []string {
	t.Helper()
	var chosen []provider.Format
	for _, name := range formats {
		f, err := provider.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		chosen = append(chosen, f)
	}
	var out []string
	for _, f := range Lint(chosen, defs, provider.Options{Strict: true}) {
		out = append(out, strings.TrimSpace(string(f.Severity)+" "+strings.Join(f.Formats, ",")+" "+f.Tool+" "+f.Code+" "+f.Pointer))
	}
	return out
}

func discovered(name, schema string) registry.Definition {
	return registry.Definition{Name: name, Source: registry.SourceCommand, Description: "d", InputSchema: json.RawMessage(schema)}
}

func TestLint(t *testing.T) {
	const good = `{"type":"object","properties":{"a":{"type":"string","description":"x"}}}`
	undescribed := discovered("t", `{"type":"object","properties":{"a":{"type":"string"}}}`)
	undescribed.Description = " "
	hidden := discovered("t", good)
	hidden.Description = "reads\u200b files"
	long := discovered("t", good)
	long.Description = strings.Repeat("é", 1025)
	fromServer := discovered("t", `{"type":"object","properties":{"a":{"const":1,"description":"x"}},"additionalProperties":false}`)
	fromServer.Source = "mcp:s"
	tests := []struct {
		name    string
		formats []string
		def     registry.Definition
		want    []string
	}{
		{"nothing", []string{"gemini", "openai", "anthropic"}, discovered("t", good), nil},
		{"no params", []string{"gemini"}, discovered("t", ``), nil},
		{"names of params", []string{"gemini"}, discovered("t", `{"type":"object","properties":{"a-b":{"type":"object","description":"x","properties":{"1":{"type":"string"},"_ok":{"type":"string"}}}}}`), []string{"info gemini t param_name_odd"}},
		{"rewritten", []string{"gemini"}, discovered("t", `{"$schema":"x","type":"object","properties":{"a":{"description":"x","oneOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}`), []string{"warning gemini t schema_changed"}},
		{"beyond the type Schema", []string{"gemini"}, discovered("t", `{"type":"object","properties":{"a":{"type":"object","description":"x"}}}`), []string{"warning gemini t schema_as_json_schema"}},
		{"a server's schema is declared in another field", []string{"gemini"}, fromServer, nil},
		{"changed alike", []string{"openai", "openai-responses"}, discovered("t", `{"type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{"type":"string","description":"x"}}}`), []string{"warning  t schema_changed"}},
		{"name", []string{"openai", "mcp"}, discovered("t.u", good), []string{"warning openai t.u name_changed"}},
		{"left out", []string{"anthropic", "openai"}, discovered("t", `{"type":"object","properties":{"ü":{"type":"string","description":"x"}}}`), []string{"error anthropic t declaration_left_out"}},
		{"left out everywhere", []string{"anthropic", "openai"}, discovered("t", `true`), []string{"error  t declaration_left_out"}},
		{"no descriptions", []string{"openai"}, undescribed, []string{"info  t description_missing", "info  t param_description_missing"}},
		{"long description", []string{"openai", "anthropic"}, long, []string{"warning openai t description_long"}},
		{"invisible", []string{"openai"}, hidden, []string{"warning  t text_invisible"}},
		{"references", []string{"anthropic", "openai"}, discovered("t", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"x"}},"$defs":{"x":{"type":"string"}}}`), []string{"info anthropic t ref_refused_by_some"}},
		{"dear", []string{"anthropic"}, discovered("t", `{"type":"object","description":"`+strings.Repeat("x", 9000)+`"}`), []string{"info  t tool_large"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lintLines(t, tt.formats, tt.def)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLintCount(t *testing.T) {
	var defs []registry.Definition
	for i := range 129 {
		defs = append(defs, discovered("t"+strings.Repeat("x", i%50)+string(rune('a'+i/50)), `{}`))
	}
	want := []string{"error openai  too_many_tools", "info   many_tools"}
	if diff := cmp.Diff(want, lintLines(t, []string{"openai", "anthropic"}, defs...)); diff != "" {
		t.Error(diff)
	}
}

// Gemini accepts 512 tools in one request, and OpenAI 128; Anthropic has no limit.
func TestLintToolLimit(t *testing.T) {
	for _, c := range []struct {
		format string
		tools  int
		want   bool
	}{
		{"gemini", 512, false}, {"gemini", 513, true},
		{"openai", 128, false}, {"openai", 129, true}, {"openai-responses", 129, true},
		{"anthropic", 600, false},
	} {
		defs := make([]registry.Definition, c.tools)
		for i := range defs {
			defs[i] = discovered(fmt.Sprintf("t%d", i), `{}`)
		}
		want := fmt.Sprintf("error %s  too_many_tools", c.format)
		if got := slices.Contains(lintLines(t, []string{c.format}, defs...), want); got != c.want {
			t.Errorf("%s with %d tools: finding about too many tools: %v", c.format, c.tools, got)
		}
	}
}

// Lint of expensive schemas terminates and reports the diagnostics of Encode.
func TestLintExpensiveSchemas(t *testing.T) {
	for _, schema := range []string{`[]`, `{"type":"object","properties":[1,{"type":5}],"anyOf":{"a":1},"required":{"x":1}}`, `{"$ref":"#"}`,
		`{"type":"object","properties":{"a":5,"b":null,"c":{"items":[1],"type":"array","anyOf":[3]}}}`, `{`, "\xff", strings.Repeat(`{"items":`, 200)} {
		for _, f := range provider.Formats() {
			Lint([]provider.Format{f}, []registry.Definition{discovered("t", schema)}, provider.Options{})
			Explain(f, []registry.Definition{discovered("t", schema)}, provider.Options{})
		}
	}
}

func TestExplain(t *testing.T) {
	f, _ := provider.Lookup("openai")
	got := Explain(f, []registry.Definition{
		discovered("t.u", `{"type":"object"}`), discovered("bad", `true`),
	}, provider.Options{})
	want := []Explanation{
		{Tool: "t.u", Name: "t_u", Field: "parameters", Own: "{\n  \"type\": \"object\"\n}\n", Declared: "{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n",
			Changes: []string{`declared as "t_u", since openai does not accept the name "t.u"`, "schema changed for openai: properties added at the root"}},
		{Tool: "bad", Own: "true\n", Changes: []string{}, LeftOut: `not declared for openai: its schema is not an object`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"gemini", "openai-responses", "anthropic", "bedrock", "mistral", "mcp", "json-schema"} {
		f, _ := provider.Lookup(name)
		if e := Explain(f, []registry.Definition{discovered("t", `{"type":"object","properties":{"a":{"type":"string"}}}`)}, provider.Options{}); !strings.Contains(e[0].Declared, `"a"`) {
			t.Errorf("%s: the declared schema is not found: %q", name, e[0].Declared)
		}
	}
}
