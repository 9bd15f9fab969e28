package discover

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

func problemTexts(problems []document.Problem, dir string) []string {
	var out []string
	for _, p := range problems {
		out = append(out, strings.TrimPrefix(strings.ReplaceAll(p.String(), dir, ""), string(filepath.Separator)))
	}
	return out
}

func TestAllMistakesInManifestAreReported(t *testing.T) {
	p := manifestPlugin(t, `id: ../evil
versoin: 1
factory: [./f]
timeout: soon
tools:
  - name: a
    categry: read
    category: reading
    command: []
  - description: no name
    optional: "yes"
    icon: skull
    permissions: [root]
`)
	want := []string{
		`plugin.yaml:1:1: property 'call' is required, if 'factory' property exists`,
		`plugin.yaml:1:1: id: does not match pattern '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'`,
		`plugin.yaml:2:1: versoin: unknown property "versoin", did you mean "version"?`,
		`plugin.yaml:4:1: timeout: does not match pattern`,
		`plugin.yaml:7:5: tools.0.categry: unknown property "categry", did you mean "category"?`,
		`plugin.yaml:9:5: tools.0.command: minimum 1 items required, but found 0 items`,
		`plugin.yaml:10:5: tools.1: missing property "name"`,
		`plugin.yaml:10:5: tools.1: the tool has no command, and the plugin has no call command`,
		`plugin.yaml:11:5: tools.1.optional: expected boolean, but got string`,
		`plugin.yaml:12:5: tools.1.icon: value must be one of`,
		`plugin.yaml:13:19: tools.1.permissions.0: value must be one of`,
	}
	got := problemTexts(p.Check(t.Context()), p.Dir)
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %d: %s\nwant %s", i, got[i], want[i])
		}
	}
	if p.ID != "folder" {
		t.Errorf("the id is %q, want the name of the folder", p.ID)
	}
	if _, _, err := NewPlugin(p, pluginOptions(PluginOptions{})).Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "versoin") {
		t.Errorf("Discover: %v", err)
	}
}

func TestInvalidToolDoesNotAffectOthers(t *testing.T) {
	p := manifestPlugin(t, "id: x\ncall: [cat]\ntools:\n- {name: good}\n- {name: bad, categry: read}\n- 7\n- {name: out, command: [../x]}\n- {name: when, when: '('}\n- {name: hex, timeout: 0x10}\n- {name: fine}\n")
	tools, diags := toolsOf(t, p, PluginOptions{})
	if len(tools) != 6 || len(p.Problems) > 0 {
		t.Errorf("tools %v, problems %v", tools, p.Problems)
	}
	for name, tool := range tools {
		if fine := name == "good" || name == "fine"; fine != (tool.Quarantine == nil) {
			t.Errorf("%s: quarantine: %v", name, tool.Quarantine)
		}
	}
	all := strings.Join(diags, "\n")
	for _, want := range []string{`:5:15: tools.1.categry: unknown property "categry"`, ":6:3: tools.2: expected object", `:7:25: tools.3.command.0: "../x" leads out`, "its when is not a jq expression", ":9:24: 0x10 is not a decimal number"} {
		if !strings.Contains(all, want) {
			t.Errorf("problems %s\nwant %s", all, want)
		}
	}
}

func TestMistakesThatSchemaDoesNotFind(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"nothing in it":   {"id: x\n", "plugin.yaml:1:1: the plugin has neither tools nor a factory"},
		"no command":      {"id: x\ntools:\n  - name: a\n", "plugin.yaml:3:5: tools.0: the tool has no command"},
		"leads out":       {"id: x\ntools:\n  - name: a\n    command: [sh, ../../run.sh]\n", `plugin.yaml:4:19: tools.0.command.1: "../../run.sh" leads outside the plugin's folder`},
		"factory out":     {"id: x\nfactory: [../f]\ncall: [c]\n", `plugin.yaml:2:11: factory.0: "../f" leads out`},
		"empty program":   {"id: x\ncall: ['']\nfactory: [f]\n", "plugin.yaml:2:8: call.0: the program's name is empty"},
		"twice":           {"id: x\ncall: [c]\ntools:\n- name: a\n- name: a\n", `plugin.yaml:5:3: tools.1.name: a second tool "a" of version ""`},
		"same valid name": {"id: x\ncall: [c]\ntools:\n- name: a b\n- name: a_b\n", `plugin.yaml:5:3: tools.1.name: a second tool`},
		"bad schema":      {"id: x\ncall: [c]\ntools:\n- name: a\n  parameters: {type: 7}\n", "plugin.yaml:5:3: tools.0.parameters: its input schema is not valid"},
		"type string":     {"id: x\ncall: [c]\ntools:\n- name: a\n  parameters: {type: string}\n", `plugin.yaml:5:3: tools.0.parameters: its input schema is not valid: it must have type object, not "string"`},
		"open reference":  {"id: x\ncall: [c]\ntools:\n- name: a\n  parameters: {properties: {a: {$ref: '#/b'}}}\n", `plugin.yaml:5:3: tools.0.parameters: in its input schema, the reference "#/b" does not lead to a part of the schema`},
		"bad output":      {"id: x\ncall: [c]\ntools:\n- name: a\n  outputSchema: {type: 7}\n", "plugin.yaml:5:3: tools.0.outputSchema: its output schema is not used"},
		"bad example": {"id: x\ncall: [c]\ntools:\n- name: a\n  parameters: {type: object, properties: {n: {type: integer}}}\n  examples:\n  - params:\n      n: x\n",
			"plugin.yaml:8:7: tools.0.examples.0.params.n: the example does not match the tool's own schema"},
		"example's own timeout": {"id: x\ncall: [c]\ntools:\n- name: a\n  parameters: {properties: {timeout: {type: string}}}\n  examples:\n  - params:\n      timeout: 5\n",
			"own schema: timeout: expected string, but got number\n"},
		"number as id":   {"id: 5\ncall: [c]\ntools: [{name: a}]\n", "plugin.yaml:1:1: id: expected string, but got number (put it in quotes)"},
		"bad condition":  {"id: x\ncall: [c]\ntools:\n- name: a\n  when: '.a |'\n", "plugin.yaml:5:3: tools.0.when: its when is not a jq expression"},
		"condition list": {"id: x\ncall: [c]\ntools:\n- name: a\n  when: [1]\n", "plugin.yaml:5:3: tools.0.when: expected object or string, but got array"},
		"two formats":    {"", "keep one of them"},
		"not YAML":       {"a: [", "plugin.yaml:1:1: invalid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			files := []string{}
			if name == "two formats" {
				files = []string{"plugin.json", "{}"}
			}
			p := manifestPlugin(t, c.manifest, files...)
			if got := strings.Join(problemTexts(p.Check(t.Context()), p.Dir), "\n") + "\n"; !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// Each mistake in a field is reported once, at its position.
func TestFieldIsReportedOnce(t *testing.T) {
	p := manifestPlugin(t, `id: x
call: [c]
tools:
  - name: a
    timeout: -1
  - name: b
    timeout: 99999999999h
  - name: c
    channels: slack
  - name: d
    output: json
  - name: e
    examples: [{description: none}]
`)
	want := []string{
		`plugin.yaml:5:5: tools.0.timeout: must be >= 0 but found -1 (expected whole milliseconds or a duration such as "30s", 0 or more)`,
		`plugin.yaml:7:5: tools.1.timeout: its timeout is not whole milliseconds or a duration such as "30s", 0 or more`,
		"plugin.yaml:9:5: tools.2.channels: expected array, but got string",
		`plugin.yaml:11:5: tools.3.output: value must be one of "text", "result"`,
		`plugin.yaml:13:16: tools.4.examples.0: missing property "params"`,
	}
	if diff := cmp.Diff(want, problemTexts(p.Check(t.Context()), p.Dir)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestLintReportsMissingPrograms(t *testing.T) {
	p := manifestPlugin(t, "id: x\nfactory: [no-such-program]\ncall: [./there.sh]\ntools:\n- {name: a, description: d, parameters: {}, command: [./gone.sh]}\n- name: b\n", "there.sh", "#!/bin/sh\n")
	if len(p.Problems) > 0 {
		t.Fatalf("problems %v", p.Problems)
	}
	missing, warnings := p.Lint(environ(), func(name string) string { return map[string]string{"b": "built"}[name] })
	if len(missing) != 2 {
		t.Errorf("missing programs: %v", missing)
	}
	got := strings.Join(problemTexts(append(missing, warnings...), p.Dir), "\n")
	for _, want := range []string{`2:1: factory: program "no-such-program": not found in its PATH`, `5:45: tools.0.command: program "./gone.sh": no such file`,
		"6:3: tools.1: the tool has no description", "6:3: tools.1: the tool has no parameters",
		`6:3: tools.1.name: "b" is a name of the built-in tool built`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if strings.Contains(got, "there.sh") {
		t.Errorf("got %s", got)
	}
}

func TestFindPlugins(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "b/plugin.json", `{"id": "bee", "call": ["x"], "tools": [{"name": "t"}],} // c
`)
	writeFile(t, dir, "a/plugin.yaml", "id: ay\ncall: [x]\ntools: [{name: t}]\n")
	writeFile(t, dir, "empty/README.md", "x")
	writeFile(t, dir, "node_modules/x/index.js", "x")
	writeFile(t, dir, ".hidden/plugin.yaml", "id: h\n")
	writeFile(t, dir, "solo.py", "#!/usr/bin/env python3\n")
	writeFile(t, dir, "we\x1b[31mird id.sh", "#!/bin/sh\n")
	notes := writeFile(t, dir, "notes.txt", "x")
	if err := os.Chmod(notes, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		ID, Path string
		OK       bool
	}
	look := func(path string, required bool) []seen {
		var out []seen
		for _, p := range FindPlugins(t.Context(), PluginPlace{Path: path, Required: required}) {
			out = append(out, seen{p.ID, strings.TrimPrefix(strings.TrimPrefix(p.Path, dir), "/"), len(p.Problems) == 0})
		}
		return out
	}
	want := []seen{{"ay", "a/plugin.yaml", true}, {"bee", "b/plugin.json", true}, {"dangling", "dangling", false},
		{"empty", "empty", false}, {"solo", "solo.py", true},
		{"we__31mird_id.sh", "we\x1b[31mird id.sh", false}}
	if diff := cmp.Diff(want, look(dir, false)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]seen{{"ay", "a/plugin.yaml", true}}, look(filepath.Join(dir, "a"), true)); diff != "" {
		t.Errorf("one plugin:\n%s", diff)
	}
	if diff := cmp.Diff([]seen{{"notes.txt", "notes.txt", false}}, look(notes, true)); diff != "" {
		t.Errorf("a text:\n%s", diff)
	}
	if got := look(filepath.Join(dir, "none"), false); got != nil {
		t.Errorf("nothing there: %v", got)
	}
	if got := look(filepath.Join(dir, "none"), true); len(got) != 1 || got[0].OK {
		t.Errorf("no problem for a required path that does not exist: %v", got)
	}
}

func TestPluginSchemaIsValid(t *testing.T) {
	if notes, err := registry.NewValidator(PluginSchema()).Compile(t.Context()); err != nil || len(notes) > 0 {
		t.Errorf("notes %q, error %v", notes, err)
	}
}

func TestPluginIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "A-b.c_9": true, "9": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, "": false, ".": false, "..": false,
		"../x": false, "a/b": false, `a\b`: false, "-rf": false, "_a": false, "a b": false, "a\n": false, "аbc": false, "a:b": false,
	} {
		if got := IsPluginID(id); got != want {
			t.Errorf("IsPluginID(%q) = %v", id, got)
		}
		p := manifestPlugin(t, "id: "+string(mustJSON(t, id))+"\ncall: [x]\ntools: [{name: t}]\n")
		if (len(p.Problems) == 0) != want {
			t.Errorf("manifest with id %q: %v", id, p.Problems)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzManifest checks that reading a manifest never panics, and that plugins
// without problems can be discovered.
func FuzzManifest(f *testing.F) {
	f.Add([]byte("id: a\ncall: [x]\ntools: [{name: t, parameters: {type: object}, examples: [{params: {}}], when: {a: [1]}, channels: [x]}]\n"))
	f.Add([]byte("{\"id\": \"a\", \"tools\": [{\"name\": \"t\", \"command\": [\"x\"], \"when\": \".a\", \"timeout\": \"1s\"}]}"))
	f.Add([]byte("id: a\ntools: [{name: t, command: [../x, \"\\0\"]}]\ntimeout: 9223372036854775807\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "plugin.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := findOne(t, dir)
		if !IsPluginID(p.ID) && len(p.Problems) == 0 {
			t.Errorf("id %q", p.ID)
		}
		p.Lint(nil, func(string) string { return "" })
		p.Check(t.Context())
		_, _, err := NewPlugin(p, pluginOptions(PluginOptions{Disabled: true})).Discover(t.Context())
		if (err == nil) != (len(p.Problems) == 0) {
			t.Errorf("error %v with problems %v", err, p.Problems)
		}
	})
}

// {{?name}} is for options that are given or not.
func TestArgumentsOfBooleans(t *testing.T) {
	params := map[string]json.RawMessage{"quiet": json.RawMessage(`{"type":"boolean"}`), "file": json.RawMessage(`{"type":"string"}`)}
	f, err := newFiller("--quiet{{?quiet}}", params)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{`true`: true, `false`: false, `null`: false, ``: false} {
		o := object{}
		if value != "" {
			o["quiet"] = json.RawMessage(value)
		}
		if got, ok := f.fill(o); ok != want || ok && got != "--quiet" {
			t.Errorf("%q: %q, %v", value, got, ok)
		}
	}
	for arg, want := range map[string]string{"{{?quiet}}": "needs the option before it", "--x{{?file}}": "type boolean", "--x{{?none}}": "no parameter"} {
		if _, err := newFiller(arg, params); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}
