package consent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/trust"
)

// parse returns a settings file p with a text.
func parse(t *testing.T, text string) *File {
	t.Helper()
	l := layers.Read(table.NewIndex(), layers.ScopeProject, "p", []byte(text))
	if l.Root == nil {
		t.Fatal(l.Problems)
	}
	none := func(s string) (string, error) { return s, errors.New("no variables") }
	return &File{Layer: l, Expand: none}
}

// known expands $HERE and fails for other variables.
func known(s string) (string, error) {
	s = strings.ReplaceAll(s, "$HERE", "here")
	if strings.Contains(s, "$") {
		return "", errors.New("not set")
	}
	return s, nil
}

// The question names everything that a file runs and connects to, even where the file has
// mistakes.
func TestProgramsNamesWhatRuns(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a command line", "toolDiscoveryCommand: ./find 'a b'", `p:1: toolDiscoveryCommand: ./find "a b"`},
		{"a list of words", "toolCallCommand: [./call, x]", "p:1: toolCallCommand: ./call x"},
		{"a command that cannot be split", "toolCallCommand: ./call 'x", ""},
		{"a disabled command", "toolCallCommand: ''", ""},
		{"plugin folders", "plugins: {paths: [a, b]}", "p:1: plugins.paths: a\np:1: plugins.paths: b"},
		{"variables", "env: {BASH_ENV: ./x, A: 1}", "p:1: env: sets BASH_ENV=./x"},
		{"no variables", "env: {}", ""},
		{"scripts of composites", "composites: {a: {script: tools/a.star}, b: {script: ./b.star}, c: {steps: [{call: x}]}}", "p:1: composites: ./tools/a.star\np:1: composites: ./b.star"},
		{"other strings", "excludeTools: [run]", ""},
		{"a server", "mcpServers:\n  s: {command: srv, args: [-x, 1, y], cwd: sub, env: {A: b}}", "p:2: mcpServers.s: srv -x y (in sub) (sets A=b)"},
		{"a remote server", "mcpServers: {s: {url: https://a.example}}", "p:1: mcpServers.s: connects to https://a.example"},
		{"a remote server by httpUrl", "mcpServers: {s: {httpUrl: https://a.example}}", "p:1: mcpServers.s: connects to https://a.example"},
		{"an address with variables", "mcpServers: {s: {url: https://a.example, cwd: sub, env: {A: b}}}", "p:1: mcpServers.s: connects to https://a.example"},
		{"a server with both", "mcpServers: {s: {url: https://a.example, command: srv}}", "p:1: mcpServers.s: connects to https://a.example\np:1: mcpServers.s: srv"},
		{"a server whose command may be words or one file", "mcpServers: {s: {command: my server, args: [x]}}", `p:1: mcpServers.s: my server x (or "my server", if there is such a file)`},
		{"a server without either", "mcpServers: {s: {env: {A: b}}}", ""},
		{"logins", "mcpServers: {s: {oauth: {issuer: 'https://i', authorizationUrl: 'https://a', tokenUrl: 'https://t', registrationUrl: 'https://r', idpIssuer: 'https://p', clientId: me}}}",
			"p:1: mcpServers.s.oauth.issuer: connects to https://i\np:1: mcpServers.s.oauth.authorizationUrl: connects to https://a\np:1: mcpServers.s.oauth.tokenUrl: connects to https://t\n" +
				"p:1: mcpServers.s.oauth.registrationUrl: connects to https://r\np:1: mcpServers.s.oauth.idpIssuer: connects to https://p"},
		{"logins with mistakes", "mcpServers: {a: {oauth: {issuer: [x]}}, b: {oauth: issuer}, c: {oauth: {issuer: 'https://i'}}}", "p:1: mcpServers.c.oauth.issuer: connects to https://i"},
		{"APIs", "openapi: {a: {spec: api.yaml}, b: {spec: 'https://b.example/api'}, c: {spec: api.yaml, baseUrl: 'https://c.example'}, d: {spec: 'https://d.example', baseUrl: 'https://e.example'}}",
			"p:1: openapi.a: connects to the API at the servers that api.yaml names\np:1: openapi.b: connects to the API at https://b.example/api\np:1: openapi.c: connects to the API at https://c.example\n" +
				"p:1: openapi.d: connects to https://d.example\np:1: openapi.d: connects to the API at https://e.example"},
		{"logins to APIs", "openapi: {a: {spec: x, baseUrl: 'https://a', auth: {oauth: {issuer: 'https://i'}}}, b: {spec: x, baseUrl: 'https://b', auth: [{env: X}, {oauth: {tokenUrl: 'https://t'}}]}}",
			"p:1: openapi.a: connects to the API at https://a\np:1: openapi.a.auth.oauth.issuer: connects to https://i\np:1: openapi.b: connects to the API at https://b\np:1: openapi.b.auth.oauth.tokenUrl: connects to https://t"},
		{"a reference", "mcpServers: {s: {url: https://a.example, headers: {X: \"cmd:pass 'a b'\", Y: env:Z}}}",
			"p:1: mcpServers.s: connects to https://a.example\np:1: mcpServers.s.headers.X: pass \"a b\""},
		{"a reference that cannot be split", "mcpServers: {s: {headers: {X: \"cmd:pass 'a b\"}}}", `p:1: mcpServers.s.headers.X: pass "'a" b`},
		{"a hook", "hooks: {before: [{command: ./a x}, {tool: x, command: [./b, y]}]}", "p:1: hooks: ./a x\np:1: hooks: ./b y"},
		{"a hook with mistakes", "hooks: {later: {command: ./a, args: [x]}, before: {command: {command: ./b}, commands: ./c}, x: [command]}", "p:1: hooks: ./a x\np:1: hooks: ./b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(Describe(Programs(parse(t, tt.text)), known), "\n"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Programs get the variables that the file sets for all, and servers only their own. What
// runs nothing is not listed, because it has no files to cover.
func TestProgramsHaveVariables(t *testing.T) {
	got := Programs(parse(t, `
excludeTools: [x]
env: {A: b, N: 1}
toolDiscoveryCommand: ./find
hooks: {before: [{command: ./hook}]}
plugins: {paths: [a]}
mcpServers: {s: {command: srv, env: {C: d}}, none: {}}
`))
	all := []string{"A=b"}
	want := []Program{
		{Place: "p:3", Key: "env", Env: all, Shown: all},
		{Place: "p:4", Key: "toolDiscoveryCommand", Argv: []string{"./find"}, Env: all},
		{Place: "p:5", Key: "hooks", Argv: []string{"./hook"}, Env: all},
		{Place: "p:6", Key: "plugins.paths", Argv: []string{"a"}},
		{Place: "p:7", Key: "mcpServers.s", Argv: []string{"srv"}, Env: []string{"C=d"}, Shown: []string{"C=d"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	alone := &File{Layer: &layers.Layer{File: "p", Settings: []layers.Setting{{Row: &table.Row{Type: table.Command}, Key: "k", Value: jsonx.NewString("run")}}}}
	if diff := cmp.Diff([]Program{{Place: "p", Key: "k", Argv: []string{"run"}}}, Programs(alone)); diff != "" {
		t.Errorf("without a position: %s", diff)
	}
}

func TestDescribeOmitsNothingThatRuns(t *testing.T) {
	got := Describe([]Program{{Place: "p", Key: "none", Cwd: "x", Env: []string{"A=b"}}, {Place: "p", Key: "url", URL: "https://a b", Cwd: "x"}, {Place: "p", Key: "runs", Argv: []string{"x"}}}, known)
	want := []string{`p: url: connects to "https://a b"`, "p: runs: x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The files of a program are covered for both meanings of a command that may be words or the
// name of one file.
func TestExpandKeepsBothMeanings(t *testing.T) {
	got := Expand(Programs(parse(t, "mcpServers: {s: {command: my $HERE, args: [x], cwd: sub, env: {A: $HERE}}, one: {command: srv, cwd: /abs}}")), "/r", known, []string{"I=1"})
	env, inherited := []string{"A=here"}, []string{"I=1"}
	want := []trust.Program{
		{Argv: []string{"my", "here", "x"}, Dir: "/r/sub", Env: env, Inherited: inherited},
		{Argv: []string{"my here", "x"}, Dir: "/r/sub", Env: env, Inherited: inherited},
		{Argv: []string{"srv"}, Dir: "/abs", Env: []string{}, Inherited: inherited},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// In an entry of a registry ~ is no home folder, neither for what is covered nor in the question.
func TestExpandKeepsTildesOfRegistries(t *testing.T) {
	programs := Programs(parse(t, "mcpServers: {own: {command: ~/run, cwd: ~/in}, s: {command: ~/run, args: [~~/$HERE, $HERE], cwd: ~/in, from: {name: s}}}"))
	home := func(s string) (string, error) { return known(strings.Replace(s, "~/", "/home/", 1)) }
	want := []trust.Program{
		{Argv: []string{"/home/run"}, Dir: "/home/in", Env: []string{}},
		{Argv: []string{"~/run", "~~/here", "here"}, Dir: "/r/~/in", Env: []string{}},
	}
	if diff := cmp.Diff(want, Expand(programs, "/r", home, nil)); diff != "" {
		t.Error(diff)
	}
	const shown = "p:1: mcpServers.s: ~/run ~~/$HERE $HERE (in ~/in)"
	if got := Describe(programs, home)[1]; got != shown {
		t.Errorf("the question shows %s, want %s", got, shown)
	}
}

// A document of an API is a file that is covered, unless it is at an address; what follows it is
// covered, too.
func TestExpandCoversDocuments(t *testing.T) {
	got := Expand([]Program{{Document: "https://a.example/x"}, {Document: "$HERE.yaml"}, {Argv: []string{"run"}}}, "/r", known, nil)
	want := []trust.Program{{Document: "/r/here.yaml"}, {Argv: []string{"run"}, Dir: "/r", Env: []string{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The question names each setting that allows more than the defaults, and of lists and
// named entries only those that do, with secrets masked.
func TestLoosensNamesWhatAllowsMore(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a setting", "shell: {catastrophic: ask}", `p:1: shell.catastrophic = "ask"`},
		{"the default", "shell: {catastrophic: deny}", ""},
		{"a setting that never does", "excludeTools: [x]", ""},
		{"rules", "policy:\n  rules:\n    - {tool: a, decision: deny}\n    - {tool: b, decision: allow}", `p:4: policy.rules = {"tool":"b","decision":"allow"}`},
		{"a server", "mcpServers:\n  s:\n    command: srv\n    trust: true\n  t: {trust: false}", "p:4: mcpServers.s.trust = true"},
		{"named entries", "toolOptions: {a: {timeout: 1h}, b: {}}", `p:1: toolOptions.a = {"timeout":"1h"}`},
		{"a secret", "plugins: {settings: {p: {token: hunter2}}}", `p:1: plugins.settings = {"p":{"token":"***"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(Loosens(parse(t, tt.text)), "\n"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	dir := trust.Real(t.TempDir())
	for folder, want := range map[string]string{
		"sub": "", "./.": "", "p/../sub": "", "..": " (outside the project: file tools, edits allowed by auto-edit and the sandbox may then use " + dir + ")",
		"$OUT": " (outside the project: file tools, edits allowed by auto-edit and the sandbox may then use " + dir + ")", "$NOT_SET": "",
	} {
		f := parse(t, "workspace: {root: "+folder+"}")
		f.Project, f.Expand = filepath.Join(dir, "p"), func(s string) (string, error) {
			if s == "$NOT_SET" {
				return "", errors.New("not set")
			}
			return strings.ReplaceAll(s, "$OUT", dir), nil
		}
		if got := strings.Join(Loosens(f), ""); got != `p:1: workspace.root = "`+folder+`"`+want {
			t.Errorf("%s: got %s, want %s", folder, got, want)
		}
	}
}

// The question names the variables and references in every string, wherever it is.
func TestExpandsNamesVariables(t *testing.T) {
	got := Expands(parse(t, "context: {\"a b\": [\"$X\", 1]}\ntoolCallCommand: run ${Y} $Y"))
	if diff := cmp.Diff([]string{"p:1: context.a b[0]: X", "p:2: toolCallCommand: Y"}, got); diff != "" {
		t.Error(diff)
	}
	if got := Expands(&File{Layer: &layers.Layer{File: "p"}}); got != nil {
		t.Errorf("of a file that cannot be parsed: %q", got)
	}
}

// write creates files below a new folder and returns the folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path, mode := filepath.Join(root, name), os.FileMode(0o600)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Plugins are folders with a manifest and executable files, in a plugin folder or named
// themselves. The question shows each, with all that its manifest runs.
func TestPluginsOfFolders(t *testing.T) {
	root := write(t, map[string]string{
		"plugins/a/plugin.yaml": "factory: [./build, x]\ncall: [run]\ntools:\n  - {name: t, command: [./t, -x], args: [y], env: {A: b, N: 1}}\n  - {name: none}\n  - {name: u, command: [bin/u], cwd: project}\n",
		"plugins/b/plugin.json": `{}`,
		"plugins/c/plugin.yml":  "call: [c]",
		"plugins/script":        "#!/bin/sh\n",
		"plugins/notes.txt":     "",
		"plugins/folder/x":      "#!/bin/sh\n",
		"one/plugin.yml":        "call: [one]",
		"one/sub":               "#!/bin/sh\n",
		"three/x":               "#!/bin/sh\n",
	})
	file := &File{Layer: &layers.Layer{Settings: []layers.Setting{{Row: &table.Row{Name: "env"}, Value: jsonx.NewObject(jsonx.NewMember("G", jsonx.NewString("h")))}}}}
	folders := []string{filepath.Join(root, "plugins"), filepath.Join(root, "one"), filepath.Join(root, "two"), filepath.Join(root, "three")}
	plugins := Plugins(file, root, folders)
	want := []string{
		"plugin plugins/a: factory: ./build x", "plugin plugins/a: call: run", `plugin plugins/a: tools[0] t: ./t -x y`, "plugin plugins/a: tools[2] u: ./plugins/a/bin/u",
		"plugin plugins/b", "plugin plugins/c: call: c", "plugin plugins/script: runs: " + filepath.Join(root, "plugins/script"),
		"plugin one: call: one", "plugin three/x: runs: " + filepath.Join(root, "three/x"),
	}
	if diff := cmp.Diff(want, DescribePlugins(root, plugins, known)); diff != "" {
		t.Error(diff)
	}
	if a := plugins[0]; len(a.Programs) != 4 || a.Programs[0].Cwd != filepath.Join(root, "plugins/a") || a.Programs[3].Cwd != root ||
		!cmp.Equal(a.Programs[2].Env, []string{"A=b", "G=h"}) || !cmp.Equal(a.Programs[0].Env, []string{"G=h"}) {
		t.Errorf("%+v", a.Programs)
	}
	if b := plugins[1]; b.Programs != nil {
		t.Errorf("a manifest without commands runs %+v", b.Programs)
	}
	if got := Plugins(&File{Layer: &layers.Layer{}}, root, folders[1:2]); len(got) != 1 || got[0].Programs[0].Env != nil {
		t.Errorf("without a file: %+v", got)
	}
}

// A program of a tool that runs in the project is named as seen from there.
func TestProgramFromRoot(t *testing.T) {
	for program, want := range map[string]string{
		"u": "u", "./u": "./p/a/u", "bin/u": "./p/a/bin/u", "../../u": "./u", "../../../u": "/u", "/usr/bin/u": "/usr/bin/u",
	} {
		if got := filepath.ToSlash(fromRoot(filepath.FromSlash("/r"), filepath.FromSlash("/r/p/a"), program)); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}

// A manifest that changes between the reading of its programs and that of the covered files
// is noticed. Scripts have no manifest.
func TestChangedManifestIsNoticed(t *testing.T) {
	root := write(t, map[string]string{"a/plugin.yaml": "call: [a]", "b/plugin.yaml": "call: [b]", "x": "#!/bin/sh\n"})
	plugins := Plugins(&File{Layer: &layers.Layer{}}, root, []string{filepath.Join(root, "a"), filepath.Join(root, "b"), root})
	covered, err := trust.Cover(root, nil, nil, []string{root})
	if err != nil {
		t.Fatal(err)
	}
	if got := Changed(plugins, covered); got != "" || len(plugins) < 3 {
		t.Errorf("%q of %d plugins has changed", got, len(plugins))
	}
	if err := os.WriteFile(filepath.Join(root, "b/plugin.yaml"), []byte("call: [other]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if covered, err = trust.Cover(root, nil, nil, []string{root}); err != nil {
		t.Fatal(err)
	}
	if got := Changed(plugins, covered); got != filepath.Join(root, "b/plugin.yaml") {
		t.Errorf("%q has changed", got)
	}
}

// Plugin folders of the project are those that the file adds and that lie in it.
func TestPluginFoldersStayInProject(t *testing.T) {
	got := PluginFolders(parse(t, "excludeTools: [tools]\nplugins: {paths: [a, $HERE/b, $OTHER/c, ../d, /elsewhere, /r/e]}"), "/r", known)
	if diff := cmp.Diff([]string{"/r/a", "/r/here/b", "/r/$OTHER/c", "/r/e"}, got); diff != "" {
		t.Error(diff)
	}
}
