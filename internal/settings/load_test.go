package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

func codes(diags []registry.Diagnostic) []string {
	out := []string{}
	for _, d := range diags {
		out = append(out, d.Code)
	}
	return out
}

// effective returns the settings that are not defaults, as "key = value".
func effective(s *Settings) []string {
	out := []string{}
	for _, v := range s.Merged().Effective() {
		if v.Origin.Scope != ScopeDefault {
			out = append(out, v.Key+" = "+string(v.JSON))
		}
	}
	return out
}

func TestLaterScopesOverride(t *testing.T) {
	b := newSandbox(t)
	system := b.write(filepath.Join(b.system, "settings.json"), `{"approvalMode": "plan", "toolDiscoveryTimeout": 1000, "coreTools": ["a"], "excludeTools": ["x"],
		"mcpServers": {"one": {"command": "s1"}, "two": {"command": "s2"}}, "shell": {"timeout": "1s"}}`)
	user := b.user("settings.yaml", "approvalMode: default\ncoreTools: [b, c]\nexcludeTools: [y, x]\nmcpServers:\n  Three.X: {command: s3}\n  one: {url: 'http://h/'}\n")
	project := b.projectFile(".toolreg/settings.yml", "approvalMode: auto-edit\nexcludeTools: [z]\n")
	extra := b.write(filepath.Join(b.home, "extra.yaml"), "toolDiscoveryTimeout: 2s\nmcpServers: {four: {command: s4}}\n")
	o := b.options()
	o.TrustProject = true
	o.Files = []string{"../../extra.yaml"}
	s := b.load(o)

	type server struct{ Name, Command, URL, Origin string }
	var servers []server
	for _, v := range s.Servers {
		servers = append(servers, server{v.Name, v.Command, v.URL, v.Origin.String()})
	}
	want := []server{
		{"one", "", "http://h/", user + ":6"}, // replaced as a whole, in its old position
		{"two", "s2", "", system + ":2"},
		{"Three.X", "s3", "", user + ":5"},
		{"four", "s4", "", extra + ":2"},
	}
	if diff := cmp.Diff(want, servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "c"}, s.CoreTools.Values()); diff != "" {
		t.Errorf("coreTools are replaced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x", "y", "z"}, s.ExcludeTools.Values()); diff != "" {
		t.Errorf("excludeTools unite (-want +got):\n%s", diff)
	}
	if s.ApprovalMode != "auto-edit" || s.ApprovalOrigin.String() != project+":1" {
		t.Errorf("approvalMode %s from %s, want auto-edit from the project", s.ApprovalMode, s.ApprovalOrigin)
	}
	if s.DiscoveryTimeout != 2*time.Second || s.ShellTimeout != time.Second {
		t.Errorf("timeouts %s and %s, want 2s and 1s", s.DiscoveryTimeout, s.ShellTimeout)
	}
}

func TestDefaults(t *testing.T) {
	b := newSandbox(t)
	s := b.load(b.options())
	if s.DiscoveryTimeout != 30*time.Second || s.ShellTimeout != 2*time.Minute || s.ApprovalMode != "default" || s.Conflicts != "overwrite" {
		t.Errorf("defaults: %s %s %s %s", s.DiscoveryTimeout, s.ShellTimeout, s.ApprovalMode, s.Conflicts)
	}
	if s.CoreTools.Set || s.Project != nil || s.ProjectRoot != b.project || s.Workspace != b.project {
		t.Errorf("coreTools %v, project %v, root %s, workspace %s", s.CoreTools, s.Project, s.ProjectRoot, s.Workspace)
	}
	if s.ShellBanned.Set || !strings.Contains(strings.Join(s.ShellBanned.Values(), " "), "sudo su doas") {
		t.Errorf("banned by default: %v", s.ShellBanned)
	}
	if s.PolicyDefaults["read"].Decision != "allow" || s.PolicyDefaults["other"].Decision != "ask" {
		t.Errorf("policy defaults: %v", s.PolicyDefaults)
	}
	if want := (Limits{10 << 20, 64 << 20, 16 << 20, 64 << 20, 10 << 20, 100_000, 1 << 30, 1 << 20, 16 << 10, 10000, 100}); s.Limits != want {
		t.Errorf("limits %+v, want %+v", s.Limits, want)
	}
}

// Prohibitions and hooks of a project only add to those of the user.
func TestProjectCannotRemoveGuards(t *testing.T) {
	for _, tt := range []struct{ user, project, file, want string }{
		{"", "[]", "", "sudo"},
		{"", "[curl]", "", "curl sudo"},
		{"[wget]", "[]", "", "wget"},
		{"[wget]", "[curl]", "", "wget curl"},
		{"[]", "[curl]", "", "curl"},
		{"", "[curl]", "[]", "curl"},
	} {
		b := newSandbox(t)
		o := b.options()
		o.TrustProject = true
		if tt.user != "" {
			b.user("settings.yaml", "shell: {banned: "+tt.user+"}\nhooks: {beforeCall: [{command: yours}]}")
		}
		b.projectFile(".toolreg/settings.yaml", "shell: {banned: "+tt.project+"}\nhooks: {beforeCall: [{command: theirs}], afterCall: []}")
		if tt.file != "" {
			o.Files = []string{b.projectFile("more.yaml", "shell: {banned: "+tt.file+"}")}
		}
		s := b.load(o)
		if got := strings.Join(s.ShellBanned.Values(), " "); got != tt.want && !(strings.HasSuffix(tt.want, "sudo") && strings.HasPrefix(got, tt.want+" su doas")) {
			t.Errorf("%+v: banned %s", tt, got)
		}
		shown, err := s.Merged().Find("shell.banned")
		if err != nil || len(shown) != 1 || !strings.Contains(string(shown[0].JSON), strings.Fields(tt.want)[0]) {
			t.Errorf("%+v: shown %v, %v", tt, shown, err)
		}
		var hooks []string
		for _, h := range s.Hooks {
			hooks = append(hooks, h.Event+" "+h.Command.Argv[0]+" "+h.Origin.Scope.String())
		}
		wanted := []string{"beforeCall yours user", "beforeCall theirs project"}
		if tt.user == "" {
			wanted = wanted[1:]
		}
		if !slices.Equal(hooks, wanted) {
			t.Errorf("%+v: hooks %q", tt, hooks)
		}
		shown, err = s.Merged().Find("hooks")
		if want := `{"beforeCall":[{"command":"yours"},{"command":"theirs"}],"afterCall":[]}`; tt.user != "" && (err != nil || string(shown[0].JSON) != want) {
			t.Errorf("hooks shown as %s, %v", shown[0].JSON, err)
		}
	}
}

// A project adds to an override of the person's field by field, and takes nothing away.
func TestProjectAddsToOverrides(t *testing.T) {
	for _, tt := range []struct{ own, project, want, ignored string }{
		{"{category: command}", "{category: read, description: d}", `{"category":"command","description":"d"}`, ".category"},
		{"{params: {p: {enum: [dev]}}}", "{params: {p: {enum: [dev, prod]}}}", `{"params":{"p":{"enum":["dev"]}}}`, ""},
		{"{params: {p: {enum: [dev, test]}}}", "{params: {p: {enum: [test]}, q: {const: 1}}}", `{"params":{"p":{"enum":["test"]},"q":{"const":1}}}`, ""},
		{"{params: {p: {enum: [dev]}}}", "{params: {p: {enum: [prod]}}}", `{"params":{"p":{"enum":["dev"]}}}`, ".params.p.enum"},
		{"{params: {p: {enum: [dev]}}}", "{params: {p: {hidden: true}}}", `{"params":{"p":{"enum":["dev"],"hidden":true}}}`, ""},
		{"{params: {p: {const: a}}}", "{params: {p: {const: b, name: q}}}", `{"params":{"p":{"const":"a"}}}`, ".params.p"},
		{"{params: {p: {hidden: true, default: a}}}", "{params: {p: {hidden: false}}}", `{"params":{"p":{"hidden":true,"default":"a"}}}`, ".params.p"},
		{"{params: {p: {default: a}}}", "{params: {p: {default: b, const: c, description: d}}}", `{"params":{"p":{"default":"a","description":"d"}}}`, ".params.p.default .params.p.const"},
		{"{params: {p: {name: q}}}", "{params: {p: {name: r, const: c}}}", `{"params":{"p":{"name":"q"}}}`, ".params.p.name .params.p.const"},
		{"{hidden: true}", "{name: other, hidden: false}", `{"hidden":true}`, "*"},
		{"{result: .a}", "{result: .b}", `{"result":".a"}`, ".result"},
		{"{name: a}", "{params: {p: {name: q}}}", `{"name":"a","params":{"p":{"name":"q"}}}`, ""},
	} {
		b := newSandbox(t)
		o := b.options()
		o.TrustProject = true
		user := b.user("settings.yaml", "overrides:\n  \" x@latest\": "+tt.own+"\n")
		project := b.projectFile(".toolreg/settings.yaml", "\noverrides:\n  x: "+tt.project+"\n")
		s, diags, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		n := s.RawNamed("overrides")
		if len(n) != 1 || string(n[0].JSON()) != tt.want || n[0].Origin.Name != user {
			t.Errorf("%s with %s: %s from %s, want %s", tt.own, tt.project, n[0].JSON(), n[0].Origin, tt.want)
		}
		var ignored []string
		for _, d := range diags {
			if rest, ok := strings.CutPrefix(d.Message, project+":3: overrides.x"); ok && strings.Contains(rest, "because "+user+":2 overrides it") {
				pointer, _, _ := strings.Cut(rest, " ")
				if pointer == "" {
					pointer = "*"
				}
				ignored = append(ignored, pointer)
			}
		}
		if got := strings.Join(ignored, " "); got != tt.ignored {
			t.Errorf("%s with %s: %q ignored, want %q in %+v", tt.own, tt.project, got, tt.ignored, diags)
		}
		if tt.want == `{"category":"command","description":"d"}` && (n[0].At("/description").Name != project || n[0].At("/category").Name != user) {
			t.Errorf("fields are said to be from %s and %s", n[0].At("/description"), n[0].At("/category"))
		}
	}
}

// flat and nested are the same configuration for the two generations of the Gemini
// CLI, with keys that have no meaning in toolreg.
const (
	flat = `{
	// a comment, as that program allows
	"theme": "GitHub", "autoAccept": true, "contextFileName": "GEMINI.md",
	"toolDiscoveryCommand": "npm run discover --silent",
	"toolCallCommand": "npm run call --silent",
	"mcpServerCommand": "node server.js",
	"coreTools": ["ReadFileTool", "run_shell_command(git status)"],
	"excludeTools": ["run_shell_command(rm)"],
	"allowedTools": ["glob"],
	"allowMCPServers": ["git*", "mcp"], "excludeMCPServers": ["gitlab"],
	"mcpServers": {
		"github": {"httpUrl": "https://h/mcp", "headers": {"Authorization": "Bearer $TOKEN"}, "timeout": 5000, "trust": true},
		"gitlab": {"command": "gl"}, "other": {"url": "http://localhost:1/sse", "includeTools": []},
	},
}`
	nested = `{
	"$schema": "https://example.org/x.json",
	"general": {"preferredEditor": "vim"}, "ui": {"theme": "GitHub"}, "security": {"auth": {"selectedType": "oauth"}},
	"tools": {"discoveryCommand": "npm run discover --silent", "callCommand": "npm run call --silent", "sandbox": "docker",
		"core": ["ReadFileTool", "run_shell_command(git status)"], "exclude": ["run_shell_command(rm)"], "allowed": ["glob"]},
	"mcp": {"serverCommand": "node server.js", "allowed": ["git*", "mcp"], "excluded": ["gitlab"]},
	"mcpServers": {
		"github": {"httpUrl": "https://h/mcp", "headers": {"Authorization": "Bearer $TOKEN"}, "timeout": 5000, "trust": true},
		"gitlab": {"command": "gl"}, "other": {"url": "http://localhost:1/sse", "includeTools": []}
	}
}`
)

func TestBothGenerationsOfGeminiSettings(t *testing.T) {
	var first []string
	for _, text := range []string{flat, nested} {
		b := newSandbox(t)
		b.user("settings.json", text)
		s, diags, err := Load(b.options())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"foreign_setting"}, codes(diags)); diff != "" {
			t.Errorf("diagnostics (-want +got):\n%s\n%v", diff, diags)
		}
		if first == nil {
			first = effective(s)
		}
		if diff := cmp.Diff(first, effective(s)); diff != "" {
			t.Errorf("the results differ (-flat +nested):\n%s", diff)
		}
		checkGemini(t, s)
	}
}

func checkGemini(t *testing.T, s *Settings) {
	t.Helper()
	if diff := cmp.Diff([]string{"npm", "run", "discover", "--silent"}, s.DiscoveryCommand.Argv); diff != "" {
		t.Errorf("discovery command (-want +got):\n%s", diff)
	}
	connected := []string{}
	for _, server := range s.Servers {
		if server.Excluded == nil {
			connected = append(connected, server.Name)
		}
	}
	if diff := cmp.Diff([]string{"github", "mcp"}, connected); diff != "" {
		t.Errorf("servers that may be connected (-want +got):\n%s", diff)
	}
	github := s.Servers[0]
	if github.Timeout != 5*time.Second || github.ConnectTimeout != 30*time.Second || !github.Trust || github.Protocol != "auto" {
		t.Errorf("github: %+v", github)
	}
	if other := s.Servers[2]; !other.IncludeTools.Set || len(other.IncludeTools.Entries) != 0 || s.Servers[1].IncludeTools.Set {
		t.Errorf("an empty includeTools is not an absent one: %+v", other.IncludeTools)
	}
	if mcp := s.Servers[3]; mcp.Command != "node" || len(mcp.Args) != 1 {
		t.Errorf("mcpServerCommand: %+v", mcp)
	}
}

func TestFormatsAgree(t *testing.T) {
	yaml := `
mcpServers:
  My.Server: {command: npx, args: [-y, "@x/y"], env: {GITHUB_Token: $T, B: "5"}, timeout: 1m}
excludeTools: ["mcp_*"]
policy:
  rules: [{tool: edit, decision: ask, reason: Häh}]
  defaults: {write: deny}
composites: {"git*": {retries: 1e0, maxOutput: 12345678901234567890, b: [true, null]}}
context: {channel: dev}
`
	json := `{"mcpServers": {"My.Server": {"command": "npx", "args": ["-y", "@x/y"], "env": {"GITHUB_Token": "$T", "B": "5"}, "timeout": "1m"}},
"excludeTools": ["mcp_*"], "policy": {"rules": [{"tool": "edit", "decision": "ask", "reason": "H\u00e4h"}], "defaults": {"write": "deny"}},
"composites": {"git*": {"retries": 1e0, "maxOutput": 12345678901234567890, "b": [true, null]}}, "context": {"channel": "dev"}}`
	a, c := newSandbox(t), newSandbox(t)
	a.user("settings.yaml", yaml)
	c.user("settings.json", json)
	want := []string{
		`mcpServers.My.Server = {"command":"npx","args":["-y","@x/y"],"env":{"GITHUB_Token":"$T","B":"***"},"timeout":"1m"}`,
		`composites.git* = {"retries":1e0,"maxOutput":12345678901234567890,"b":[true,null]}`,
		`excludeTools = ["mcp_*"]`,
		`context.channel = "dev"`,
		`policy.rules = [{"tool":"edit","decision":"ask","reason":"Häh"}]`,
		`policy.defaults.write = "deny"`,
	}
	for name, b := range map[string]*sandbox{"yaml": a, "json": c} {
		s := b.load(b.options())
		if diff := cmp.Diff(want, effective(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := s.RawNamed("composites"); len(got) != 1 || got[0].Name != "git*" || !strings.Contains(string(got[0].JSON()), "12345678901234567890") {
			t.Errorf("%s: RawNamed: %v", name, got)
		}
	}
}

func TestUnknownKeysSuggestNearest(t *testing.T) {
	tests := []struct{ name, text, message, hint string }{
		{"at the top", "toolDiscoveryComand: ./a", `1:1: unknown setting "toolDiscoveryComand"`, `did you mean "toolDiscoveryCommand"?`},
		{"a server in VS Code's form", "servers:\n  a: {command: x}", `2:3: unknown setting "servers.a"`,
			"an MCP server goes under mcpServers; toolreg servers add-json reads the forms of other programs"},
		{"a server at the top", "a: {url: 'http://h'}", `1:1: unknown setting "a"`,
			"an MCP server goes under mcpServers; toolreg servers add-json reads the forms of other programs"},
		{"in a group", "tools:\n  coer: [a]", `2:3: unknown setting "tools.coer"`, `did you mean "tools.core"?`},
		{"in a server", "mcpServers:\n  s: {command: x, ars: [a]}", `2:19: unknown setting "mcpServers.s.ars"`, `did you mean "mcpServers.s.args"?`},
		{"dotted", "tools.allow: [a]", `1:1: unknown setting "tools.allow"`, `write it nested, as in tools: {allow: …}`},
		{"nothing near", "zzzzzzzzzz: 1", `1:1: unknown setting "zzzzzzzzzz"`, ""},
		{"control characters", "\"x\\e[2J\": 1", `1:1: unknown setting "x\x1b[2J"`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newSandbox(t)
			path := b.user("settings.yaml", test.text)
			_, diags, err := Load(b.options())
			if err != nil {
				t.Fatal(err)
			}
			want := []registry.Diagnostic{{Severity: registry.SeverityWarning, Code: "unknown_setting", Message: path + ":" + test.message, Hint: test.hint}}
			if diff := cmp.Diff(want, diags); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakesOfAllScopesAreReportedTogether(t *testing.T) {
	b := newSandbox(t)
	system := b.write(filepath.Join(b.system, "settings.yaml"), "inheritEnv: 1\n")
	user := b.user("settings.json", `{"coreTools": 1}`)
	o := b.options()
	o.Files = []string{"missing.yaml"}
	_, _, err := Load(o)
	var e *document.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want an *document.Error", err)
	}
	want := system + ":1:13: inheritEnv: expected true or false, got number\n" +
		user + ":1:15: coreTools: expected a list of strings, got number\n" +
		filepath.Join(b.project, "missing.yaml") + ": no such file"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestTwoFormatsInOneFolderAreAnError(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "")
	json := b.user("settings.json", "{}")
	_, _, err := Load(b.options())
	if want := json + ": exists next to settings.yaml (keep one of them)"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestUnreadableSettingsFiles(t *testing.T) {
	b := newSandbox(t)
	user := filepath.Join(b.home, ".config", "toolreg", "settings.yaml")
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(b.options()); err == nil || err.Error() != user+": not a regular file" {
		t.Errorf("a folder as settings: %v", err)
	}
	o := b.options()
	o.NoUser = true
	o.Files = []string{b.write(filepath.Join(b.home, "big.yaml"), strings.Repeat("#", 2<<20))}
	if _, _, err := Load(o); err == nil || err.Error() != o.Files[0]+": is larger than 1 MiB" {
		t.Errorf("a large file: %v", err)
	}
}

func TestWorldWritableUserSettingsAreAnError(t *testing.T) {
	b := newSandbox(t)
	user := b.user("settings.yaml", "inheritEnv: true\n")
	if err := os.Chmod(user, 0o666); err != nil {
		t.Fatal(err)
	}
	_, _, err := Load(b.options())
	if want := user + ": is not safe to use: it is writable by everybody"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Who can write to the folder can replace or remove the file in it.
func TestWorldWritableFolderOfUserSettingsIsAnError(t *testing.T) {
	b := newSandbox(t)
	dir := filepath.Dir(b.user("settings.yaml", "approvalMode: plan\n"))
	want := dir + ": is not safe to use: it is writable by everybody"
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, remove := range []string{"none", "settings.yaml"} {
		if err := os.RemoveAll(filepath.Join(dir, remove)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(b.options()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestUserFolderFollowsXDG(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "approvalMode: plan\n")
	b.write(filepath.Join(b.home, "xdg", "toolreg", "settings.yaml"), "approvalMode: yolo\n")
	if s := b.load(b.options("XDG_CONFIG_HOME=" + filepath.Join(b.home, "xdg"))); s.ApprovalMode != "yolo" {
		t.Errorf("approvalMode %s, want that of XDG_CONFIG_HOME", s.ApprovalMode)
	}
	if s := b.load(b.options("XDG_CONFIG_HOME=relative")); s.ApprovalMode != "plan" {
		t.Errorf("approvalMode %s, want that of ~/.config, because a relative XDG_CONFIG_HOME is ignored", s.ApprovalMode)
	}
	o := b.options()
	o.NoUser = true
	if s := b.load(o); s.ApprovalMode != "default" {
		t.Errorf("approvalMode %s, want the default without user settings", s.ApprovalMode)
	}
}

func TestRulesOfAllScopesAreCombined(t *testing.T) {
	b := newSandbox(t)
	b.write(filepath.Join(b.system, "settings.yaml"), "policy: {rules: [{tool: s, decision: deny}]}\n")
	b.user("settings.yaml", "policy: {rules: [{tool: u1, decision: ask}, {tool: u2, decision: allow, reason: mine}]}\n")
	one := b.write(filepath.Join(b.home, "one.yaml"), "policy: {rules: [{tool: f1, decision: ask}]}\n")
	two := b.write(filepath.Join(b.home, "two.yaml"), "policy: {rules: [{tool: f2, decision: ask}]}\n")
	o := b.options()
	o.Files = []string{one, two}
	s := b.load(o)
	var got []string
	for _, r := range s.Rules {
		got = append(got, r.Tool+" "+r.Decision)
	}
	if diff := cmp.Diff([]string{"f2 ask", "f1 ask", "s deny", "u1 ask", "u2 allow"}, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestDeniedPermissionsHaveOrigin(t *testing.T) {
	b := newSandbox(t)
	user := b.user("settings.yaml", "permissions:\n  shell: false\n  network: true\n")
	s := b.load(b.options())
	if diff := cmp.Diff(map[string]bool{"shell": false, "network": true}, s.Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if got := s.DeniedBy["shell"].String(); got != user+":2" || len(s.DeniedBy) != 1 {
		t.Errorf("denied by %v", s.DeniedBy)
	}
}

func TestWorkspaceRoot(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "workspace: {root: '$SUB/x'}\n")
	if s := b.load(b.options("SUB=sub")); s.Workspace != filepath.Join(b.project, "sub", "x") {
		t.Errorf("workspace %s", s.Workspace)
	}
	if _, _, err := Load(b.options()); err == nil || !strings.Contains(err.Error(), "settings.yaml:1:13: workspace.root: $SUB is not set") {
		t.Errorf("error %v", err)
	}
}

func TestRootFlag(t *testing.T) {
	b := newSandbox(t)
	b.projectFile("sub/.toolreg/settings.yaml", "approvalMode: plan\n")
	o := b.options()
	o.Root, o.TrustProject = "sub", true
	if s := b.load(o); s.ProjectRoot != filepath.Join(b.project, "sub") || s.ApprovalMode != "plan" {
		t.Errorf("root %s, approvalMode %s", s.ProjectRoot, s.ApprovalMode)
	}
	o.Root = "missing"
	_, _, err := Load(o)
	if want := filepath.Join(b.project, "missing") + ": not a project root: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestHooks(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", `hooks:
  onDiagnostic: [{command: z, timeout: 1m}]
  beforeCall: [{command: "a 'b c'"}, {command: [x, y], tools: [git_*], timeout: 1500}]
  afterCall: null
  BeforeTool: [{matcher: "*"}]
`)
	var got []string
	for _, h := range b.load(b.options()).Hooks {
		got = append(got, fmt.Sprintf("%s %q %q %s line %d", h.Event, h.Command.Argv, h.Tools, h.Timeout, h.Origin.Line))
	}
	want := []string{
		`beforeCall ["a" "b c"] [] 10s line 3`,
		`beforeCall ["x" "y"] ["git_*"] 1.5s line 3`,
		`onDiagnostic ["z"] [] 1m0s line 2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}
