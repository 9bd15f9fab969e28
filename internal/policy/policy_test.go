package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/registry"
)

func builtinTool(name string, category registry.Category, subject registry.Subject) *registry.Tool {
	return &registry.Tool{
		Definition: registry.Definition{Name: name, Source: registry.SourceBuiltin, Category: category},
		Behavior:   registry.Behavior{Subject: func(registry.Call) (registry.Subject, error) { return subject, nil }},
	}
}

func pathTool(name string, category registry.Category, paths ...string) *registry.Tool {
	return builtinTool(name, category, registry.Subject{Paths: paths})
}

func mcpTool(server, tool, name string) *registry.Tool {
	return &registry.Tool{
		Definition: registry.Definition{Name: name, Source: registry.MCPPrefix + server, Server: server, ServerTool: tool, Category: registry.CategoryRead,
			Annotations: []byte(`{"readOnlyHint":true}`)},
		Identity: []byte(`{"command":["srv"]}`),
	}
}

func trusted(t *registry.Tool) *registry.Tool { t.Trusted = true; return t }

// aliases returns the built-in tool for an alias in these tests.
func aliases(name string) string {
	return map[string]string{"read": "read_file", "ReadFileTool": "read_file", "read_file": "read_file", "write_file": "write_file", "edit": "edit", "replace": "edit"}[name]
}

func TestDecide(t *testing.T) {
	read, write := pathTool("read_file", registry.CategoryRead, "a.txt"), pathTool("write_file", registry.CategoryWrite, "src/a.go")
	command := &registry.Tool{Definition: registry.Definition{Name: "deploy", Source: registry.SourceCommand}}
	plugin := &registry.Tool{Definition: registry.Definition{Name: "p", Source: "plugin:x", Plugin: "x", Category: registry.CategoryWrite}}
	none := &registry.Tool{Definition: registry.Definition{Name: "n", Source: "plugin:x"}}
	bad := builtinTool("bad", registry.CategoryRead, registry.Subject{})
	bad.Subject = func(registry.Call) (registry.Subject, error) { return registry.Subject{}, errors.New("no such path") }
	wild := builtinTool("wild", registry.CategoryRead, registry.Subject{})
	wild.Subject = func(registry.Call) (registry.Subject, error) { panic("boom") }
	echo := mcpTool("srv", "echo", "echo")

	versioned := func(version string) *registry.Tool {
		return &registry.Tool{Definition: registry.Definition{Name: "p", Source: "plugin:x", Plugin: "x", Version: version}}
	}
	rule := func(d Decision, r Rule) []Rule { r.Decision, r.Origin = d, "s.yaml:1"; return []Rule{r} }
	tests := []struct {
		name   string
		policy Policy
		tool   *registry.Tool
		want   Decision
		origin string
	}{
		// defaults
		{"read is allowed", Policy{}, read, Allow, "default"},
		{"write asks", Policy{}, write, Ask, "default"},
		{"network asks", Policy{}, pathTool("web_fetch", registry.CategoryNetwork), Ask, "default"},
		{"no category asks", Policy{}, none, Ask, "default"},
		{"an unknown category asks", Policy{}, pathTool("x", "harmless"), Ask, "default"},
		{"discovered tools are allowed", Policy{}, command, Allow, "default"},
		{"servers ask, even if they claim to read only", Policy{}, echo, Ask, "default"},
		{"trusted servers are allowed", Policy{}, trusted(mcpTool("srv", "echo", "echo")), Allow, "default"},
		{"a default by category", Policy{Defaults: map[registry.Category]Rule{"write": {Decision: Allow, Origin: "s.yaml:9"}}}, write, Allow, "s.yaml:9"},
		{"a default never loosens servers", Policy{Defaults: map[registry.Category]Rule{"other": {Decision: Allow, Origin: "s.yaml:9"}}}, echo, Ask, "default"},
		{"a default may tighten servers", Policy{Defaults: map[registry.Category]Rule{"other": {Decision: Deny, Origin: "s.yaml:9"}}}, echo, Deny, "s.yaml:9"},
		{"a default may tighten discovered tools", Policy{Defaults: map[registry.Category]Rule{"other": {Decision: Ask, Origin: "s.yaml:9"}}}, command, Ask, "s.yaml:9"},
		{"a subject that fails denies", Policy{}, bad, Deny, "default"},
		{"a subject that panics denies", Policy{}, wild, Deny, "default"},
		{"a subject that fails denies in yolo too", Policy{Mode: ModeYolo}, bad, Deny, "default"},

		// modes
		{"plan keeps reading", Policy{Mode: ModePlan}, read, Allow, "default"},
		{"plan denies writing", Policy{Mode: ModePlan, ModeOrigin: "flag --approval-mode"}, write, Deny, "flag --approval-mode"},
		{"plan denies what a rule allows", Policy{Mode: ModePlan, Rules: rule(Allow, Rule{})}, write, Deny, "approvalMode"},
		{"plan denies servers that claim to read", Policy{Mode: ModePlan}, echo, Deny, "approvalMode"},
		{"plan keeps trusted servers that read", Policy{Mode: ModePlan}, trusted(mcpTool("srv", "echo", "echo")), Allow, "default"},
		{"auto-edit allows edits", Policy{Mode: ModeAutoEdit}, write, Allow, "approvalMode"},
		{"auto-edit allows the todo list", Policy{Mode: ModeAutoEdit}, todoTool(), Allow, "approvalMode"},
		{"auto-edit stays inside", Policy{Mode: ModeAutoEdit}, pathTool("write_file", registry.CategoryWrite, "../x"), Ask, "default"},
		{"auto-edit excludes absolute paths", Policy{Mode: ModeAutoEdit}, pathTool("write_file", registry.CategoryWrite, "/etc/passwd"), Ask, "default"},
		{"auto-edit needs every path inside", Policy{Mode: ModeAutoEdit}, pathTool("apply_patch", registry.CategoryWrite, "a", "a/../../b"), Ask, "default"},
		{"auto-edit is for built-in tools", Policy{Mode: ModeAutoEdit}, plugin, Ask, "default"},
		{"auto-edit obeys rules", Policy{Mode: ModeAutoEdit, Rules: rule(Deny, Rule{Path: "src"})}, write, Deny, "s.yaml:1"},
		{"yolo allows what asks", Policy{Mode: ModeYolo, ModeOrigin: "flag --yes"}, echo, Allow, "flag --yes"},
		{"yolo keeps what is denied", Policy{Mode: ModeYolo, Rules: rule(Deny, Rule{Tool: "echo"})}, echo, Deny, "s.yaml:1"},

		// rules: order and fields
		{"the first rule wins", Policy{Rules: append(rule(Allow, Rule{Tool: "write_file"}), Rule{Tool: "write_file", Decision: Deny})}, write, Allow, "s.yaml:1"},
		{"a rule may ask about reading", Policy{Rules: rule(Ask, Rule{Category: "read"})}, read, Ask, "s.yaml:1"},
		{"by category", Policy{Rules: rule(Allow, Rule{Category: "write"})}, write, Allow, "s.yaml:1"},
		{"a claimed category allows nothing", Policy{Rules: rule(Allow, Rule{Category: "read"})}, echo, Ask, "default"},
		{"a claimed category may deny", Policy{Rules: rule(Deny, Rule{Category: "read"})}, echo, Deny, "s.yaml:1"},
		{"by source", Policy{Rules: rule(Allow, Rule{Source: "mcp:*"})}, echo, Allow, "s.yaml:1"},
		{"by server", Policy{Rules: rule(Allow, Rule{Server: "srv"})}, echo, Allow, "s.yaml:1"},
		{"a server's rule is for its tools", Policy{Rules: rule(Allow, Rule{Server: "*"})}, write, Ask, "default"},
		{"a rule on commands is for commands", Policy{Rules: rule(Allow, Rule{Tool: "write_file", Command: "ls"})}, write, Ask, "default"},

		// names
		{"allow by alias", Policy{Rules: rule(Allow, Rule{Tool: "replace"})}, pathTool("edit", registry.CategoryWrite, "a"), Allow, "s.yaml:1"},
		{"allow by glob", Policy{Rules: rule(Allow, Rule{Tool: "write_*"})}, write, Allow, "s.yaml:1"},
		{"allow is case-sensitive", Policy{Rules: rule(Allow, Rule{Tool: "Write_File"})}, write, Ask, "default"},
		{"an allowed name does not allow longer ones", Policy{Rules: rule(Allow, Rule{Tool: "echo"})}, mcpTool("srv", "echoes", "echoes"), Ask, "default"},
		{"a denied name does not deny longer ones", Policy{Rules: rule(Deny, Rule{Tool: "echo"})}, mcpTool("srv", "echoes", "echoes"), Ask, "default"},
		{"allow a version of a tool", Policy{Rules: rule(Allow, Rule{Tool: "p@1.2"})}, versioned("1.2"), Allow, "s.yaml:1"},
		{"allow no other version", Policy{Rules: rule(Allow, Rule{Tool: "p@1.2"})}, versioned("1.3"), Ask, "default"},
		{"allow every version", Policy{Rules: rule(Allow, Rule{Tool: "p"})}, versioned("1.3"), Allow, "s.yaml:1"},
		{"deny is not case-sensitive", Policy{Rules: rule(Deny, Rule{Tool: "Write_File"})}, write, Deny, "s.yaml:1"},
		{"deny by alias", Policy{Rules: rule(Deny, Rule{Tool: "ReadFileTool"})}, read, Deny, "s.yaml:1"},
		{"a server's read_file is not the built-in one", Policy{Rules: rule(Allow, Rule{Tool: "read_file"})}, mcpTool("evil", "read_file", "read_file"), Ask, "default"},
		{"a server's tool with the name of an alias is not the built-in one", Policy{Rules: rule(Allow, Rule{Tool: "read"})}, mcpTool("evil", "read", "read"), Ask, "default"},
		{"allow a server's tool by registered name", Policy{Rules: rule(Allow, Rule{Tool: "echo"})}, echo, Allow, "s.yaml:1"},
		{"not by its original name if that is taken", Policy{Rules: rule(Allow, Rule{Tool: "echo"})}, mcpTool("b", "echo", "b__echo"), Ask, "default"},
		{"but by server__tool", Policy{Rules: rule(Allow, Rule{Tool: "b__echo"})}, mcpTool("b", "echo", "b__echo"), Allow, "s.yaml:1"},
		{"server__tool also matches a tool with a plain name", Policy{Rules: rule(Allow, Rule{Tool: "srv__echo"})}, echo, Allow, "s.yaml:1"},
		{"by a glob over a server", Policy{Rules: rule(Allow, Rule{Tool: "srv__*"})}, echo, Allow, "s.yaml:1"},
		{"a tool cannot pose as another server's", Policy{Rules: rule(Allow, Rule{Tool: "good__echo"})}, mcpTool("evil", "good__echo", "good__echo"), Ask, "default"},
		{"a name that splits in two ways is ambiguous", Policy{Rules: rule(Allow, Rule{Tool: "a__b__c"})}, mcpTool("a", "b__c", "a__b__c"), Ask, "default"},
		{"an underscore at the end of the server is ambiguous", Policy{Rules: rule(Allow, Rule{Tool: "a___b"})}, mcpTool("a_", "b", "a___b"), Ask, "default"},
		{"an underscore at the start of the tool is ambiguous", Policy{Rules: rule(Allow, Rule{Tool: "a___b"})}, mcpTool("a", "_b", "a___b"), Ask, "default"},
		{"an underscore at the start of the tool is ambiguous, plain name", Policy{Rules: rule(Allow, Rule{Tool: "a___b"})}, mcpTool("a", "_b", "_b"), Ask, "default"},
		{"two underscores in the server are ambiguous", Policy{Rules: rule(Allow, Rule{Tool: "a__b__c"})}, mcpTool("a__b", "c", "c"), Ask, "default"},
		{"a numbered name means its tool", Policy{Rules: rule(Allow, Rule{Tool: "srv__echo_2"})}, mcpTool("srv", "echo", "srv__echo_2"), Allow, "s.yaml:1"},
		{"another name with the same beginning does not", Policy{Rules: rule(Allow, Rule{Tool: "srv__echoes"})}, mcpTool("srv", "echo", "srv__echoes"), Ask, "default"},
		{"an ambiguous name may deny", Policy{Rules: rule(Deny, Rule{Tool: "a___b"})}, mcpTool("a_", "b", "a___b"), Deny, "s.yaml:1"},
		{"server and tool together are unambiguous", Policy{Rules: rule(Allow, Rule{Server: "a", Tool: "b__c"})}, mcpTool("a", "b__c", "a__b__c"), Allow, "s.yaml:1"},
		{"deny by the name that the server gives it", Policy{Rules: rule(Deny, Rule{Tool: "Echo"})}, mcpTool("b", "echo", "b__echo"), Deny, "s.yaml:1"},
		{"deny by server__tool, original spelling", Policy{Rules: rule(Deny, Rule{Tool: "my srv__do it"})}, mcpTool("my srv", "do it", "do_it"), Deny, "s.yaml:1"},
		{"deny by server__tool, valid spelling", Policy{Rules: rule(Deny, Rule{Tool: "my_srv__do_it"})}, mcpTool("my srv", "do it", "do_it"), Deny, "s.yaml:1"},

		// paths
		{"allow a path", Policy{Rules: rule(Allow, Rule{Path: "src/**"})}, write, Allow, "s.yaml:1"},
		{"allow must match every path", Policy{Rules: rule(Allow, Rule{Path: "src/**"})}, pathTool("apply_patch", registry.CategoryWrite, "src/a", "b"), Ask, "default"},
		{"allow needs a path", Policy{Rules: rule(Allow, Rule{Path: "**"})}, pathTool("x", registry.CategoryWrite), Ask, "default"},
		{"not a longer name with the same prefix", Policy{Rules: rule(Allow, Rule{Path: "src/**"})}, pathTool("write_file", registry.CategoryWrite, "src-evil/a"), Ask, "default"},
		{"not outside the workspace", Policy{Rules: rule(Allow, Rule{Path: "src/**"})}, pathTool("write_file", registry.CategoryWrite, "src/../../x"), Ask, "default"},
		{"deny any path", Policy{Rules: rule(Deny, Rule{Path: "**/.env"})}, pathTool("read_file", registry.CategoryRead, "a/b/.ENV"), Deny, "s.yaml:1"},
		{"deny a folder and what is in it", Policy{Rules: rule(Deny, Rule{Path: "secrets"})}, pathTool("read_file", registry.CategoryRead, "secrets/a/b"), Deny, "s.yaml:1"},
		{"deny through dots", Policy{Rules: rule(Deny, Rule{Path: "secrets/**"})}, pathTool("read_file", registry.CategoryRead, "x/../secrets/a"), Deny, "s.yaml:1"},
		{"deny by absolute path", Policy{Workspace: "/w", Rules: rule(Deny, Rule{Path: "/w/secrets/**"})}, pathTool("read_file", registry.CategoryRead, "secrets/a"), Deny, "s.yaml:1"},
		{"a broken glob denies", Policy{Rules: rule(Deny, Rule{Path: "[a"})}, write, Deny, "s.yaml:1"},
		{"a broken glob allows nothing", Policy{Rules: rule(Allow, Rule{Path: "[a"})}, write, Ask, "default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.policy
			p.Canonical = aliases
			v := p.Decide(t.Context(), tt.tool, registry.Call{})
			if v.Decision != tt.want || v.Origin != tt.origin || v.Reason == "" {
				t.Errorf("got %s from %q (%s), want %s from %q", v.Decision, v.Origin, v.Reason, tt.want, tt.origin)
			}
		})
	}
}

func TestDecideGuarded(t *testing.T) {
	guarded := func(p string) bool { return strings.HasPrefix(strings.ToLower(p), ".git/") }
	hook := pathTool("write_file", registry.CategoryWrite, "a", ".GIT/hooks/pre-commit")
	a := &Approvals{Dir: stateDir(t), Project: "/p"}
	if err := a.Remember(t.Context(), hook, Scope{Kind: ScopeEdits}); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Policy{
		"auto-edit": {Mode: ModeAutoEdit},
		"rule":      {Rules: []Rule{{Tool: "write_file", Decision: Allow}}},
		"approval":  {},
	} {
		p.Guarded, p.Approvals = guarded, a
		v := p.Decide(t.Context(), hook, registry.Call{})
		if v.Decision != Ask || !strings.Contains(v.Reason, "hooks") || len(v.Scopes) != 0 || !v.Firm {
			t.Errorf("%s: %+v", name, v)
		}
	}
	p := Policy{Guarded: guarded}
	if v := p.Decide(t.Context(), pathTool("read_file", registry.CategoryRead, ".git/config"), registry.Call{}); v.Decision != Allow {
		t.Errorf("reading a guarded file: %+v", v)
	}
}

// Whatever allows all edits does not allow new hidden files; a rule on their path does.
func TestDecideNewHidden(t *testing.T) {
	hidden := func(p string) bool { return strings.HasPrefix(p, ".") }
	write := pathTool("write_file", registry.CategoryWrite, "a", ".foorc")
	a := &Approvals{Dir: stateDir(t), Project: "/p"}
	if err := a.Remember(t.Context(), write, Scope{Kind: ScopeEdits}); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Policy{
		"auto-edit": {Mode: ModeAutoEdit},
		"rule":      {Rules: []Rule{{Tool: "write_file", Decision: Allow}}},
		"approval":  {},
	} {
		p.NewHidden, p.Approvals = hidden, a
		v := p.Decide(t.Context(), write, registry.Call{})
		if v.Decision != Ask || !strings.Contains(v.Reason, ".foorc") || len(v.Scopes) != 0 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	p := Policy{NewHidden: hidden, Rules: []Rule{{Tool: "write_file", Path: "{a,.foorc}", Decision: Allow}}}
	if v := p.Decide(t.Context(), write, registry.Call{}); v.Decision != Allow {
		t.Errorf("with a rule on the path: %+v", v)
	}
	p.Rules = []Rule{{Path: ".foorc", Decision: Allow}, {Command: "echo", Decision: Allow}}
	if v := p.Decide(t.Context(), shellTool("echo x > .foorc"), registry.Call{}); v.Decision != Allow {
		t.Errorf("a command with a rule, and a redirection with one on its path: %+v", v)
	}
}

func TestParseEntry(t *testing.T) {
	tests := []struct {
		in   string
		want Entry
		err  string
	}{
		{"read_file", Entry{Tool: "read_file"}, ""},
		{" mcp_* ", Entry{Tool: "mcp_*"}, ""},
		{"run_shell_command(git status)", Entry{"run_shell_command", "git status"}, ""},
		{"ShellTool( git )", Entry{"ShellTool", "git"}, ""},
		{"Bash(npm run test:*)", Entry{"Bash", "npm run test"}, ""},
		{"Bash(*)", Entry{Tool: "Bash"}, ""},
		{"run_shell_command(echo 'a b')", Entry{"run_shell_command", "echo 'a b'"}, ""},
		{"", Entry{}, "does not name a tool"},
		{"(ls)", Entry{}, "does not name a tool"},
		{"x()", Entry{}, "empty parentheses"},
		{"x(ls", Entry{}, "closing parenthesis"},
		{"x)", Entry{}, "opening one"},
		{"x(ls; id)", Entry{}, "plain words"},
		{"x(ls | id)", Entry{}, "plain words"},
		{"x($y)", Entry{}, "plain words"},
		{"x(ls > y)", Entry{}, "plain words"},
		{"x(A=1 ls)", Entry{}, "plain words"},
	}
	for _, tt := range tests {
		got, err := ParseEntry(tt.in)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.in, diff)
		}
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: error %v, want %q", tt.in, err, tt.err)
		}
	}
}

func TestRuleValidate(t *testing.T) {
	for _, r := range []Rule{{Command: "ls; id"}, {Path: "[a"}, {Category: "reads"}, {Tool: "[a"}, {Server: "[a"}} {
		if r.Validate() == nil {
			t.Errorf("%+v passes", r)
		}
	}
	good := Rule{Tool: "a*", Server: "s", Category: "read", Command: "git status", Path: "src/{a,b}/**"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestParseModeAndDecision(t *testing.T) {
	for in, want := range map[string]Mode{"": ModeDefault, "plan": ModePlan, "autoEdit": ModeAutoEdit, "auto-edit": ModeAutoEdit, "yolo": ModeYolo} {
		if got, err := ParseMode(in); got != want || err != nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if m, err := ParseMode("YOLO"); err == nil || m != ModeDefault {
		t.Errorf("an unknown mode returns %q, %v", m, err)
	}
	for _, d := range []Decision{Ask, Allow, Deny} {
		if got, err := ParseDecision(d.String()); got != d || err != nil {
			t.Errorf("%s: %s, %v", d, got, err)
		}
	}
	if d, err := ParseDecision("yes"); err == nil || d != Deny {
		t.Errorf("an unknown decision returns %s, %v", d, err)
	}
}

func TestHosts(t *testing.T) {
	got := hostsOf([]string{"https://Example.com/a", "https://example.com:443/b", "http://example.com:8080", "http://[::1]:80/", "https://[::1]:300", "https://[::1:300]"})
	if diff := cmp.Diff([]string{"example.com", "http://example.com:8080", "http://[::1]", "[::1]:300", "[::1:300]"}, got); diff != "" {
		t.Error(diff)
	}
	if got := hostsOf([]string{"https://a/", "://"}); got != nil {
		t.Errorf("an invalid URL: %q", got)
	}
}

func TestInside(t *testing.T) {
	for p, want := range map[string]bool{"a": true, "a/b": true, ".": true, "a/..": true, "..": false, "../a": false, "a/../../b": false,
		"/a": false, `..\a`: false, `\\host\x`: false, `C:\x`: false, "..a": true} {
		if isInside(p) != want {
			t.Errorf("isInside(%q) = %t", p, !want)
		}
	}
}

func TestVerdictListsPaths(t *testing.T) {
	tool := &registry.Tool{Behavior: registry.Behavior{Subject: func(registry.Call) (registry.Subject, error) { return registry.Subject{Paths: []string{"a", "b"}}, nil }}}
	if got := (&Policy{}).Decide(t.Context(), tool, registry.Call{}).Paths; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the verdict names %q", got)
	}
}
