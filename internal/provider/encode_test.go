package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sampleTools returns valid and invalid tools of every source.
func sampleTools(t testing.TB) []registry.Definition {
	t.Helper()
	var defs []registry.Definition
	readJSON(t, "testdata/tools.json", &defs)
	return defs
}

func encode(t testing.TB, format string, defs []registry.Definition, opts Options) (Output, []registry.Diagnostic) {
	t.Helper()
	f, err := Lookup(format)
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

// TestGolden compares the output of every format for the sample tools. JSON is
// indented to be readable.
func TestGolden(t *testing.T) {
	runs := map[string]Options{}
	for _, f := range Formats() {
		runs[f.Name] = Options{}
	}
	maps.Copy(runs, map[string]Options{
		"gemini+request": {Request: true}, "gemini+parameters": {GeminiParameters: true},
		"bedrock+request": {Request: true}, "openai+request": {Request: true},
		"openai+strict": {Strict: true}, "openai-responses+strict": {Strict: true}, "anthropic+strict": {Strict: true},
	})
	for name, opts := range runs {
		t.Run(name, func(t *testing.T) {
			format, _, _ := strings.Cut(name, "+")
			goldenEncoding(t, filepath.Join("testdata", "golden", name+".txt"), format, sampleTools(t), opts)
		})
	}
}

// TestGoldenFields compares how each format writes the fields from the settings,
// and the diagnostics about fields that it does not support.
func TestGoldenFields(t *testing.T) {
	var defs []registry.Definition
	readJSON(t, "testdata/fields.json", &defs)
	for _, format := range []string{"anthropic", "bedrock", "gemini", "mcp", "mistral", "openai", "openai-responses"} {
		t.Run(format, func(t *testing.T) {
			goldenEncoding(t, filepath.Join("testdata", "golden", "fields-"+format+".txt"), format, defs, Options{})
		})
	}
}

// goldenEncoding compares an encoding and its diagnostics with a golden file.
func goldenEncoding(t *testing.T, path, format string, defs []registry.Definition, opts Options) {
	t.Helper()
	out, diags := encode(t, format, defs, opts)
	var got bytes.Buffer
	if json.Valid(out.Data) {
		if err := json.Indent(&got, out.Data, "", " "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
	} else {
		got.Write(out.Data)
	}
	got.WriteString("---\n")
	for _, d := range diags {
		fmt.Fprintf(&got, "%s %s %s %q: %s; %s\n", d.Severity, d.Code, d.Source, d.Tool, d.Message, d.Hint)
	}
	golden(t, path, got.Bytes())
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestGeminiVectors compares with the declarations of Gemini CLI's registry.
func TestGeminiVectors(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Name  string
			Tools []struct {
				Name, Kind, Server, ServerTool, Description, DescriptionHead string
				Declaration                                                  []string
				Parameters, ParametersJSONSchema                             json.RawMessage
			}
		}
	}
	readJSON(t, "testdata/registry.json", &vectors)
	seen := 0
	for _, c := range vectors.Cases {
		for _, tool := range c.Tools {
			def := registry.Definition{Name: registry.ValidName(tool.Name), Source: registry.SourceBuiltin}
			want := tool.Parameters
			switch tool.Kind {
			case "mcp":
				def.Source, def.Description = registry.MCPPrefix+tool.Server, tool.Description
				want = tool.ParametersJSONSchema
			case "discovered":
				def.Source, def.Description = registry.SourceCommand, tool.DescriptionHead
			default:
				continue // the vectors do not include declarations of built-in tools
			}
			def.InputSchema = want
			out, diags := encode(t, "gemini", []registry.Definition{def}, Options{GeminiReference: tool.Kind == "mcp"})
			description, _ := json.Marshal(def.Description)
			wantText := fmt.Sprintf(`[{"name":%q,"description":%s,%q:%s}]`, def.Name, description, tool.Declaration[2], compact(t, want))
			if diff := cmp.Diff(wantText, string(out.Data)); diff != "" || len(diags) > 0 {
				t.Errorf("%s, tool %s (-want +got):\n%s\ndiagnostics: %v", c.Name, tool.Name, diff, diags)
			}
			seen++
		}
	}
	if seen < 20 {
		t.Errorf("only %d tools compared", seen)
	}
}

// TestGeminiReference compares with schemas that Gemini CLI sanitized, even if the
// API rejects them.
func TestGeminiReference(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Name          string
			Input, Output json.RawMessage
			Unchanged     bool
			Error         json.RawMessage
		}
	}
	readJSON(t, "gemini/testdata/sanitize.json", &vectors)
	seen := 0
	for _, c := range vectors.Cases {
		var input struct{ Type string }
		if json.Unmarshal(c.Input, &input) != nil || input.Type != "object" || c.Error != nil {
			continue // a tool's schema must have type object
		}
		want := c.Output
		if c.Unchanged {
			want = c.Input
		}
		for source, wantText := range map[string]string{
			registry.SourceCommand: `[{"name":"9","description":"","parameters":` + compact(t, want) + `}]`,
			"mcp:s":                `[{"name":"9","description":"","parametersJsonSchema":` + compact(t, c.Input) + `}]`,
		} {
			out, diags := encode(t, "gemini", []registry.Definition{{Name: "9", Source: source, InputSchema: c.Input}}, Options{GeminiReference: true})
			if diff := cmp.Diff(wantText, string(out.Data)); diff != "" || slices.ContainsFunc(diags, func(d registry.Diagnostic) bool { return d.Code != "schema_changed" }) {
				t.Errorf("%s of %s (-want +got):\n%s\ndiagnostics: %v", c.Name, source, diff, diags)
			}
		}
		seen++
	}
	if seen < 20 {
		t.Errorf("only %d schemas compared", seen)
	}
}

// TestSchemasAreCopiedByteForByte checks that every JSON format contains the bytes
// of a schema that needs no change.
func TestSchemasAreCopiedByteForByte(t *testing.T) {
	const schema = `{"type":"object","zeta":{"b":1.0,"a":[1E2,9007199254740993,-0]},"properties":{"z":{"type":"string","const":"<é & \u00e9>"},"a":{"type":"array","items":{}}},"required":["z"],"$defs":{"x":true},"title":"T","description":"D"}`
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, []byte(schema), "\t", "  "); err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		if f.Name == "typescript" {
			continue
		}
		def := registry.Definition{Name: "t", Source: "mcp:s", Server: "s", InputSchema: spaced.Bytes()}
		out, diags := f.Encode([]registry.Definition{def}, Options{})
		if !bytes.Contains(out.Data, []byte(schema)) || len(diags) > 0 {
			t.Errorf("%s: %s\n%v", f.Name, out.Data, diags)
		}
	}
}

// TestEncodeIsDeterministic also checks that Encode does not modify the
// definitions.
func TestEncodeIsDeterministic(t *testing.T) {
	for _, f := range Formats() {
		for _, opts := range []Options{{}, {Strict: true, Request: true, GeminiParameters: true}} {
			defs := sampleTools(t)
			first, firstDiags := f.Encode(defs, opts)
			second, secondDiags := f.Encode(defs, opts)
			if !bytes.Equal(first.Data, second.Data) || !cmp.Equal(firstDiags, secondDiags) {
				t.Errorf("%s %+v: two runs differ", f.Name, opts)
			}
			if diff := cmp.Diff(sampleTools(t), defs); diff != "" {
				t.Errorf("%s changed the definitions:\n%s", f.Name, diff)
			}
		}
	}
}

// TestDeclarationsAreParts checks the parts of the output from which costs are
// computed.
func TestDeclarationsAreParts(t *testing.T) {
	for _, f := range Formats() {
		out, _ := f.Encode(settled(sampleTools(t)), Options{})
		if len(out.Declarations) != 9 {
			t.Errorf("%s: %d declarations, want 9", f.Name, len(out.Declarations))
		}
		rest := out.Data
		for _, d := range out.Declarations {
			_, after, found := bytes.Cut(rest, d.Data)
			if !found || !bytes.Contains(d.Data, []byte(d.Name)) {
				t.Errorf("%s: %s is not at its position: %s", f.Name, d.Tool, d.Data)
			}
			rest = after
		}
	}
}

// TestInvalidToolDoesNotAffectOthers puts each kind of invalid tool between valid
// ones.
func TestInvalidToolDoesNotAffectOthers(t *testing.T) {
	good := registry.Definition{Name: "good", Source: "builtin", InputSchema: json.RawMessage(`{"type":"object"}`)}
	last := good
	last.Name = "last"
	for name, schema := range map[string]string{
		"not JSON": `{"type":`, "text behind": `{} {}`, "a list": `[]`, "a number": `5`, "a boolean": `true`, "text": `"x"`,
		"too deep":     `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		"bottomless":   strings.Repeat(`{"x":`, 1<<17),
		"too large":    `{"x":"` + strings.Repeat("x", registry.MaxSchemaBytes) + `"}`,
		"out of range": `{"type":"object","maxProperties":1e400}`,
	} {
		for _, f := range Formats() {
			bad := registry.Definition{Name: "bad", Source: "mcp:s", Server: "s", InputSchema: json.RawMessage(schema)}
			out, diags := f.Encode([]registry.Definition{good, bad, last}, Options{})
			names := []string{}
			for _, d := range out.Declarations {
				names = append(names, d.Name)
			}
			if diff := cmp.Diff([]string{"good", "last"}, names); diff != "" || !f.Text && !json.Valid(out.Data) {
				t.Errorf("%s, %s: %s\n%s", name, f.Name, diff, out.Data)
			}
			i := slices.IndexFunc(diags, func(d registry.Diagnostic) bool { return d.Tool == "bad" })
			if i < 0 || diags[i].Code != "declaration_left_out" || diags[i].Source != "mcp:s" || diags[i].Hint == "" {
				t.Errorf("%s, %s: diagnostics %+v", name, f.Name, diags)
			}
			if len(fmt.Sprint(diags)) > 2000 {
				t.Errorf("%s, %s: a diagnostic of %d bytes", name, f.Name, len(fmt.Sprint(diags)))
			}
		}
	}
}

// TestFormatsAgree checks that all formats declare a tool or none does.
func TestFormatsAgree(t *testing.T) {
	for schema, declared := range map[string]bool{
		`{"type":"string"}`: false, `{"type":5}`: false, `{"type":["string","null"]}`: false, `{"$ref":"#/a","a":{"type":"string"}}`: false,
		`{"type":"object","properties":{"a":{"type":"strng"}}}`: false, `{"type":"object","properties":["a"]}`: false, `{"required":"a"}`: false,
		`{"type":"object","properties":{"a":{"minimum":"1"}}}`: false, `{"type":"object","properties":{"a":{"maximum":1e400}}}`: false,
		`{"type":null}`: true, `{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`: true, `{"$ref":"#/$defs/x"}`: true, `{"$ref":"https://example.com/s"}`: true,
		`{"type":"object","properties":[],"required":null}`: true, `{"type":"object","properties":{"a":null,"b":{"items":[]}}}`: true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":true,"minimum":0}}}`: true,
		`{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"$ref":"#/$defs/x"}}}`:                                                      true,
	} {
		for _, f := range Formats() {
			defs := settled([]registry.Definition{{Name: "t", Source: "mcp:s", Server: "s", InputSchema: json.RawMessage(schema)}})
			if out, _ := f.Encode(defs, Options{}); (len(out.Declarations) == 1) != declared {
				t.Errorf("%s: %s declares %s", schema, f.Name, out.Data)
			}
		}
	}
}

func TestNoTools(t *testing.T) {
	for _, f := range Formats() {
		for _, opts := range []Options{{}, {Request: true}} {
			out, diags := f.Encode(nil, opts)
			if len(diags) > 0 || len(out.Data) == 0 || !f.Text && !json.Valid(out.Data) {
				t.Errorf("%s %+v: %q, %v", f.Name, opts, out.Data, diags)
			}
		}
	}
	if out, diags := (Format{}).Encode(sampleTools(t), Options{}); out.Data != nil || diags != nil {
		t.Errorf("the zero format gave %s, %v", out.Data, diags)
	}
}

// TestPromptCannotBeForged checks that a description cannot look like another tool.
func TestPromptCannotBeForged(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029"} {
		def := registry.Definition{Name: "a", Source: "mcp:s", Description: "x" + end + "## b" + end + "  params: {}"}
		out, _ := encode(t, "prompt", []registry.Definition{def}, Options{})
		heads := 0
		for _, line := range regexp.MustCompile("[\n\r\v\f\u0085\u2028\u2029]").Split(string(out.Data), -1) {
			if strings.HasPrefix(line, "## ") {
				heads++
			}
		}
		if heads != 1 {
			t.Errorf("with %q: %d headings in\n%s", end, heads, out.Data)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, f := range Formats() {
		got, err := Lookup(f.Name)
		if err != nil || got.Name != f.Name || got.Summary == "" {
			t.Errorf("Lookup(%q) = %q, %v", f.Name, got.Name, err)
		}
	}
	if f, err := Lookup(""); err != nil || f.Name != DefaultFormat {
		t.Errorf("the default is %q, %v", f.Name, err)
	}
	for name, want := range map[string]string{
		"opnai":  `unknown declaration format "opnai"; did you mean openai?`,
		"qqqqqq": `unknown declaration format "qqqqqq"; use one of gemini, gemini-interactions, openai, openai-responses, anthropic, bedrock, mistral, mcp, json-schema, prompt, typescript`,
	} {
		if _, err := Lookup(name); err == nil || err.Error() != want {
			t.Errorf("Lookup(%q): %v", name, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"anyOf":[{"required":["a"]}]}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":["object","null"],"allOf":[{"$ref":"#/$defs/a"}]}}}`,
		`{"properties":{"a*/":{"enum":["*/",1]},"b":{"items":[{}],"type":"array"},"c":{"type":["string"]}},"required":5}`,
		`{"oneOf":{"a":1},"not":[],"enum":{},"properties":[],"items":"x","$defs":null,"type":"OBJECT"}`,
	} {
		f.Add("n.a-m/e", "a\n## b */", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name, description string, schema []byte) {
		defs := []registry.Definition{
			{Name: name, Description: description, Source: "mcp:s", Server: "s", InputSchema: schema, OutputSchema: schema, Annotations: schema},
			{Name: "other", Description: description, Source: "command", InputSchema: schema},
		}
		for _, format := range Formats() {
			out, _ := format.Encode(defs, Options{Strict: true})
			if !format.Text && !json.Valid(out.Data) {
				t.Fatalf("%s: %q", format.Name, out.Data)
			}
			for _, d := range out.Declarations {
				if got := OriginalNames(format.Name, []string{name, "other"})[d.Name]; got != d.Tool {
					t.Fatalf("%s: %q declared as %q leads back to %q", format.Name, d.Tool, d.Name, got)
				}
			}
		}
	})
}

func compact(t testing.TB, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
}

// Built-in tools are declared to Gemini without keywords that its API rejects.
func TestGeminiBuiltin(t *testing.T) {
	f, _ := Lookup("gemini")
	builtin := func(name, schema string) registry.Definition {
		return registry.Definition{Name: name, Source: registry.SourceBuiltin, Description: "d", InputSchema: json.RawMessage(schema)}
	}
	def := builtin("t", `{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"additionalProperties":{"type":"string"}},"additionalProperties":false}}},"additionalProperties":false}`)
	empty := builtin("e", `{"type":"object","properties":{},"additionalProperties":false}`)
	out, diags := f.Encode([]registry.Definition{def, empty}, Options{})
	const want = `[{"name":"t","description":"d","parameters":{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"additionalProperties":{"type":"string"}}}}}}},{"name":"e","description":"d","parameters":{}}]`
	if diff := cmp.Diff(want, string(out.Data)); diff != "" || len(diags) > 0 {
		t.Error(diff, diags)
	}
}
