package provider

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// Each format whose output is JSON says what changed since its own earlier output.
func TestSince(t *testing.T) {
	def := func(name, description string) registry.Definition {
		return registry.Definition{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`), Source: "mcp:x"}
	}
	old := []registry.Definition{def("gone", "x"), def("kept", "x"), def("other", "x")}
	now := []registry.Definition{def("kept", "x"), def("other", "y"), def("fresh", "x")}
	for _, f := range Formats() {
		for _, o := range []Options{{}, {Request: true}} {
			before, _ := encode(t, f.Name, old, o)
			after, _ := encode(t, f.Name, now, Options{})
			got, err := f.Since(before.Data, after)
			if f.Text {
				if err == nil {
					t.Errorf("%s is compared", f.Name)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", f.Name, err)
				continue
			}
			data := map[string]json.RawMessage{}
			for _, d := range after.Declarations {
				data[d.Name] = d.Data
			}
			if f.Name == "json-schema" {
				data = map[string]json.RawMessage{}
				if err := json.Unmarshal(after.Data, &data); err != nil {
					t.Fatal(err)
				}
			}
			want := Changes{Added: []json.RawMessage{data["fresh"]}, Removed: []string{"gone"}, Changed: []json.RawMessage{data["other"]}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", f.Name, diff)
			}
			if same, err := f.Since(after.Data, after); err != nil || !same.Empty() {
				t.Errorf("%s: %v, %v differs from itself", f.Name, same, err)
			}
		}
	}
}

func TestSinceAnthropic(t *testing.T) {
	c := Changes{Added: []json.RawMessage{[]byte(`{"name":"a"}`)}, Removed: []string{"r"}, Changed: []json.RawMessage{[]byte(`{"name":"c"}`)}}
	got, err := json.Marshal(c.AnthropicMessage())
	want := `{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"r"}},` +
		`{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"c"}}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"a"}}}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestSinceRefuses(t *testing.T) {
	now, _ := encode(t, "anthropic", []registry.Definition{{Name: "a", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Options{})
	anthropic, _ := Lookup("anthropic")
	for text, want := range map[string]string{
		"": "it is not JSON", "[": "it is not JSON", "5": "it has no declarations", `{"a":5}`: "it has no declarations",
		`[{"type":"function","function":{"name":"a"}}]`: "its declarations are not of format anthropic",
	} {
		if _, err := anthropic.Since([]byte(text), now); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if c, err := anthropic.Since([]byte("[]"), now); err != nil || len(c.Added) != 1 {
		t.Errorf("after none: %v, %v", c, err)
	}
}
