package overrides

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// newSet returns the overrides in a settings file.
func newSet(t testing.TB, yaml string) *Set {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{file}, NoUser: true, NoProject: true, SystemDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return New(set, nil)
}

// recorder is a tool that records the params of its calls.
type recorder struct {
	registry.Tool
	got string
}

func newRecorder(schema string) *recorder {
	r := &recorder{Tool: registry.Tool{Definition: registry.Definition{Name: "x", DisplayName: "x", Source: "mcp:s", Server: "s", ServerTool: "x",
		Description: "Does x.", Aliases: []string{"ex"}, InputSchema: json.RawMessage(schema)}}}
	r.Run = func(_ context.Context, call registry.Call) (registry.Result, error) {
		r.got = string(call.Params)
		return registry.TextResult("ran"), nil
	}
	r.Subject = func(call registry.Call) (registry.Subject, error) {
		return registry.Subject{Command: string(call.Params)}, nil
	}
	r.Preview = func(_ context.Context, call registry.Call) (registry.Preview, error) {
		return registry.Preview{Prompt: string(call.Params)}, nil
	}
	r.Confirm = func(_ context.Context, call registry.Call) registry.Asking {
		return registry.Asking{Reason: string(call.Params)}
	}
	return r
}

const flat = `{"type":"object","properties":{"repo":{"type":"string","description":"which"},"title":{"type":"string"},"limit":{"type":"integer","minimum":1},"mode":{"enum":["fast","slow"]}},"required":["repo","title"],"additionalProperties":false}`

func shape(t testing.TB, r *recorder, yaml string) registry.Tool {
	t.Helper()
	out := newSet(t, yaml).Reshape(t.Context(), &r.Tool, []string{"x"})
	if out.Quarantine != nil {
		t.Fatal(out.Quarantine)
	}
	return out
}

func TestReshapeParams(t *testing.T) {
	tests := []struct{ name, schema, params, want string }{
		{"const", flat, `{repo: {const: a/b}}`,
			`{"type":"object","properties":{"title":{"type":"string"},"limit":{"type":"integer","minimum":1},"mode":{"enum":["fast","slow"]}},"required":["title"],"additionalProperties":false}`},
		{"hidden, default, enum and description", flat, `{limit: {hidden: true}, title: {default: hi, description: What.}, mode: {enum: [slow]}, repo: {name: repository}}`,
			`{"type":"object","properties":{"repository":{"type":"string","description":"which"},"title":{"type":"string","default":"hi","description":"What."},"mode":{"enum":["slow"]}},"required":["repository"],"additionalProperties":false}`},
		{"swapped names", flat, `{repo: {name: title}, title: {name: repo}}`,
			`{"type":"object","properties":{"title":{"type":"string","description":"which"},"repo":{"type":"string"},"limit":{"type":"integer","minimum":1},"mode":{"enum":["fast","slow"]}},"required":["title","repo"],"additionalProperties":false}`},
		{"the last required param", `{"type":"object","properties":{"a":{}},"required":["a"]}`, `{a: {const: null}}`, `{"type":"object","properties":{}}`},
		{"a reference as root", `{"$ref":"#/$defs/Args","$defs":{"Args":{"type":"object","properties":{"a":{"type":"string"},"next":{"$ref":"#/$defs/Args"}},"required":["a"]}}}`, `{a: {name: b}}`,
			`{"$defs":{"Args":{"type":"object","properties":{"a":{"type":"string"},"next":{"$ref":"#/$defs/Args"}},"required":["a"]}},"type":"object","properties":{"b":{"type":"string"},"next":{"$ref":"#/$defs/Args"}},"required":["b"]}`},
		{"allOf and a reference in it", `{"type":"object","properties":{"c":{}},"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/B"}],"$defs":{"B":{"properties":{"b":{"type":"string"}},"required":["b"]}}}`,
			`{a: {const: x}, b: {name: c2}}`,
			`{"type":"object","properties":{"c":{}},"allOf":[{"properties":{}},{"properties":{"c2":{"type":"string"}},"required":["c2"]}]}`},
		{"definitions of a param that is hidden", `{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]},"b":{"$ref":"#/definitions/x~1y%5B"}},"$defs":{"A":{"items":{"$ref":"#/$defs/A1"}},"A1":{"$ref":"#/$defs/A"},"B":{"type":"string"}},"definitions":{"x/y[":{"items":{"$ref":"#/$defs/B"}},"z":{}}}`,
			`{a: {hidden: true}}`,
			`{"properties":{"b":{"$ref":"#/definitions/x~1y%5B"}},"$defs":{"B":{"type":"string"}},"definitions":{"x/y[":{"items":{"$ref":"#/$defs/B"}}}}`},
		{"definitions of draft 7 alone", `{"properties":{"a":{"$ref":"#/definitions/A"},"b":{}},"definitions":{"A":{"type":"string"}}}`, `{a: {hidden: true}}`,
			`{"properties":{"b":{}}}`},
		{"definitions that have names", `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#b"}},"$defs":{"A":{"type":"string"},"B":{"$anchor":"b"}}}`, `{a: {hidden: true}}`,
			`{"properties":{"b":{"$ref":"#b"}},"$defs":{"A":{"type":"string"},"B":{"$anchor":"b"}}}`},
		{"a param that is a reference", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`, `{a: {enum: [x, y]}}`,
			`{"properties":{"a":{"allOf":[{"$ref":"#/$defs/A"}],"enum":["x","y"]}},"$defs":{"A":{"type":"string"}}}`},
		{"conditions about other params", `{"properties":{"a":{},"b":{}},"anyOf":[{"required":["b"]},{"properties":{"b":{"properties":{"a":{}}}}}]}`, `{a: {const: 1}}`,
			`{"properties":{"b":{}},"anyOf":[{"required":["b"]},{"properties":{"b":{"properties":{"a":{}}}}}]}`},
		{"description of a param with conditions", `{"properties":{"a":{}},"if":{"required":["a"]},"then":{}}`, `{a: {description: d, enum: [1]}}`,
			`{"properties":{"a":{"enum":[1],"description":"d"}},"if":{"required":["a"]},"then":{}}`},
	}
	tests = append(tests, []struct{ name, schema, params, want string }{
		{"dependencies between other params", `{"properties":{"a":{},"b":{},"c":{}},"dependentRequired":{"b":["c"]}}`, `{a: {const: 1}}`,
			`{"properties":{"b":{},"c":{}},"dependentRequired":{"b":["c"]}}`},
		{"conditions by reference about other params", `{"properties":{"a":{},"b":{}},"not":{"$ref":"#/$defs/b"},"$defs":{"b":{"required":["b"]}}}`, `{a: {const: 1}}`,
			`{"properties":{"b":{}},"not":{"$ref":"#/$defs/b"},"$defs":{"b":{"required":["b"]}}}`},
		{"description of a param that another refers to", `{"properties":{"a":{},"b":{"$ref":"#/properties/a"}}}`, `{a: {description: d}}`,
			`{"properties":{"a":{"description":"d"},"b":{"$ref":"#/properties/a"}}}`},
		{"a keyword in both the schema and its reference", `{"$ref":"#/$defs/A","required":["b"],"$defs":{"A":{"properties":{"a":{}},"required":["a"]}}}`, `{a: {name: c}}`,
			`{"required":["b"],"allOf":[{"properties":{"c":{}},"required":["c"]}]}`},
		{"no other params next to a reference", `{"$ref":"#/$defs/A","additionalProperties":false,"$defs":{"A":{"properties":{"a":{}}}}}`, `{a: {name: c}}`,
			`{"additionalProperties":false,"allOf":[{"properties":{"c":{}}}]}`},
		{"no other params in a reference", `{"$ref":"#/$defs/A","type":"object","$defs":{"A":{"properties":{"a":{}},"additionalProperties":false}}}`, `{a: {name: c}}`,
			`{"type":"object","properties":{"c":{}},"additionalProperties":false}`},
		{"no other params in a reference next to params", `{"$ref":"#/$defs/A","properties":{"b":{}},"$defs":{"A":{"additionalProperties":false}}}`, `{b: {name: c}}`,
			`{"properties":{"c":{}},"allOf":[{"additionalProperties":false}]}`},
		{"no other params in a reference next to patterns", `{"$ref":"#/$defs/A","patternProperties":{"^x":{}},"$defs":{"A":{"properties":{"a":{}},"additionalProperties":false}}}`, `{a: {name: c}}`,
			`{"patternProperties":{"^x":{}},"allOf":[{"properties":{"c":{}},"additionalProperties":false}]}`},
		{"params in a reference next to params", `{"$ref":"#/$defs/A","properties":{"b":{}},"$defs":{"A":{"type":"object"}}}`, `{b: {name: c}}`,
			`{"properties":{"c":{}},"type":"object"}`},
	}...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := shape(t, newRecorder(tt.schema), "overrides: {x: {params: "+tt.params+"}}")
			if diff := cmp.Diff(tt.want, string(out.InputSchema)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := registry.NewValidator(out.InputSchema).Compile(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// References are followed up to a limit, so that a schema that refers to itself ends.
func TestReferencesAreFollowedToALimit(t *testing.T) {
	for length, found := range map[int]bool{maxInlined: true, maxInlined + 1: false} {
		schema := `{"$ref":"#/$defs/d1","$defs":{`
		for i := 1; i < length; i++ {
			schema += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
		}
		schema += fmt.Sprintf(`"d%d":{"properties":{"a":{}}}}}`, length)
		if got := slices.Contains(newObject(json.RawMessage(schema)).names(), "a"); got != found {
			t.Errorf("after %d references the param is found: %v", length, got)
		}
	}
}

// An override without params leaves the schema as the source sent it.
func TestSchemaWithoutChangedParamsKeepsItsBytes(t *testing.T) {
	given := "{ \"type\": \"object\",\n \"properties\": {\"a\": {\"maximum\": 1e3}} }"
	out := shape(t, newRecorder(given), `overrides: {x: {description: d}}`)
	if string(out.InputSchema) != given || out.Description != "d" {
		t.Errorf("%s, %s", out.InputSchema, out.Description)
	}
}

func TestOutputSchemaOfResult(t *testing.T) {
	for yaml, want := range map[string]string{"{type: array}": `{"type":"array"}`, "true": ""} {
		r := newRecorder(flat)
		r.OutputSchema = json.RawMessage(`{"type":"object"}`)
		out := shape(t, r, `overrides: {x: {result: .content, outputSchema: `+yaml+`}}`)
		if string(out.OutputSchema) != want {
			t.Errorf("outputSchema %s: %s, want %s", yaml, out.OutputSchema, want)
		}
	}
}

// An error of the tool names the params as calls name them.
func TestErrorsNameParamsAsCallsDo(t *testing.T) {
	r := newRecorder(flat)
	r.Check = func(context.Context, registry.Call) error { return registry.Invalid("x", "/title/repo/0", "wrong") }
	out := shape(t, r, `overrides: {x: {params: {title: {name: headline}, repo: {name: project}}}}`)
	err := out.Check(t.Context(), registry.Call{Params: json.RawMessage(`{"headline":"h","project":"p"}`)})
	if err == nil || !strings.Contains(err.Error(), "for x: /headline/repo/0: wrong") {
		t.Error(err)
	}
}

func TestRawWithoutStructuredContent(t *testing.T) {
	raw, err := Raw(registry.TextResult("a"))
	if err != nil || strings.Contains(string(raw), "structuredContent") || !strings.Contains(string(raw), `"text":"a"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestReshapeTexts(t *testing.T) {
	r := newRecorder(flat)
	r.DisplayName = "x (s MCP Server)"
	r.OutputSchema = json.RawMessage(`{"type":"object"}`)
	out := shape(t, r, `overrides: {x: {name: y, appendDescription: More., category: read, tags: [a], hidden: true, deferLoading: false, cacheControl: {ttl: 1h}, result: .content,
  examples: [{description: e, params: {title: t}}], inputExamples: [{title: t}], params: {repo: {const: secret}}}}`)
	off := false
	want := r.Definition
	want.Name, want.DisplayName, want.Description, want.Category, want.Tags, want.Aliases, want.OutputSchema = "y", "y (s MCP Server)", "Does x.\n\nMore.", "read", []string{"a"}, nil, nil
	want.InputSchema = out.InputSchema
	want.Examples = []registry.Example{{Description: "e", Params: json.RawMessage(`{"title":"t"}`)}}
	want.Provider = registry.ProviderFields{DeferLoading: &off, CacheControl: &registry.CacheControl{TTL: "1h"}, InputExamples: []json.RawMessage{json.RawMessage(`{"title":"t"}`)}}
	want.Reshaped = out.Reshaped
	if diff := cmp.Diff(want, out.Definition); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !out.Reshaped.Hidden || out.Reshaped.Name != "y" || !strings.HasSuffix(out.Reshaped.Origin, "s.yaml:1") || out.Upstream().Name != "x" {
		t.Errorf("%+v", out.Reshaped)
	}
}

// TestWire checks which params a reshaped tool passes to its source.
func TestWire(t *testing.T) {
	const yaml = `overrides: {x: {params: {repo: {const: a/b}, title: {name: headline}, limit: {default: 5}, mode: {enum: [fast]}}}}`
	tests := []struct{ params, want, err string }{
		{`{"headline":"h"}`, `{"title":"h","repo":"a/b","limit":5}`, ""},
		{`{"limit": 1e0 ,"headline":"h\u0041","mode":"fast"}`, `{"limit":1e0,"title":"h\u0041","mode":"fast","repo":"a/b"}`, ""},
		{`{"headline":"h","other":1}`, `{"title":"h","other":1,"repo":"a/b","limit":5}`, ""},
		{`{"repo":"c/d","headline":"h"}`, "", "/repo: an override sets this param, so a call cannot"},
		{`{"headline":"h","REPO":"c/d"}`, "", "/REPO: an override sets this param"},
		{`{"headline":"h","re\u0070o":null}`, "", "/repo: an override sets this param"},
		{`{"title":"h"}`, "", `/title: unknown property, did you mean "headline"?`},
		{`{"headline":"h","Limit":2}`, "", `/Limit: unknown property, did you mean "limit"?`},
		{`{"headline":"h","headline":"i"}`, "", "not valid JSON"},
		{`[]`, "", "must be a JSON object"},
		{`{}`, "", `missing property "title"`},
		{`{"headline":5}`, "", "/headline: expected string, but got number"},
	}
	for _, tt := range tests {
		r := newRecorder(strings.Replace(flat, `,"additionalProperties":false`, "", 1))
		out := shape(t, r, yaml)
		call := registry.Call{Tool: "x", Params: json.RawMessage(tt.params)}
		err := out.Check(t.Context(), call)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.params, err, tt.err)
			}
			continue
		}
		if _, runErr := out.Run(t.Context(), call); err != nil || runErr != nil {
			t.Errorf("%s: %v, %v", tt.params, err, runErr)
		}
		subject, _ := out.Subject(call)
		preview, _ := out.Preview(t.Context(), call)
		for _, got := range []string{r.got, subject.Command, preview.Prompt, out.Confirm(t.Context(), call).Reason} {
			if got != tt.want {
				t.Errorf("%s became %s, want %s", tt.params, got, tt.want)
			}
		}
	}
}

// Rules see the params in the new shape, with the values that are sent for absent ones, and in the original one.
func TestShapes(t *testing.T) {
	r := newRecorder(flat)
	out := shape(t, r, `overrides: {x: {params: {repo: {const: mine}, title: {name: heading, default: none}, limit: {default: 3}}}}`)
	for given, want := range map[string]string{
		`{}`:                            `{"heading":"none","limit":3} {"repo":"mine","title":"none","limit":3}`,
		`{"mode":"fast","heading":"x"}`: `{"mode":"fast","heading":"x","limit":3} {"mode":"fast","title":"x","repo":"mine","limit":3}`,
		`{"repo":"x"}`:                  "error",
	} {
		shapes, err := out.Shapes(registry.Call{Params: json.RawMessage(given)})
		got := ""
		for _, s := range shapes {
			got += " " + string(s)
		}
		if got = strings.TrimPrefix(got, " "); err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
}

// No function of the tool receives a call that sets a fixed param, even if the
// call was not checked.
func TestFixedParamIsRejectedByEveryFunction(t *testing.T) {
	r := newRecorder(`{"properties":{"repo":{}}}`)
	out := shape(t, r, `overrides: {x: {params: {repo: {const: a}}}}`)
	call := registry.Call{Params: json.RawMessage(`{"Repo":1}`)}
	if _, err := out.Run(t.Context(), call); err == nil || r.got != "" {
		t.Errorf("it ran with %s", r.got)
	}
	if _, err := out.Subject(call); err == nil {
		t.Error("it has a subject")
	}
	if _, err := out.Preview(t.Context(), call); err == nil {
		t.Error("it has a preview")
	}
	if _, err := out.Wire(call); err == nil {
		t.Error("it is shown")
	}
	if a := out.Confirm(t.Context(), call); a.Reason == "" || strings.Contains(a.Reason, "{") {
		t.Errorf("it asked the tool: %v", a)
	}
}

// What a tool asks about while it runs is decided in the new shape, and never with another value
// of a fixed param.
func TestAdmit(t *testing.T) {
	for asked, want := range map[string]string{
		`{"file":"f","note":1}`: `{"path":"f"}`,
		`{"file":"f","note":2}`: "it leads to other values of params that an override fixes",
		`[]`:                    "invalid params for x: params must be a JSON object",
	} {
		r := newRecorder(`{"properties":{"file":{},"note":{}}}`)
		r.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			return registry.Result{}, call.Admit(ctx, json.RawMessage(asked), false)
		}
		out := shape(t, r, `overrides: {x: {params: {note: {const: 1}, file: {name: path}}}}`)
		got := "nothing"
		_, err := out.Run(t.Context(), registry.Call{Params: json.RawMessage(`{}`),
			Admit: func(_ context.Context, params json.RawMessage, _ bool) error {
				got = string(params)
				return nil
			}})
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
}

// A person's edit may change params that calls cannot set.
func TestEditMayChangeFixedParam(t *testing.T) {
	r := newRecorder(`{"properties":{"content":{"type":"string"},"file":{"type":"string"},"note":{}}}`)
	r.Revise = func(_ context.Context, call registry.Call, content string) (registry.Call, error) {
		call.Params = json.RawMessage(`{"file":"f","note":1,"content":"` + content + `"}`)
		return call, nil
	}
	out := shape(t, r, `overrides: {x: {params: {content: {const: old}, note: {hidden: true, default: 1}, file: {name: path}}}}`)
	next, err := out.Revise(t.Context(), registry.Call{Params: json.RawMessage(`{"path":"f"}`)}, "new")
	if err != nil || string(next.Params) != `{"path":"f"}` || string(next.Edited) != `{"content":"new"}` {
		t.Fatalf("%s, %s, %v", next.Params, next.Edited, err)
	}
	if err := out.Check(t.Context(), next); err != nil {
		t.Error(err)
	}
	if _, err := out.Run(t.Context(), next); err != nil || r.got != `{"file":"f","content":"new","note":1}` {
		t.Errorf("%s, %v", r.got, err)
	}
	same, err := out.Revise(t.Context(), next, "old")
	if err != nil || same.Edited != nil {
		t.Errorf("%s, %v", same.Edited, err)
	}
}

func TestInvalidOverrides(t *testing.T) {
	tests := []struct{ name, schema, override, want string }{
		{"a param that is not there", flat, `{params: {titel: {const: 1}}}`, `s.yaml:1:26: overrides.x.params.titel: the tool has no such param (did you mean "title"?)`},
		{"no params at all", ``, `{params: {a: {const: 1}}}`, `the tool has no such param`},
		{"const", flat, `{params: {limit: {const: 0}}}`, `overrides.x.params.limit.const: the tool's input schema rejects the value: must be >= 1 but found 0`},
		{"const of another type", flat, `{params: {repo: {const: 5}}}`, `rejects the value: expected string, but got number`},
		{"const null", flat, `{params: {repo: {const: null}}}`, `rejects the value: expected string, but got null`},
		{"hidden default", flat, `{params: {limit: {hidden: true, default: x}}}`, `params.limit.default: the tool's input schema rejects the value`},
		{"default", flat, `{params: {mode: {default: medium}}}`, `params.mode.default: the tool's input schema rejects the value: value must be one of "fast", "slow"`},
		{"default that enum leaves out", flat, `{params: {mode: {enum: [slow], default: fast}}}`, `params.mode.default: the tool's input schema rejects`},
		{"enum", flat, `{params: {mode: {enum: [slow, medium]}}}`, `params.mode.enum: the tool's input schema rejects the value`},
		{"no enum", flat, `{params: {mode: {enum: []}}}`, `params.mode.enum: expected a list of values`},
		{"enum of one text", flat, `{params: {mode: {enum: slow}}}`, `params.mode.enum: expected a list of values`},
		{"const that enum leaves out", flat, `{params: {mode: {enum: [slow], const: fast}}}`, `params.mode.const: the value is not in the enum of the override`},
		{"required and hidden", flat, `{params: {repo: {hidden: true}}}`, `params.repo.hidden: the tool requires the param (give it a const or a default)`},
		{"const and default", flat, `{params: {repo: {const: a, default: b}}}`, `params.repo.default: const and default exclude each other`},
		{"const and name", flat, `{params: {repo: {const: a, name: b}}}`, `params.repo.name: a param with const or hidden cannot be renamed`},
		{"name of another param", flat, `{params: {repo: {name: title}}}`, `params.repo.name: the tool has another param "title"`},
		{"name of another param before it", flat, `{params: {title: {name: repo}}}`, `params.title.name: the tool has another param "repo"`},
		{"two names", flat, `{params: {repo: {name: a}, title: {name: a}}}`, `params.title.name: the tool has another param "a"`},
		{"name of a fixed param", flat, `{params: {repo: {const: a}, title: {name: Repo}}}`, `params.title.name: "Repo" is the name of a param that calls cannot set`},
		{"name", flat, `{name: "a b"}`, `overrides.x.name: "a b" cannot be the name of a tool`},
		{"jq", flat, `{result: ".["}`, `overrides.x.result: not a jq expression`},
		{"input example", flat, `{inputExamples: [{repo: a, title: b}, {repo: a}]}`, `overrides.x.inputExamples[1]: invalid params for x: missing property "title"`},
		{"input example with a fixed param", flat, `{params: {repo: {const: a}}, inputExamples: [{repo: a, title: b}]}`, `overrides.x.inputExamples[0]: invalid params for x`},
		{"input example in another case", `{"properties":{"a":{}}}`, `{params: {a: {name: b}}, inputExamples: [{A: 1}]}`, `did you mean "b"?`},
		{"input example that is no object", flat, `{inputExamples: [5]}`, `overrides.x.inputExamples[0]: expected an object with params`},
		{"input examples", flat, `{inputExamples: {repo: a}}`, `overrides.x.inputExamples: expected a list of objects, got an object`},
		{"output schema", flat, `{outputSchema: 5}`, `overrides.x.outputSchema: expected true, false or a JSON Schema, got a number`},
		{"default under oneOf", `{"properties":{"a":{}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{params: {a: {default: 1}}}`, `params.a: the input schema has conditions on this param under "oneOf", so an override can change only its description and enum`},
		{"const under oneOf", `{"properties":{"a":{}},"oneOf":[{"properties":{"a":{"const":"x"}}},{"properties":{"a":{"const":"y"}}}]}`, `{params: {a: {const: x}}}`, `conditions on this param under "oneOf"`},
		{"hidden under anyOf", `{"properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{params: {a: {hidden: true}}}`, `conditions on this param under "anyOf"`},
		{"hidden under if", `{"properties":{"a":{}},"if":{"required":["a"]},"then":{}}`, `{params: {a: {hidden: true}}}`, `conditions on this param under "if"`},
		{"const under not", `{"properties":{"a":{}},"not":{"required":["a"]}}`, `{params: {a: {const: 1}}}`, `conditions on this param under "not"`},
		{"dependency on a fixed param", `{"properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}}`, `{params: {a: {const: 1}}}`, `conditions on this param under "dependentRequired"`},
		{"another param refers to it", `{"properties":{"a":{},"b":{"$ref":"#/properties/a"}}}`, `{params: {a: {const: 1}}}`, `params.a: another part of the input schema refers to this param`},
		{"only in an alternative", `{"oneOf":[{"properties":{"a":{}}}]}`, `{params: {a: {description: b}}}`, `params.a: the input schema has this param only under "oneOf"`},
		{"if by reference", `{"properties":{"a":{}},"if":{"$ref":"#/$defs/i"},"$defs":{"i":{"properties":{"a":{"const":1}}}}}`, `{params: {a: {name: b}}}`, `under "if"`},
		{"dependent", `{"properties":{"a":{},"b":{}},"dependentRequired":{"b":["a"]}}`, `{params: {a: {default: 1}}}`, `under "dependentRequired"`},
		{"endless references in allOf", `{"properties":{"a":{}},"not":{"allOf":[{"$ref":"#/not"}]}}`, `{params: {a: {const: 1}}}`, `under "not"`},
		{"endless references in not", `{"properties":{"a":{}},"not":{"not":{"$ref":"#/not"}}}`, `{params: {a: {const: 1}}}`, `under "not"`},
		{"endless references", `{"properties":{"a":{}},"not":{"$ref":"#/not"}}`, `{params: {a: {const: 1}}}`, `under "not"`},
		{"renamed although another refers to it", `{"properties":{"a":{},"b":{"$ref":"#/properties/a"}}}`, `{params: {a: {name: c}}}`, `params.a: another part of the input schema refers to this param`},
		{"second input example", flat, `{inputExamples: [5, 6]}`, `overrides.x.inputExamples[1]: expected an object with params`},
		{"two clashing names", flat, `{params: {title: {name: repo}, mode: {name: limit}}}`, `params.mode.name: the tool has another param "limit"`},
		{"propertyNames", `{"properties":{"a":{}},"propertyNames":{"pattern":"^a$"}}`, `{params: {a: {name: b}}}`, `the input schema has propertyNames`},
		{"only a pattern", `{"patternProperties":{"a":{}}}`, `{params: {a: {const: b}}}`, `the tool has no such param`},
		{"both in allOf", `{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"maximum":3}}}]}`, `{params: {a: {const: 5}}}`, `must be <= 3 but found 5`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := newSet(t, "overrides: {x: "+tt.override+"}").Reshape(t.Context(), &newRecorder(tt.schema).Tool, []string{"x"})
			if out.Quarantine == nil || !strings.Contains(out.Quarantine.Error(), tt.want) {
				t.Errorf("got %v, want %s", out.Quarantine, tt.want)
			}
		})
	}
}

func TestTwoOverridesForOneTool(t *testing.T) {
	set := newSet(t, "overrides:\n  x: {hidden: true}\n  s__x: {description: d}\n")
	out := set.Reshape(t.Context(), &newRecorder(flat).Tool, []string{"x", "s__x"})
	if err := out.Quarantine; err == nil || !strings.Contains(err.Error(), `s.yaml:2:3: overrides.x: the tool has another override as "s__x" at`) || !strings.Contains(err.Error(), "s.yaml:3") {
		t.Errorf("%v", err)
	}
}

func TestNewNames(t *testing.T) {
	set := newSet(t, "overrides: {x: {name: y}, z: {hidden: true}}")
	for name, want := range map[string]string{"x": "y", "z": "", "other": ""} {
		if got := set.NewName(name); got != want || set.Has(name) != (name != "other") {
			t.Errorf("%s becomes %q, has an override: %t", name, got, set.Has(name))
		}
	}
}

// newScopes returns the overrides in the settings of a person and of a trusted project. false
// evaluates the expressions of the project.
func newScopes(t *testing.T, person, project string) *Set {
	t.Helper()
	home, root := t.TempDir(), t.TempDir()
	for file, yaml := range map[string]string{
		filepath.Join(home, "toolreg", "settings.yaml"):  person,
		filepath.Join(root, ".toolreg", "settings.yaml"): project,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, _, err := settings.Load(settings.Options{Dir: root, Root: root, TrustProject: true, SystemDir: home, Environ: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	return New(loaded, []string{"false"})
}

// The expressions of a project are evaluated by the given program, those of a person are
// not. A person's overrides are marked as such.
func TestScopeOfOverride(t *testing.T) {
	set := newScopes(t, "overrides: {mine: {result: .content}}", "overrides: {theirs: {result: .content}}")
	for name, own := range map[string]bool{"mine": true, "theirs": false} {
		out := set.Reshape(t.Context(), &newRecorder(flat).Tool, []string{name})
		if _, err := out.Project(t.Context(), registry.TextResult("a")); (err == nil) != own {
			t.Errorf("%s: %v", name, err)
		}
		if out.Reshaped.Personal != own {
			t.Errorf("%s is marked as a person's: %t", name, !own)
		}
		if got := set.IsOwn(name); got != own {
			t.Errorf("%s is the person's own: %t", name, got)
		}
	}
	if set.IsOwn("other") {
		t.Error("an override that does not exist is the person's own")
	}
}

func TestIsProjects(t *testing.T) {
	set := newScopes(t, "overrides: {mine: {name: a}, both: {name: b}}", "overrides: {theirs: {name: c}, unnamed: {description: d}, both: {description: d}}")
	for name, want := range map[string]bool{"mine": false, "both": false, "theirs": true, "unnamed": false, "other": false} {
		if got := set.IsProjects(name); got != want {
			t.Errorf("a project gives %s its name: %t", name, got)
		}
	}
}

// Where a project adds a param to a person's override, rules also see the params as the person named them.
func TestShapesOfBothScopes(t *testing.T) {
	set := newScopes(t, "overrides: {x: {params: {repo: {name: mine}, limit: {default: 3}}}}", "overrides: {x: {params: {title: {name: theirs}}}}")
	out := set.Reshape(t.Context(), &newRecorder(flat).Tool, []string{"x"})
	shapes, err := out.Shapes(registry.Call{Params: json.RawMessage(`{"mine":"r","theirs":"t"}`)})
	want := []string{`{"mine":"r","theirs":"t","limit":3}`, `{"repo":"r","title":"t","limit":3}`, `{"mine":"r","title":"t","limit":3}`}
	var got []string
	for _, s := range shapes {
		got = append(got, string(s))
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, %v (-want +got):\n%s", err, out.Quarantine, diff)
	}
}

// The shortcut accepts nothing that the validator rejects, and is taken for plain schemas.
func TestShortcutAgreesWithValidator(t *testing.T) {
	tests := []struct {
		schema, value string
		taken         bool
	}{
		{`true`, `1`, true}, {`false`, `1`, false}, {`{}`, `1`, true},
		{`{"type":"string","description":"d","title":"t","default":"","examples":[]}`, `"a"`, true}, {`{"type":"string"}`, `1`, false},
		{`{"type":"number"}`, `1`, true}, {`{"type":"integer"}`, `1`, true}, {`{"type":"integer"}`, `1.5`, false}, {`{"type":["string","null"]}`, `null`, true},
		{`{"type":"number"}`, `"1"`, false}, {`{"type":"string","enum":["a"]}`, `"b"`, false}, {`{"enum":["a",1]}`, `1`, true}, {`{"enum":["a",1]}`, `2`, false},
		{`{"enum":["a"],"type":"number"}`, `"a"`, false},
		{`{"minimum":1}`, `1`, true}, {`{"minimum":1}`, `2`, true}, {`{"minimum":1}`, `0`, false}, {`{"maximum":1}`, `1`, true}, {`{"maximum":1}`, `2`, false}, {`{"maximum":1}`, `0`, true},
		{`{"maximum":9007199254740993}`, `9007199254740994`, false}, {`{"maximum":123456789012345}`, `123456789012345`, true}, {`{"minimum":1234567890123456}`, `1234567890123456`, false},
		{`{"minimum":1234567890123456}`, `1`, false}, {`{"minimum":1}`, `1234567890123456`, false}, {`{"minimum":1}`, `1e400`, false}, {`{"minimum":1e400}`, `1`, false}, {`{"minimum":1}`, `"a"`, false}, {`{"minimum":1}`, `"2"`, false}, {`{"minimum":1}`, `[2]`, false}, {`{"minimum":"1"}`, `2`, false},
		{`{"minLength":1}`, `""`, false}, {`{"minLength":1}`, `"a"`, false},
	}
	for _, tt := range tests {
		s := parse(json.RawMessage(tt.schema))
		if got := certainlyAccepts(s, json.RawMessage(tt.value)); got != tt.taken {
			t.Errorf("%s accepts %s: %t", tt.schema, tt.value, got)
		}
		violations, err := registry.NewValidator(json.RawMessage(`{"properties":{"x":`+tt.schema+`}}`)).Validate(t.Context(), json.RawMessage(`{"x":`+tt.value+`}`))
		if tt.taken && (err != nil || len(violations) > 0) {
			t.Errorf("the validator does not accept %s for %s: %v, %v", tt.value, tt.schema, violations, err)
		}
	}
}

func TestNoOverrides(t *testing.T) {
	if set := newSet(t, "{}"); set != nil {
		t.Error("there are some")
	}
}

func TestFold(t *testing.T) {
	for _, same := range [][]string{{"Repo", "REPO", "repo", "repo\x00x"}, {"kIs", "KIS", "Kıſ", "kİS"}, {"straße", "STRAẞE"}, {"σς", "ΣΣ"}} {
		for _, name := range same[1:] {
			if foldName(name) != foldName(same[0]) {
				t.Errorf("%q and %q differ: %q, %q", same[0], name, foldName(same[0]), foldName(name))
			}
		}
	}
	if foldName("repo") == foldName("repos") || foldName("a-b") == foldName("a_b") {
		t.Error("other letters are the same")
	}
}

// A tool stays usable if two of its params differ only in case.
func TestParamsThatDifferInCase(t *testing.T) {
	r := newRecorder(`{"properties":{"id":{},"ID":{}}}`)
	out := shape(t, r, `overrides: {x: {params: {ID: {const: 1}}}}`)
	if _, err := out.Run(t.Context(), registry.Call{Params: json.RawMessage(`{"id":2}`)}); err != nil || r.got != `{"id":2,"ID":1}` {
		t.Errorf("%s, %v", r.got, err)
	}
	if _, err := out.Run(t.Context(), registry.Call{Params: json.RawMessage(`{"Id":2}`)}); err == nil {
		t.Error("it ran")
	}
	out = shape(t, r, `overrides: {x: {params: {ID: {const: 1}, id: {name: number}}}}`)
	if _, err := out.Run(t.Context(), registry.Call{Params: json.RawMessage(`{"Id":2}`)}); err == nil || !strings.Contains(err.Error(), "an override sets this param") {
		t.Error(err)
	}
}

func TestResults(t *testing.T) {
	structured := registry.Result{Content: []registry.Content{registry.TextContent("long")}, Structured: json.RawMessage(`{"items":[{"id":12345678901234567890,"x":1}]}`)}
	failed := registry.ErrorResult(registry.ErrorExecution, "not found")
	tests := []struct {
		jq      string
		of      registry.Result
		text    string
		isError bool
		err     string
	}{
		{jq: "[.structuredContent.items[].id]", of: structured, text: "[12345678901234567890]"},
		{jq: ".content[0].text", of: structured, text: "long"},
		{jq: "{n: (.structuredContent.items | length)}", of: structured, text: `{"n":1}`},
		{jq: ".structuredContent.items", of: failed, text: "not found", isError: true},
		{jq: `.content[0].text | fromjson`, of: failed, text: "not found", isError: true},
		{jq: `if .isError then "failed: " + .content[0].text else . end`, of: failed, text: "failed: not found", isError: true},
		{jq: `.content[0].text | fromjson`, of: structured, err: "overrides.x.result failed: "},
		{jq: `error("no")`, of: structured, err: "overrides.x.result failed: error: no"},
		{jq: `def f: f; f`, of: structured, err: "it took longer than 1s"},
		{jq: `empty`, of: structured, err: "it returned no value"},
		{jq: `1, 2`, of: structured, err: "it returned more than one value"},
	}
	for _, tt := range tests {
		out := shape(t, newRecorder(flat), "overrides: {x: {result: '"+tt.jq+"'}}")
		got, err := out.Project(t.Context(), tt.of)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.jq, err, tt.err)
			}
			continue
		}
		if err != nil || got.Text() != tt.text || got.IsError != tt.isError {
			t.Errorf("%s: %q, %v, %v", tt.jq, got.Text(), got.IsError, err)
		}
	}
}

// The tool's own examples are shown in its new shape.
func TestExamplesAreReshaped(t *testing.T) {
	r := newRecorder(flat)
	r.Examples = []registry.Example{{Params: json.RawMessage(`{"repo":"z","title":"t"}`)}, {Params: json.RawMessage(`{"mode":"fast"}`)}, {Description: "none"}}
	out := shape(t, r, `overrides: {x: {params: {repo: {const: a}, title: {name: headline}, mode: {enum: [slow]}}}}`)
	if len(out.Examples) != 2 || string(out.Examples[0].Params) != `{"headline":"t"}` || string(r.Examples[0].Params) != `{"repo":"z","title":"t"}` {
		t.Errorf("%s, was %s", out.Examples[0].Params, r.Examples[0].Params)
	}
}

// A project may change a category only if the policy does not depend on it.
func TestProjectCannotLoosenCategory(t *testing.T) {
	tests := []struct {
		scope    settings.Scope
		tool     registry.Tool
		category string
		refused  bool
	}{
		{settings.ScopeProject, registry.Tool{Definition: registry.Definition{Source: "builtin", Category: "command"}}, "read", true},
		{settings.ScopeProject, registry.Tool{Definition: registry.Definition{Source: "builtin", Category: "command"}}, "write", true},
		{settings.ScopeProject, registry.Tool{Definition: registry.Definition{Source: "builtin", Category: "command"}}, "command", false},
		{settings.ScopeProject, registry.Tool{Definition: registry.Definition{Source: "builtin", Category: "read"}}, "other", true},
		{settings.ScopeProject, registry.Tool{Definition: registry.Definition{Source: "mcp:s", Category: "other"}}, "read", false},
		{settings.ScopeProject, registry.Tool{Trusted: true, Definition: registry.Definition{Source: "mcp:s", Category: "other"}}, "read", true},
		{settings.ScopeUser, registry.Tool{Definition: registry.Definition{Source: "builtin", Category: "command"}}, "read", false},
		{settings.ScopeProject, registry.Tool{Definition: registry.Definition{Source: "builtin", Category: "command"}}, "deploy", true},
	}
	for _, tt := range tests {
		set := newSet(t, "overrides: {x: {category: "+tt.category+"}}")
		set.named["x"].named.Origin.Scope = tt.scope
		out := set.Reshape(t.Context(), &tt.tool, []string{"x"})
		if refused := out.Quarantine != nil; refused != tt.refused {
			t.Errorf("%s, %s to %s by %s: %v", tt.tool.Source, tt.tool.Category, tt.category, tt.scope, out.Quarantine)
		}
	}
}

// FuzzFixed checks that no params can set a fixed param.
func FuzzFixed(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a"}`, `{"repo":"evil"}`, `{"Repo":1,"path":"b"}`, `{"repo":"a","repo":"b"}`, `{"nested":{"repo":"x"}}`, `{"re\u0070o":1}`, `{"rep\u006f\u0000":1}`,
		`{"/repo":1}`, `{"~1repo":1}`, `{"repo.x":1}`, `{"repo ":1}`, `{"ｒepo":1}`, `{"ſkip":1}`, `{"SKİP":1}`, `{"skıp":1}`, `{"K":1,"skip":null}`, `{"repo":{"repo":[{"repo":1}]}}`,
		`[]`, `null`, `{"a":1e400}`, "\xff", `{"file":1,"path":2}`, `{} {"repo":1}`, `{"":1}`,
	} {
		f.Add([]byte(seed))
	}
	r := newRecorder(`{"type":"object","properties":{"repo":{"type":"string"},"skip":{},"file":{},"limit":{}}}`)
	out := shape(f, r, `overrides: {x: {params: {repo: {const: mine}, skip: {hidden: true}, file: {name: path}, limit: {hidden: true, default: 3}}}}`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		r.got = ""
		call := registry.Call{Params: raw}
		_, err := out.Run(t.Context(), call)
		if checked := out.Check(t.Context(), call); checked == nil && err != nil {
			t.Fatalf("%q passes Check but not Wire: %v", raw, err)
		}
		if err != nil {
			return
		}
		var sent map[string]json.RawMessage
		if err := json.Unmarshal([]byte(r.got), &sent); err != nil {
			t.Fatalf("%q became %q: %v", raw, r.got, err)
		}
		if string(sent["repo"]) != `"mine"` || string(sent["limit"]) != "3" || sent["skip"] != nil {
			t.Fatalf("%q became %q", raw, r.got)
		}
		for name := range sent {
			for _, fixed := range []string{"repo", "skip", "limit"} {
				//lint:ignore SA6005 ToUpper makes ı an I, which EqualFold does not
				if name != fixed && (strings.EqualFold(name, fixed) || strings.ToUpper(name) == strings.ToUpper(fixed) || strings.ToLower(name) == fixed) {
					t.Fatalf("%q became %q", raw, r.got)
				}
			}
		}
	})
}

func TestParamNames(t *testing.T) {
	if !slices.Equal(newObject(json.RawMessage(`{"properties":{"a":1},"allOf":[true,{"required":[]},{"properties":{"b":1,"a":2}}]}`)).names(), []string{"a", "b"}) {
		t.Error("not each param once")
	}
	// Neither many parts nor a reference that leads nowhere count as followed references.
	many := `{"allOf":[` + strings.Repeat("{},", maxInlined+1) + `{"$ref":"#/nowhere"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"properties":{"a":{}}}}}`
	if !slices.Equal(newObject(json.RawMessage(many)).names(), []string{"a"}) {
		t.Error("the last reference is not followed")
	}
}
