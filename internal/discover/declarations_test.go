package discover

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func parse(t *testing.T, stdout string) *declarations {
	t.Helper()
	d, err := parseDeclarations([]byte(stdout), Limits{}.orDefault())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDeclarationWithAllFields(t *testing.T) {
	const declared = `[{
		"name": "deploy it", "displayName": "Deploy", "description": "d",
		"category": "command", "tags": ["ops", "slow"], "version": "1.2.0", "author": "me", "icon": "hammer",
		"optional": true, "permissions": ["network"], "isOutputMarkdown": true, "canUpdateOutput": true,
		"annotations": {"readOnlyHint": true}, "outputSchema": {"type": "object"},
		"examples": [{"description": "e", "params": {"n": 12345678901234567890}}],
		"parameters": {"z": 1, "a": 9007199254740993, "x-unknown": [1.0]}, "unknown": 5
	}]`
	d := parse(t, declared)
	want := []registry.Definition{{
		Name: "deploy_it", DisplayName: "Deploy", Description: "d", Category: registry.CategoryCommand,
		Tags: []string{"ops", "slow"}, Version: "1.2.0", Author: "me", Icon: "hammer", Optional: true,
		Permissions: []string{"network"}, OutputMarkdown: true, CanUpdateOutput: true,
		Annotations: json.RawMessage(`{"readOnlyHint": true}`), OutputSchema: json.RawMessage(`{"type": "object"}`),
		Examples:    []registry.Example{{Description: "e", Params: json.RawMessage(`{"n": 12345678901234567890}`)}},
		InputSchema: json.RawMessage(`{"z": 1, "a": 9007199254740993, "x-unknown": [1.0]}`),
	}}
	if diff := cmp.Diff(want, definitions(d)); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	if d.tools[0].original != "deploy it" || len(d.diagnostics()) > 0 {
		t.Errorf("original %q, diagnostics %v", d.tools[0].original, d.diagnostics())
	}
}

func definitions(d *declarations) []registry.Definition {
	var out []registry.Definition
	for _, t := range d.tools {
		out = append(out, t.definition)
	}
	return out
}

// A field of the wrong type is ignored, but its tool is kept.
func TestDeclarationWithWrongTypes(t *testing.T) {
	for field, value := range map[string]string{
		"displayName": "5", "description": "{}", "category": "7", "tags": `"ops"`, "version": "1.2", "author": "[]",
		"icon": "{}", "optional": `"yes"`, "permissions": `[1]`, "isOutputMarkdown": "1", "canUpdateOutput": `"no"`,
		"annotations": "[]", "outputSchema": "true", "examples": `{"a":1}`, "parameters": `"x"`, "parametersJsonSchema": "7",
	} {
		t.Run(field, func(t *testing.T) {
			d := parse(t, fmt.Sprintf(`[{"name":"t",%q:%s}]`, field, value))
			want := []registry.Definition{{Name: "t", DisplayName: "t", Category: registry.CategoryOther, InputSchema: json.RawMessage("{}")}}
			if diff := cmp.Diff(want, definitions(d)); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
			diags := d.diagnostics()
			if len(diags) != 1 || diags[0].Code != "field_ignored" || diags[0].Tool != "t" || !strings.Contains(diags[0].Message, field) {
				t.Errorf("diagnostics %+v", diags)
			}
		})
	}
}

func TestDeclarationShapes(t *testing.T) {
	tests := []struct {
		name, stdout string
		names        []string
		messages     []string // parts, one for each diagnostic
	}{
		{"three shapes in order", `[{"functionDeclarations":[{"name":"b"},{"name":"a"}]},{"name":"z"},{"function_declarations":[{"name":"c"}]}]`,
			[]string{"b", "a", "z", "c"}, nil},
		{"a wrapper that is no list counts for nothing", `[{"function_declarations":{"name":"x"},"name":"own"}]`, []string{"own"}, nil},
		{"exact keys", `[{"Name":"x"},{"NAME":"y","name":"z"}]`, []string{"z"}, []string{"item 1 has neither"}},
		{"falsy names", `[{"name":0},{"name":""},{"name":null},{"name":false},{"name":-0.0}]`, nil,
			[]string{"item 1 has neither", "item 2", "item 3", "item 4", "item 5"}},
		{"names of other types", `[{"name":true},{"function_declarations":[{"name":1e999}]}]`, nil,
			[]string{"item 1 has a name that is a boolean", "item 2, declaration 1 has a name that is a number"}},
		{"places", `[{"functionDeclarations":[{"name":"a"},"x",{},null]}]`, []string{"a"},
			[]string{"item 1, declaration 2 is a string", "item 1, declaration 3 has no name", "item 1, declaration 4 is null"}},
		{"a name that could not be an argument", `[{"name":"a\u0000b"},{"name":"` + strings.Repeat("x", maxOriginal+1) + `"},{"name":"c"}]`,
			[]string{"c"}, []string{"NUL", "4096"}},
		{"odd names", `[{"name":"constructor"},{"name":"__proto__"},{"name":"工具"},{"name":"a\ud83db"},{"name":"-x"}]`,
			[]string{"constructor", "__proto__", "__", "a_b", "-x"}, nil},
		{"byte order mark", "\uFEFF [] \u00a0\uFEFF", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := parse(t, tt.stdout)
			var names []string
			for _, def := range definitions(d) {
				names = append(names, def.Name)
			}
			if diff := cmp.Diff(tt.names, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			diags := d.diagnostics()
			if len(diags) != len(tt.messages) {
				t.Fatalf("diagnostics %+v", diags)
			}
			for i, want := range tt.messages {
				if !strings.Contains(diags[i].Message, want) || diags[i].Source != "command" {
					t.Errorf("diagnostic %+v lacks %q", diags[i], want)
				}
			}
		})
	}
}

// A schema that exceeds a limit disables only its own tool.
func TestSchemaLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	every, one := []string{"parameters", "parametersJsonSchema", "outputSchema"}, []string{"parameters"}
	tests := []struct {
		name, schema string
		fields       []string
		reason       string
	}{
		{"as deep as allowed", nested(registry.MaxDepth), every, ""},
		{"too deep", nested(registry.MaxDepth + 1), every, "nested deeper than 100"},
		{"deeper than encoding/json reads", nested(20_000), every, "nested deeper than 100"},
		{"brackets in strings", `{"a":"` + strings.Repeat(`[{\"`, 1000) + `"}`, one, ""},
		{"as large as allowed", `{"a":"` + strings.Repeat("x", registry.MaxSchemaBytes-8) + `"}`, one, ""},
		{"too large", `{"a":"` + strings.Repeat("x", registry.MaxSchemaBytes-7) + `"}`, one, "1048577 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, field := range tt.fields {
				d := parse(t, fmt.Sprintf(`[{"name":"before"},{"function_declarations":[{"name":"t",%q:%s},{"name":"after"}]}]`, field, tt.schema))
				want := 3
				if tt.reason != "" {
					want = 2
					if diags := d.diagnostics(); len(diags) != 1 || diags[0].Code != "tool_quarantined" || diags[0].Tool != "t" ||
						!strings.Contains(diags[0].Message, tt.reason) {
						t.Errorf("%s: diagnostics %+v", field, diags)
					}
				}
				usable := 0
				for _, one := range d.tools {
					if one.quarantine == nil {
						usable++
					}
				}
				if len(d.tools) != 3 || usable != want {
					t.Errorf("%s: %d of %d tools, want %d", field, usable, len(d.tools), want)
				}
			}
		})
	}
}

func TestTooManyTools(t *testing.T) {
	d, err := parseDeclarations([]byte("["+strings.Repeat(`{"name":"t"},`, 11)+`{"name":5}]`), Limits{Tools: 10}.orDefault())
	if err != nil || len(d.tools) != 10 {
		t.Fatalf("%d tools, %v", len(d.tools), err)
	}
	diags := d.diagnostics()
	if last := diags[len(diags)-1]; last.Code != "too_many_tools" || !strings.Contains(last.Message, "11 tools were declared, which is over the limit of 10 (limits.tools)") {
		t.Errorf("diagnostics %+v", diags)
	}
}

func TestExcessDiagnosticsAreCounted(t *testing.T) {
	d := parse(t, "["+strings.Repeat("0,", 100_000)+"0]")
	diags := d.diagnostics()
	if len(diags) != maxDiagnostics+1 || !strings.Contains(diags[maxDiagnostics].Message, "99901 more") {
		t.Errorf("%d diagnostics, the last %+v", len(diags), diags[len(diags)-1])
	}
}

// FuzzParseDeclarations checks that tools parsed from any output can be registered,
// encoded and called.
func FuzzParseDeclarations(f *testing.F) {
	for _, s := range []string{
		`[]`, `null`, `[{"name":"a","parameters":{"type":"object"}}]`, `[{"function_declarations":[{"name":"a\u0000"},null]}]`,
		`[{"name":"\ud83d","description":["a"],"examples":[{"params":[1e999]}],"tags":["t"]}]`, "\xef\xbb\xbf[{\"name\":\"\xff\"}]",
		`[{"name":"a","name":"b","category":"x","optional":1}]`, "> npm\n[]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stdout []byte) {
		d, err := parseDeclarations(stdout, Limits{Tools: 10}.orDefault())
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("an error of several lines: %q", err)
			}
			return
		}
		if len(d.tools) > 10 || len(d.diagnostics()) > maxDiagnostics+2 {
			t.Fatalf("%d tools, %d diagnostics", len(d.tools), len(d.diagnostics()))
		}
		for _, tool := range d.tools {
			def := tool.definition
			if def.Name == "" || registry.ValidName(def.Name) != def.Name || strings.ContainsRune(tool.original, 0) {
				t.Fatalf("name %q of %q", def.Name, tool.original)
			}
			if !utf8.ValidString(def.Description) || !json.Valid(def.InputSchema) || def.InputSchema[0] != '{' || def.Category == "" {
				t.Fatalf("definition %+v", def)
			}
			if _, err := json.Marshal(def); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkParseDeclarations(b *testing.B) {
	item := `{"name":"tool","description":"does it","parameters":{"type":"object","properties":{"a":{"type":"string","description":"` +
		strings.Repeat("x", 500) + `"}}}}`
	data := []byte("[" + strings.Repeat(item+",", 999) + item + "]")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := parseDeclarations(data, Limits{}.orDefault()); err != nil {
			b.Fatal(err)
		}
	}
}

// Forms of providers wrap each declaration.
func TestWrappedDeclarations(t *testing.T) {
	for item, want := range map[string]string{
		`{"type":"function","function":{"name":"a","parameters":{}}}`: `print what is in its member "function", without the wrapper`,
		`{"function":{"name":"a"}}`:                                   `print what is in its member "function", without the wrapper`,
		`{"toolSpec":{"name":"a"}}`:                                   `print what is in its member "toolSpec", without the wrapper`,
		`{"function":"a"}`:                                            "",
		`{"function":{}}`:                                             "",
	} {
		d := &declarations{}
		d.item(1, json.RawMessage(item))
		if len(d.tools) > 0 || len(d.diags) != 1 || d.diags[0].Hint != want || !strings.Contains(d.diags[0].Message, "item 1 has neither function_declarations nor a name; skipped") {
			t.Errorf("%s: %+v", item, d.diags)
		}
	}
}
