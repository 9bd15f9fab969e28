package discover

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// findOne finds the one plugin at a path.
func findOne(t *testing.T, path string) *Plugin {
	t.Helper()
	found := FindPlugins(t.Context(), PluginPlace{Path: path, Required: true})
	if len(found) != 1 {
		t.Fatalf("%d plugins, want one", len(found))
	}
	return found[0]
}

// manifestPlugin writes a manifest and other files to a folder, and finds the
// plugin.
func manifestPlugin(t *testing.T, manifest string, files ...string) *Plugin {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	writeFile(t, dir, "plugin.yaml", manifest)
	for i := 0; i+1 < len(files); i += 2 {
		writeFile(t, dir, files[i], files[i+1])
	}
	return findOne(t, dir)
}

func pluginOptions(o PluginOptions) PluginOptions {
	o.Env = append(environ(), o.Env...)
	if o.ProjectRoot == "" {
		o.ProjectRoot = "/project"
	}
	o.Options = required(o.Options)
	return o
}

// toolsOf discovers the tools of a plugin and returns them by name, with the
// diagnostics.
func toolsOf(t *testing.T, p *Plugin, o PluginOptions) (map[string]registry.Tool, []string) {
	t.Helper()
	tools, diags, err := NewPlugin(p, pluginOptions(o)).Discover(t.Context())
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	out := map[string]registry.Tool{}
	for _, tool := range tools {
		out[tool.Name] = tool
	}
	var reported []string
	for _, d := range diags {
		reported = append(reported, d.Code+": "+d.Message)
	}
	return out, reported
}

func run(t *testing.T, tool registry.Tool, params string) registry.Result {
	t.Helper()
	result, err := tool.Run(t.Context(), registry.Call{Tool: tool.Name, Params: json.RawMessage(params)})
	if err != nil {
		t.Fatalf("running %s: %v", tool.Name, err)
	}
	return result
}

func TestManifestToolsRunInPluginFolder(t *testing.T) {
	p := manifestPlugin(t, `
id: demo
version: 1.2.0
author: Ann
timeout: 90s
tools:
  - name: where
    description: Tells.
    category: read
    parameters: {type: object, properties: {n: {type: integer, default: 12345678901234567890}}}
    tags: [a, b]
    icon: globe
    examples: [{description: Try, params: {n: 1}}]
    permissions: [network]
    isOutputMarkdown: true
    command: [./where.sh, "two words"]
    timeout: 1500
  - {name: plain, version: 0.9.0, author: Bob, command: [cat]}
`, "where.sh", "#!/bin/sh\necho \"$1|$TOOLREG_TOOL|$TOOLREG_PLUGIN|$TOOLREG_PROJECT_ROOT\"\npwd -P\ncat\n")
	tools, reported := toolsOf(t, p, PluginOptions{})
	if len(reported) > 0 {
		t.Errorf("unexpected diagnostics: %q", reported)
	}
	where := tools["where"]
	want := registry.Definition{
		Name: "where", DisplayName: "where", Description: "Tells.", Source: "plugin:demo", Plugin: "demo", Category: "read", Tags: []string{"a", "b"},
		Version: "1.2.0", Author: "Ann", Icon: "globe", Permissions: []string{"network"}, OutputMarkdown: true,
		Examples:    []registry.Example{{Description: "Try", Params: json.RawMessage(`{"n":1}`)}},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":12345678901234567890}}}`),
	}
	if diff := cmp.Diff(want, where.Definition); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	if where.Timeout != 1500*time.Millisecond || tools["plain"].Timeout != 90*time.Second {
		t.Errorf("time limits %v and %v", where.Timeout, tools["plain"].Timeout)
	}
	if d := tools["plain"].Definition; d.Version != "0.9.0" || d.Author != "Bob" || d.Category != registry.CategoryOther {
		t.Errorf("plain: %+v", d)
	}
	dir, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	result := run(t, where, `{"n": 1}`)
	if got, want := result.Text(), "two words|where|demo|/project\n"+dir+"\n{\"n\": 1}"; got != want {
		t.Errorf("result %q, want %q", got, want)
	}
	if plain := tools["plain"]; where.Fingerprint() == plain.Fingerprint() {
		t.Error("tools with different commands have the same fingerprint")
	}
}

func TestStderrIsUsedOnlyOnFailure(t *testing.T) {
	p := manifestPlugin(t, "id: p\ntools:\n- {name: good, command: [sh, -c, 'echo note >&2; echo out']}\n- {name: bad, command: [sh, -c, 'echo why >&2; exit 3']}\n"+
		"- {name: gone, command: [./none]}\n")
	tools, _ := toolsOf(t, p, PluginOptions{})
	if r := run(t, tools["good"], "{}"); r.IsError || r.Text() != "out\n" {
		t.Errorf("good: %+v", r)
	}
	if r := run(t, tools["bad"], "{}"); !r.IsError || r.Summary != "exit code 3" || !strings.Contains(r.Text(), "Stderr: why\n") {
		t.Errorf("bad: %+v", r)
	}
	if r := run(t, tools["gone"], "{}"); !r.IsError || !strings.Contains(r.Text(), "no such file") {
		t.Errorf("gone: %+v", r)
	}
}

func TestOutputMustMatchOutputSchema(t *testing.T) {
	p := manifestPlugin(t, `
id: p
call: [sh, -c, 'printf %s "$OUT"']
tools:
  - name: typed
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
`)
	for out, want := range map[string]string{
		`{"n": 12345678901234567890}`: "",
		`{"n": "x"}`:                  `does not match its outputSchema: n: `,
		`{}`:                          "does not match its outputSchema",
		`[1]`:                         "printed an array, not a JSON object",
		``:                            "did not print a JSON object",
		`{"n": 1} tail`:               "did not print a JSON object",
		`{"n": 1, "n": 2}`:            "did not print a JSON object: ",
		"{\"n\": 1, \"s\": \"\xff\"}": "did not print a JSON object: ",
	} {
		tools, _ := toolsOf(t, p, PluginOptions{Options: Options{Env: []string{"OUT=" + out}}})
		r := run(t, tools["typed"], "{}")
		switch {
		case want == "" && (r.IsError || string(r.Structured) != out):
			t.Errorf("%s: %+v", out, r)
		case want != "" && (!r.IsError || !strings.Contains(r.Summary, want)):
			t.Errorf("%s: %+v, want %q", out, r, want)
		}
	}
}

func TestByteOrderMarkBeforeObjectIsIgnored(t *testing.T) {
	p := manifestPlugin(t, "id: p\ntools: [{name: typed, outputSchema: {type: object}, command: [cat, out]}]\n", "out", "\ufeff{\"n\": 1}\r\n")
	tools, _ := toolsOf(t, p, PluginOptions{})
	if r := run(t, tools["typed"], "{}"); r.IsError || string(r.Structured) != `{"n": 1}` {
		t.Errorf("%+v", r)
	}
}

func TestFactoryReceivesContext(t *testing.T) {
	p := manifestPlugin(t, "id: fac\nfactory: [./make.sh]\ncall: [./run.sh, first]\n",
		"make.sh", "#!/bin/sh\nprintf '{\"name\":\"seen\",\"description\":'; cat | sed 's/\"/\\\\\"/g; s/^/\"/; s/$/\"/'; printf ',\"when\":{\"channel\":\"slack\"}}'\n",
		"run.sh", "#!/bin/sh\necho \"$1 $2\"\ncat\n")
	o := PluginOptions{Options: Options{Context: json.RawMessage(`{"channel":"slack","sandboxed":true}`)},
		Settings: func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{"key":"k1"}`), nil }}
	tools, reported := toolsOf(t, p, o)
	if len(reported) > 0 {
		t.Errorf("unexpected diagnostics: %q", reported)
	}
	if got, want := tools["seen"].Description, `{"channel":"slack","plugin":"fac","sandboxed":true,"settings":{"key":"k1"}}`; got != want {
		t.Errorf("the factory got %s, want %s", got, want)
	}
	if tools["seen"].Unmet != "" {
		t.Errorf("unmet: %s", tools["seen"].Unmet)
	}
	if r := run(t, tools["seen"], `{"a":1}`); r.Text() != "first seen\n{\"a\":1}" {
		t.Errorf("result %q", r.Text())
	}
}

func TestFactoryOutput(t *testing.T) {
	for name, c := range map[string]struct {
		prints   string
		tools    []string
		reported string // in a diagnostic
		err      string
	}{
		"none":        {prints: "null"},
		"one":         {prints: `{"name":"a"}`, tools: []string{"a"}},
		"many":        {prints: `[{"name":"a"},{"name":"b"}]`, tools: []string{"a", "b"}},
		"no tools":    {prints: `[]`},
		"nothing":     {prints: ``, err: "printed nothing"},
		"text":        {prints: `hello`, err: "not JSON"},
		"number":      {prints: `7`, err: "JSON array, not a number"},
		"two objects": {prints: `{"name":"a"} {"name":"b"}`, err: `not JSON: text after the JSON value, at line 1, column 14; the first line is "{`},
		"nameless":    {prints: `[{"name":"a"},{"description":"x"},7,null]`, tools: []string{"a"}, reported: "item 2 has no name"},
		"bad when":    {prints: `[{"name":"a","when":"("},{"name":"b"}]`, tools: []string{"b"}, reported: `"a"`},
		"bad channel": {prints: `[{"name":"a","channels":7},{"name":"b"}]`, tools: []string{"b"}, reported: "its channels: a number"},
		"bad command": {prints: `[{"name":"a","command":"rm"},{"name":"b"}]`, tools: []string{"b"}, reported: "its command is not a list"},
		"leads out":   {prints: `[{"name":"a","command":["sh","../../run.sh"]},{"name":"b"}]`, tools: []string{"b"}, reported: `leads outside the plugin's folder`},
		"bad timeout": {prints: `[{"name":"a","timeout":-1},{"name":"b"}]`, tools: []string{"b"}, reported: "its timeout is not"},
		"deep schema": {prints: `[{"name":"a","parameters":` + strings.Repeat(`{"x":`, 200) + "1" + strings.Repeat("}", 200) + `},{"name":"b"}]`, tools: []string{"b"}, reported: "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			p := manifestPlugin(t, "id: p\nfactory: [cat, out]\ncall: [cat]\n", "out", c.prints)
			tools, diags, err := NewPlugin(p, pluginOptions(PluginOptions{})).Discover(t.Context())
			if c.err != "" {
				if err == nil || !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), p.Path) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			var names []string
			for _, tool := range tools {
				if tool.Quarantine == nil {
					names = append(names, tool.Name)
				}
			}
			if err != nil || !cmp.Equal(names, c.tools) {
				t.Errorf("tools %q, error %v, want %q", names, err, c.tools)
			}
			said, _ := json.Marshal(diags)
			if c.reported == "" && len(diags) > 0 || c.reported != "" && !strings.Contains(strings.ReplaceAll(string(said), `\"`, `"`), c.reported) {
				t.Errorf("diagnostics %s, want %q", said, c.reported)
			}
		})
	}
}

// A factory that hangs, prints too much, fails or leaves processes behind does not
// affect the tools of the manifest.
func TestMisbehavingFactories(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"hangs":         {"sleep 600", "toolDiscoveryTimeout"},
		"floods":        {"yes", "size limit of 4096 bytes on stdout (limits.discoveryOutput)"},
		"floods stderr": {"yes >&2", "size limit of 4096 bytes on stderr"},
		"fails":         {"echo why >&2; exit 4", "exit code 4; its stderr ends with: why"},
		"dies":          {"kill -9 $$", "ended by SIGKILL"},
		"leaves":        {"sleep 600 & echo x", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			p := manifestPlugin(t, "id: p\nfactory: [sh, f.sh]\ncall: [cat]\ntools: [{name: kept}]\n", "f.sh", c.script)
			o := PluginOptions{Options: Options{Limits: Limits{Discovery: 4096}, Timeout: 30 * time.Second}}
			if name == "hangs" {
				o.Timeout = 50 * time.Millisecond
			}
			tools, reported := toolsOf(t, p, o)
			if len(tools) != 1 || len(reported) != 1 || !strings.HasPrefix(reported[0], "factory_failed: ") || !strings.Contains(reported[0], c.want) {
				t.Errorf("%d tools, diagnostics %q, want %q", len(tools), reported, c.want)
			}
		})
	}
}

func TestScriptPlugin(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "solo.sh", `#!/bin/sh
case $1 in
--toolreg-describe) cat >ctx; echo '[{"name":"one","category":"read"},{"name":"two","optional":true}]' ;;
*) echo "ran $1"; cat ;;
esac
`)
	p := findOne(t, filepath.Join(dir, "solo.sh"))
	tools, reported := toolsOf(t, p, PluginOptions{})
	if len(reported) > 0 || len(tools) != 2 || tools["one"].Source != "plugin:solo" || !tools["two"].Optional {
		t.Fatalf("tools %+v, diagnostics %q", tools, reported)
	}
	if r := run(t, tools["two"], `{"x":1}`); r.Text() != "ran two\n{\"x\":1}" {
		t.Errorf("result %q", r.Text())
	}
	writeFile(t, dir, "file.sh", "#!/bin/sh\ncat out\n")
	for prints, want := range map[string]string{
		`{"description":"x"}`:                                           "file",
		`{"parameters":{"type":"object"}}`:                              "file",
		`{"parametersJsonSchema":{"type":"object"}}`:                    "file",
		`{"category":"read"}`:                                           "file",
		`{"name":"x"}`:                                                  "x",
		`{"projectRoot":"/p"}`:                                          `["declaration_skipped: item 1 has no name; skipped"]`,
		`{"id":"x","description":"y","tools":[{"name":"z"}]}`:           `["declaration_skipped: item 1 has no name; skipped"]`,
		`{"type":"function","description":"x","function":{"name":"z"}}`: `["declaration_skipped: item 1 has no name; skipped"]`,
	} {
		writeFile(t, dir, "out", prints)
		tools, reported := toolsOf(t, findOne(t, filepath.Join(dir, "file.sh")), PluginOptions{})
		got, _ := json.Marshal(reported)
		if len(tools) > 0 {
			got = []byte(slices.Collect(maps.Keys(tools))[0])
		}
		if string(got) != want {
			t.Errorf("%s: %s, want %s", prints, got, want)
		}
	}
	tools, _ = toolsOf(t, p, PluginOptions{Disabled: true})
	if len(tools) != 0 {
		t.Error("a disabled plugin was run")
	}
}

func TestCanceledCallEndsSoon(t *testing.T) {
	p := manifestPlugin(t, "id: p\ntools: [{name: slow, canUpdateOutput: true, command: [sh, -c, 'echo begun; sleep 600']}]\n")
	tools, _ := toolsOf(t, p, PluginOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result, err := tools["slow"].Run(ctx, registry.Call{Params: json.RawMessage("{}"), Emit: func(registry.Content) { cancel() }})
	if err != nil || !result.IsError || result.ErrorCategory != registry.ErrorCancellation || !strings.Contains(result.Text(), "begun") {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestCallOutputIsLimited(t *testing.T) {
	p := manifestPlugin(t, "id: p\ntools: [{name: flood, command: ['yes']}]\n")
	tools, _ := toolsOf(t, p, PluginOptions{Options: Options{Limits: Limits{Output: 1000}}})
	result := run(t, tools["flood"], "{}")
	if !result.IsError || !strings.Contains(result.Summary, process.ErrOutputLimit.Error()) {
		t.Errorf("result %+v", result)
	}
}

func TestPluginSettingsThatCannotBeExpanded(t *testing.T) {
	p := manifestPlugin(t, "id: p\nfactory: [cat]\ncall: [cat]\n")
	_, _, err := NewPlugin(p, pluginOptions(PluginOptions{
		Settings: func(context.Context) (json.RawMessage, error) { return nil, errors.New("variable KEY is not set") }})).Discover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "plugins.settings.p: variable KEY is not set") {
		t.Errorf("error %v", err)
	}
}
