package settings

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/decode"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

func TestSchemaAgreesWithTheReader(t *testing.T) {
	v := registry.NewValidator(table.Schema())
	if _, err := v.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text string
		valid      bool
	}{
		{"both generations, flat", stripComments(flat), true},
		{"both generations, nested", nested, true},
		{"a list too few", `{"coreTools": "x"}`, false},
		{"an unknown value", `{"approvalMode": "x"}`, false},
		{"a rule without decision", `{"policy": {"rules": [{"tool": "x"}]}}`, false},
		{"a wrong type in a server", `{"mcpServers": {"a": {"command": "x", "args": [1]}}}`, false},
		{"a sandbox of the Gemini CLI", `{"sandbox": true, "tools": {"sandbox": "docker"}}`, true},
		{"a sandbox that is a list", `{"sandbox": ["docker"]}`, false},
		{"hooks", `{"hooks": {"beforeCall": [{"command": "x", "tools": ["a"], "timeout": 5}]}}`, true},
		{"a hook without a command", `{"hooks": {"beforeCall": [{"tools": ["a"]}]}}`, false},
		{"a hook that is no list", `{"hooks": {"beforeCall": {"command": "x"}}}`, false},
		{"a sandbox", `{"sandbox": {"mode": "auto", "shell": {"network": ["a.example:80"]}, "servers": {"a": {"network": "all"}}}}`, true},
		{"an unknown kind of programs", `{"sandbox": {"shel": {"mode": "auto"}}}`, false},
		{"kept servers", `{"servers": {"keep": "1h"}, "mcpServers": {"a": {"command": "x", "keep": true}, "b": {"command": "x", "lifecycle": {"mode": "keep-alive", "idleTimeoutMs": 5}}}}`, true},
		{"servers kept in a list", `{"servers": {"keep": ["a"]}}`, false},
		{"scripts in short", `{"scripts": true}`, true},
		{"scripts with limits", `{"scripts": {"declare": true, "steps": 5000000000, "memory": "64MiB"}}`, true},
		{"scripts as text", `{"scripts": "on"}`, false},
		{"durations", `{"toolDiscoveryTimeout": 5, "shell": {"timeout": "1m"}}`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			violations, err := v.Validate(t.Context(), json.RawMessage(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(violations) == 0; got != test.valid {
				t.Errorf("the schema says %v: %v", got, violations)
			}
			if _, err := layers.CheckFile("s.json", []byte(test.text)); (err == nil) != test.valid {
				t.Errorf("the reader says %v", err)
			}
		})
	}
}

// stripComments removes comment lines and trailing commas from JSON.
func stripComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			out.WriteString(line)
		}
	}
	return strings.NewReplacer("},\n}", "}\n}", "[]},\n\t},", "[]}\n\t}").Replace(out.String())
}

// TestFieldsMatchRows compares the tags of the structs with the rows of the table:
// each tag names a row whose type fits the field, and every scalar has a field.
func TestFieldsMatchRows(t *testing.T) {
	x := table.NewIndex()
	held := heldBy(t, reflect.TypeFor[Settings](), nil)
	for i := range x.Rows {
		r := &x.Rows[i]
		byName := slices.ContainsFunc([]string{"workspace.root", "mcpServerCommand", "permissions.", "policy.defaults.", "sandbox."},
			func(name string) bool { return strings.HasPrefix(r.Name, name) })
		if r.Variable() != "" && !held[r.Name] && !byName {
			t.Errorf("no field holds %s", r.Name)
		}
	}
	heldBy(t, reflect.TypeFor[Server](), x.Row(table.ServersKey))
	heldBy(t, reflect.TypeFor[Rule](), x.Row(merge.RulesKey))
}

// heldBy compares the tags of a struct with the fields of a row, or with the table if row is nil,
// and returns the names in the tags. Each field of the row must have a tag, unless it is read in another way.
func heldBy(t *testing.T, typ reflect.Type, row *table.Row) map[string]bool {
	t.Helper()
	fits := map[table.Type][]any{
		table.String: {"", Entry{}}, table.Choice: {""}, table.Bool: {false}, table.Int: {0, new(int)}, table.Size: {int64(0), new(int64)},
		table.Duration: {time.Duration(0), new(time.Duration)}, table.Keep: {time.Duration(0), new(time.Duration)}, table.Command: {Command{}},
		table.Strings: {List{}, []string(nil)}, table.Pairs: {[]Pair(nil)}, table.Scopes: {ToolScopes(nil)}, table.Calls: {ExampleCalls(nil)},
		table.RawNamed: {map[string][]string(nil)}, table.Object: {map[string]bool(nil)},
	}
	x, held := table.NewIndex(), map[string]bool{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := f.Tag.Get(decode.Tag)
		if name == "" && f.Type.Kind() == reflect.Struct && !f.Anonymous {
			maps.Copy(held, heldBy(t, f.Type, nil))
		}
		if name == "" || name == decode.TagName {
			continue
		}
		r := x.Row(name)
		if row != nil {
			r = row.Field(name)
		}
		of := f.Type
		if r != nil && len(r.Fields) > 0 && (of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice) {
			heldBy(t, of.Elem(), r)
		} else if r == nil || r.Name != name || r.Doc == "" || held[name] || !slices.ContainsFunc(fits[r.Type], func(v any) bool { return reflect.TypeOf(v) == of }) {
			t.Errorf("%s.%s has the tag %q, which does not name a row of its type", typ, f.Name, name)
		}
		held[name] = true
	}
	if row != nil {
		for _, f := range row.Fields {
			if !held[f.Name] && f.Name != "lifecycle" && f.Name != "rules" {
				t.Errorf("no field of %s holds %s of %s", typ, f.Name, row.Name)
			}
		}
	}
	return held
}
