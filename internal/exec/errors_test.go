package exec

import (
	"errors"
	"fmt"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// The error of a script says where it ended and what it had done before.
func TestScriptErrorSaysWhatWasDone(t *testing.T) {
	boom := errors.New("boom")
	for want, err := range map[string]error{
		"a.star:2:1: boom": &ScriptError{At: "a.star:2:1", Err: boom},
		"a.star:2:1: boom; done before: edit, write_file": &ScriptError{At: "a.star:2:1", Err: boom, Done: "edit, write_file"},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// Where a command can run in the sandbox, the hint has the rule for it too.
func TestHintHasTheRuleForTheSandbox(t *testing.T) {
	inside, outside := commandScopes()
	tool := &registry.Tool{Definition: registry.Definition{Name: "t", Source: registry.SourceBuiltin}}
	const setting = `--yes allows it this time; the setting allowedTools: ["t(make)"] allows it permanently`
	for _, tt := range []struct {
		scopes []policy.Scope
		want   string
	}{
		{[]policy.Scope{outside}, setting},
		{[]policy.Scope{inside, outside}, setting + ", the rule {tool: t, decision: sandbox} in policy.rules only in the sandbox"},
	} {
		if got := Hint(tool, policy.Verdict{Scopes: tt.scopes}); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// What the hint names allows the tool: the name that the person knows, and a rule where server__tool
// could mean another.
func TestHintNamesWhatAllows(t *testing.T) {
	of := func(server, tool string) registry.Definition {
		return registry.Definition{Name: server + "__" + tool, Source: registry.MCPPrefix + server,
			Server: server, ServerTool: tool}
	}
	renamed := registry.Definition{Name: "new", Reshaped: &registry.Reshaped{Name: "new", NameOfProject: true,
		Upstream: registry.Definition{Name: "old"}}}
	rule := func(server, tool string) string {
		return fmt.Sprintf("the rule {server: %q, tool: %q, decision: allow} in policy.rules "+
			"or trust: true of server %q allows it permanently", server, tool, server)
	}
	for want, d := range map[string]registry.Definition{
		`the setting allowedTools: ["old"] allows it permanently`:                               renamed,
		`the setting allowedTools: ["s__t"] or trust: true of server "s" allows it permanently`: of("s", "t"),
		rule("s", "a__b"): of("s", "a__b"),
		rule("a__b", "t"): of("a__b", "t"),
		rule("s", "t(x)"): of("s", "t(x)"),
	} {
		if got := LastingHint(&registry.Tool{Definition: d}, policy.Verdict{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
