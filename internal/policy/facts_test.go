package policy

import (
	"encoding/json"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// TestNamesakes checks that a tool with the name of a built-in tool is decided at least as
// strictly as that, whatever it says of itself.
func TestNamesakes(t *testing.T) {
	read := registry.Namesake{Name: "read_file", Aliases: []string{"read"}, Category: registry.CategoryRead}
	write := registry.Namesake{Name: "write_file", Aliases: []string{"write"}, Category: registry.CategoryWrite}
	run := registry.Namesake{Name: shellToolName, Aliases: []string{"bash"}, Category: registry.CategoryCommand}
	fetch := registry.Namesake{Name: "web_fetch", Category: registry.CategoryNetwork}
	rule := func(r Rule) *Policy { return &Policy{Rules: []Rule{r}} }
	for _, tt := range []struct {
		what     string
		name     string
		namesake registry.Namesake
		policy   *Policy
		want     Decision
	}{
		{"the default of the built-in tool", "write_file", write, &Policy{}, Ask},
		{"an alias in another case", "WRITE", write, &Policy{}, Ask},
		{"a default that denies", "write_file", write, &Policy{Defaults: map[registry.Category]Rule{"write": {Decision: Deny}}}, Deny},
		{"a mode", "write_file", write, &Policy{Mode: ModePlan}, Deny},
		{"a name with a prefix", "command__write_file", write, &Policy{Mode: ModePlan}, Allow},
		{"a rule that denies a path", "read_file", read, rule(Rule{Tool: "read_file", Path: "secret/**", Decision: Deny}), Deny},
		{"a rule that asks about a path, by alias", "read_file", read, rule(Rule{Tool: "read", Path: "secret/**", Decision: Ask}), Ask},
		{"a rule about the category and a path", "read", read, rule(Rule{Category: "read", Path: "secret/**", Decision: Deny}), Deny},
		{"a rule that allows a path", "write_file", write, rule(Rule{Category: "write", Path: "**", Decision: Allow}), Ask},
		{"a rule that allows the name", "write_file", write, rule(Rule{Tool: "write_*", Decision: Allow}), Ask},
		{"a rule that allows the source", "write_file", write, rule(Rule{Source: "command", Decision: Allow}), Allow},
		{"a rule that denies a command", "bash", run, rule(Rule{Tool: shellToolName, Command: "git", Decision: Deny}), Deny},
		{"a rule that allows a command", "bash", run, rule(Rule{Tool: "bash", Command: "git", Decision: Allow}), Ask},
		{"a command, of a tool that runs none", "read_file", read, rule(Rule{Command: "git", Decision: Deny}), Allow},
		{"a path, of a tool that has none", "web_fetch", fetch, rule(Rule{Path: "secret/**", Decision: Deny}), Ask},
		{"a banned command", "bash", run, &Policy{Mode: ModeYolo, Banned: []registry.Entry{{Value: "rm"}}}, Deny},
		{"commands that the shell tool is limited to", "bash", run, &Policy{Mode: ModeYolo, Core: []Limit{{"tools.only", []Rule{{Command: "git"}}}}}, Deny},
		{"commands that the shell tool is limited to, of another tool", "process", registry.Namesake{Name: "process", Category: registry.CategoryCommand}, &Policy{Mode: ModeYolo, Core: []Limit{{"tools.only", []Rule{{Command: "git"}}}}}, Allow},
		{"a banned command, of another tool", "process", registry.Namesake{Name: "process", Category: registry.CategoryCommand}, &Policy{Mode: ModeYolo, Banned: []registry.Entry{{Value: "rm"}}}, Allow},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := tt.policy
			p.Canonical = func(name string) string {
				return map[string]string{"bash": shellToolName, shellToolName: shellToolName, "write_file": "write_file"}[name]
			}
			tool := &registry.Tool{Definition: registry.Definition{Name: tt.name, Source: registry.SourceCommand, Category: registry.CategoryRead, Namesakes: []registry.Namesake{tt.namesake}}}
			v := p.Decide(t.Context(), tool, registry.Call{Tool: tt.name, Params: json.RawMessage(`{}`)})
			if v.Decision != tt.want {
				t.Errorf("got %s (%s), want %s", v.Decision, v.Reason, tt.want)
			}
			if _, all := p.DeniesAll(t.Context(), tool); all != (tt.want == Deny) {
				t.Errorf("DeniesAll = %t", all)
			}
		})
	}
}

// TestLentNames checks that what allows by a name does not reach a tool that a project has
// given the name, and that a person's rules about her server do not reach one in its place.
func TestLentNames(t *testing.T) {
	const name = "pong"
	renamed := registry.Tool{Definition: registry.Definition{Name: name, Source: "mcp:gh", Server: "gh", ServerTool: "danger",
		Reshaped: &registry.Reshaped{Name: name, NameOfProject: true, Upstream: registry.Definition{Name: "danger", Source: "mcp:gh", Server: "gh", ServerTool: "danger"}}}}
	own := renamed
	own.Reshaped = &registry.Reshaped{Name: name, Upstream: renamed.Reshaped.Upstream}
	lent := registry.Tool{Standing: registry.Standing{Lent: true, OfProject: true}, Definition: registry.Definition{Name: name, Source: "plugin:theirs"}}
	replacing := registry.Tool{Standing: registry.Standing{OfProject: true, Replaces: true}, Definition: registry.Definition{Name: name, Source: "mcp:gh", Server: "gh", ServerTool: name}}
	for _, tt := range []struct {
		what string
		tool registry.Tool
		rule Rule
		want bool
	}{
		{"renamed by a project", renamed, Rule{Tool: name}, false},
		{"renamed by a project, glob", renamed, Rule{Tool: "p*"}, false},
		{"renamed by a project, with its server", renamed, Rule{Tool: name, Server: "gh"}, false},
		{"renamed by a project, qualified", renamed, Rule{Tool: "gh__pong"}, false},
		{"renamed by a project, by its own name", renamed, Rule{Tool: "danger"}, true},
		{"renamed by the person", own, Rule{Tool: name}, true},
		{"lent", lent, Rule{Tool: name, Personal: true}, false},
		{"lent, all tools", lent, Rule{Tool: "*", Personal: true}, true},
		{"lent, by its source", lent, Rule{Source: "plugin:theirs", Personal: true}, true},
		{"in the place of the person's server", replacing, Rule{Server: "gh", Personal: true}, false},
		{"in the place of the person's server, by name", replacing, Rule{Tool: name, Personal: true}, false},
		{"in the place of the person's server, by source", replacing, Rule{Source: "mcp:*", Personal: true}, false},
		{"in the place of the person's server, a rule of the project", replacing, Rule{Server: "gh"}, true},
	} {
		tt.rule.Decision = Allow
		p := &Policy{Rules: []Rule{tt.rule}, Defaults: map[registry.Category]Rule{"other": {Decision: Ask}}}
		v := p.Decide(t.Context(), &tt.tool, registry.Call{Tool: tt.tool.Name, Params: json.RawMessage(`{}`)})
		if got := v.Decision == Allow; got != tt.want {
			t.Errorf("%s: allowed = %t (%s)", tt.what, got, v.Reason)
		}
		p.Rules[0].Decision = Deny
		if v := p.Decide(t.Context(), &tt.tool, registry.Call{Tool: tt.tool.Name, Params: json.RawMessage(`{}`)}); tt.want && v.Decision != Deny {
			t.Errorf("%s: a rule that denies does not reach it", tt.what)
		}
	}
}

// A tool with the name of a built-in one has at least its category.
func TestRaisedCategory(t *testing.T) {
	named := func(category registry.Category, namesakes ...registry.Namesake) *registry.Tool {
		return &registry.Tool{Definition: registry.Definition{Name: "write_file", Source: "plugin:x", Category: category, Namesakes: namesakes}}
	}
	write := registry.Namesake{Name: "write_file", Category: registry.CategoryWrite}
	for _, tt := range []struct {
		tool *registry.Tool
		want registry.Category
	}{
		{named(registry.CategoryRead, write), registry.CategoryWrite},
		{named(registry.CategoryCommand, write), ""},
		{named(registry.CategoryWrite, write), ""},
		{named(registry.CategoryRead), ""},
		{named("odd"), ""},
	} {
		if got := RaisedCategory(tt.tool); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.tool.Category, got, tt.want)
		}
	}
}

// Only a rule that loosens, is the person's and says nothing but a name allows a tool by its name.
func TestAllowsByName(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want bool
	}{
		{Rule{Tool: "echo", Decision: Allow, Personal: true}, true},
		{Rule{Tool: "ec*", Decision: Sandbox, Personal: true}, true},
		{Rule{Tool: "other", Decision: Allow, Personal: true}, false},
		{Rule{Tool: "echo", Decision: Ask, Personal: true}, false},
		{Rule{Tool: "echo", Decision: Allow}, false},
		{Rule{Tool: "*", Decision: Allow, Personal: true}, false},
		{Rule{Decision: Allow, Personal: true}, false},
		{Rule{Tool: "echo", Server: "s", Decision: Allow, Personal: true}, false},
		{Rule{Tool: "echo", Source: "mcp:s", Decision: Allow, Personal: true}, false},
	} {
		if got := tt.rule.AllowsByName("echo"); got != tt.want {
			t.Errorf("%+v: %t", tt.rule, got)
		}
	}
}
