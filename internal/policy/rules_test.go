package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
)

func when(t testing.TB, text string) *jq.Expression {
	t.Helper()
	e, err := jq.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A rule with an expression applies if the expression is true. If the expression
// fails, the call is treated strictly.
func TestWhen(t *testing.T) {
	pay := mcpTool("bank", "pay", "pay")
	tests := []struct {
		expression string
		decision   Decision
		want       Decision
	}{
		{`.amount > 100`, Deny, Deny},
		{`.amount > 1000`, Deny, Ask},
		{`.amount < 1000`, Allow, Allow},
		{`.amount < 100`, Allow, Ask},
		{`.note == "x"`, Allow, Ask},
		{`.amount.x`, Deny, Deny},
		{`.amount.x`, Allow, Ask},
		{`.amount`, Deny, Deny},
		{`.amount`, Allow, Ask},
		{`empty`, Deny, Deny},
		{`empty`, Allow, Ask},
		{`.absent`, Deny, Ask},
		{`def f: f; f`, Deny, Deny},
		{`def f: f; f`, Allow, Ask},
		{`[limit(1e9; repeat("xxxxxxxx"))] | length > 0`, Deny, Deny},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.decision, " ", tt.expression), func(t *testing.T) {
			t.Parallel()
			p := Policy{Rules: []Rule{{Tool: "pay", When: when(t, tt.expression), Decision: tt.decision}}}
			v := p.Decide(t.Context(), pay, registry.Call{Params: json.RawMessage(`{"amount": 250}`)})
			if v.Decision != tt.want {
				t.Errorf("got %v (%s), want %v", v.Decision, v.Reason, tt.want)
			}
		})
	}
}

// If an override changes the params, a rule that loosens must hold for all their shapes, other rules for any.
func TestWhenIsTriedOnAllShapes(t *testing.T) {
	for _, tt := range []struct {
		expression string
		decision   Decision
		shapes     string // separated by spaces; "" if they cannot be determined
		want       Decision
	}{
		{`.sum > 100`, Deny, `{"sum":200} {"amount":200}`, Deny},
		{`.amount > 100`, Deny, `{"sum":200} {"amount":200}`, Deny},
		{`.amount > 100`, Deny, `{"sum":20} {"amount":20}`, Ask},
		{`.amount == 20`, Allow, `{"sum":20} {"amount":20}`, Ask},
		{`.amount < 100`, Allow, `{"sum":200} {"amount":200}`, Ask},
		{`.sum < 100`, Allow, `{"sum":200} {"amount":200}`, Ask},
		{`.sum < 100`, Allow, `{"sum":20} {"amount":20}`, Allow},
		{`.sum < 100`, Sandbox, `{"sum":200} {"amount":200}`, Ask},
		{`.amount.x < 1`, Allow, `{"sum":20} {"amount":20}`, Ask},
		{`.sum.x == 1`, Deny, `{"sum":20} {"amount":20}`, Deny},
		{`.payee == "x"`, Deny, `{"to":"x"} {"recipient":"x"} {"payee":"x"}`, Deny},
		{`false`, Deny, ``, Deny},
		{`true`, Allow, ``, Ask},
	} {
		pay := *mcpTool("bank", "pay", "pay")
		pay.Shapes = func(registry.Call) (out []json.RawMessage, err error) {
			for text := range strings.FieldsSeq(tt.shapes) {
				out = append(out, json.RawMessage(text))
			}
			if out == nil {
				err = errors.New("no shapes")
			}
			return out, err
		}
		p := Policy{Rules: []Rule{{Tool: "pay", When: when(t, tt.expression), Decision: tt.decision}}}
		if v := p.Decide(t.Context(), &pay, registry.Call{Params: json.RawMessage(`{}`)}); v.Decision != tt.want {
			t.Errorf("%v %s of %s: got %v (%s), want %v", tt.decision, tt.expression, tt.shapes, v.Decision, v.Reason, tt.want)
		}
	}
}

// Rules on an address hold for all its spellings.
func TestWhenIsTriedOnTheAddressThatIsFetched(t *testing.T) {
	for _, tt := range []struct {
		expression string
		decision   Decision
		written    string
		want       Decision
	}{
		{`.url | startswith("https://a.org/")`, Deny, `https://a.org/x`, Deny},
		{`.url | startswith("https://a.org/")`, Deny, `HTTPS://ａ。org:443/x`, Deny},
		{`.url | startswith("https://a.org/")`, Deny, `https://b.org/x`, Deny},
		{`.url | startswith("https://a.org/")`, Allow, `https://a.org/x`, Allow},
		{`.url | startswith("https://b.org/")`, Allow, `https://b.org/x`, Ask},
	} {
		p := Policy{Rules: []Rule{{Tool: "web_fetch", When: when(t, tt.expression), Decision: tt.decision}}}
		params := json.RawMessage(`{"url":"` + tt.written + `"}`)
		if v := p.Decide(t.Context(), fetchTool("https://a.org/x"), registry.Call{Params: params}); v.Decision != tt.want {
			t.Errorf("%v %s of %s: got %v (%s), want %v", tt.decision, tt.expression, tt.written, v.Decision, v.Reason, tt.want)
		}
	}
}

// Params without an address get none.
func TestWhenWithoutAnAddress(t *testing.T) {
	p := Policy{Rules: []Rule{{Tool: "web_fetch", When: when(t, `has("url")`), Decision: Deny}}}
	params := json.RawMessage(`{"prompt":"see https://a.org/x"}`)
	if v := p.Decide(t.Context(), fetchTool("https://a.org/x"), registry.Call{Params: params}); v.Decision != Ask {
		t.Errorf("got %v (%s), want ask", v.Decision, v.Reason)
	}
}

// A rule with an expression does not apply to a tool as a whole.
func TestWhenWithoutParams(t *testing.T) {
	pay := mcpTool("bank", "pay", "pay")
	p := Policy{Rules: []Rule{{Tool: "pay", When: when(t, `true`), Decision: Deny}}}
	if v := p.DecideTool(t.Context(), pay); v.Decision != Ask {
		t.Errorf("got %v, want ask", v.Decision)
	}
	if v, all := p.DeniesAll(t.Context(), pay); all {
		t.Errorf("every call is denied: %+v", v)
	}
}

// Without a sandbox, rules with the decision sandbox ask. They match as narrowly
// as rules that allow.
func TestSandboxRuleWithoutSandboxAsks(t *testing.T) {
	shell := builtinTool("run_shell_command", registry.CategoryCommand, registry.Subject{Command: "go test ./... && ls"})
	p := Policy{Shell: "bash", Rules: []Rule{{Tool: "run_shell_command", Command: "go test", Decision: Sandbox}, {Tool: "run_shell_command", Decision: Allow}}}
	v := p.Decide(t.Context(), shell, registry.Call{})
	if v.Decision != Ask || !strings.Contains(v.Reason, "sandbox") {
		t.Errorf("got %v: %s", v.Decision, v.Reason)
	}
	pay := mcpTool("bank", "pay", "pay")
	p = Policy{Rules: []Rule{{Tool: "PAY", Decision: Sandbox}, {Tool: "pay", When: when(t, ".x.y"), Decision: Sandbox}, {Tool: "pay", Decision: Deny}}}
	if v := p.Decide(t.Context(), pay, registry.Call{Params: json.RawMessage(`{"x": 1}`)}); v.Decision != Deny {
		t.Errorf("got %v, want the rule after those with the decision sandbox", v.Decision)
	}
}

func TestExplain(t *testing.T) {
	p := Policy{Workspace: "/w", Shell: "bash", Rules: []Rule{
		{Tool: "write_file", Decision: Deny},
		{Source: "mcp:*", Decision: Deny},
		{Server: "s", Decision: Deny},
		{Category: "read", Decision: Deny},
		{Command: "git push", Decision: Deny},
		{Path: "*.lock", Decision: Deny},
		{When: when(t, `.n > 1`), Decision: Deny},
		{When: when(t, `.n.x`), Decision: Allow},
		{Tool: "run_*", Decision: Ask},
	}}
	shell := builtinTool("run_shell_command", registry.CategoryCommand, registry.Subject{Command: "ls; git push >x"})
	reports, err := p.Explain(t.Context(), shell, registry.Call{Params: json.RawMessage(`{"n": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range reports {
		got = append(got, fmt.Sprintf("%s|%v|%s|%s|%v", r.Part, r.Matches, r.Unmet, r.Value, r.Failed != nil))
	}
	want := []string{
		"|false|tool|run_shell_command|false",
		"|false|source|builtin|false",
		"|false|server||false",
		"|false|category|command|false",
		"ls|false|command|ls; git push >x|false",
		"git push|true|||false",
		">x|false|command|ls; git push >x|false",
		"|false|path|x|false",
		"|false|when|false|false",
		"|false|when||true",
		"ls|true|||false",
		"git push|true|||false",
		">x|true|||false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A rule on commands matches no call without a command line, and the report says so.
func TestExplainCallWithoutCommandLine(t *testing.T) {
	p := Policy{Rules: []Rule{{Command: "ls", Decision: Deny}, {Decision: Ask}}}
	got, err := p.Explain(t.Context(), pathTool("read_file", registry.CategoryRead, "a"), registry.Call{})
	if err != nil || len(got) != 2 || got[0].Matches || got[0].Unmet != "command" || !got[1].Matches || got[1].Unmet != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A rule that loosens matches a command line if it matches all parts, other rules if they
// match one. An expression that fails is an error.
func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		rule    Rule
		line    string
		want    bool
		failure bool
	}{
		{Rule{Command: "ls", Decision: Allow}, "ls; ls -l", true, false},
		{Rule{Command: "ls", Decision: Allow}, "ls; id", false, false},
		{Rule{Command: "ls", Decision: Allow}, "id; ls", false, false},
		{Rule{Command: "ls", Decision: Deny}, "id; ls", true, false},
		{Rule{Command: "ls", Decision: Deny}, "ls; id", true, false},
		{Rule{Command: "ls", Decision: Deny}, "id; pwd", false, false},
		{Rule{Tool: "other", Decision: Allow}, "ls", false, false},
		{Rule{When: when(t, ".n.x"), Decision: Deny}, "ls", false, true},
		{Rule{When: when(t, ".n.x"), Decision: Allow}, "ls", false, true},
	} {
		p := &Policy{Shell: "bash", Rules: []Rule{{Decision: Deny}}}
		got, err := p.Matches(t.Context(), &tt.rule, shellTool(tt.line), registry.Call{Params: json.RawMessage(`{"n": 1}`)})
		if got != tt.want || (err != nil) != tt.failure {
			t.Errorf("%+v on %q: %t, %v", tt.rule, tt.line, got, err)
		}
	}
	unknown := builtinTool("run_shell_command", registry.CategoryCommand, registry.Subject{})
	unknown.Subject = func(registry.Call) (registry.Subject, error) { return registry.Subject{}, errors.New("no such file") }
	for _, decision := range []Decision{Allow, Deny} {
		if got, err := (&Policy{}).Matches(t.Context(), &Rule{Decision: decision}, unknown, registry.Call{}); got || err == nil {
			t.Errorf("%s, for a call that cannot be read: %t, %v", decision, got, err)
		}
	}
}

// A decision with a thousand rules should take at most 50 µs.
func BenchmarkRules(b *testing.B) {
	rules := func(make func(i int) Rule) []Rule {
		out := []Rule{}
		for i := range 1000 {
			r := make(i)
			if err := r.Validate(); err != nil {
				b.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	canonical := func(name string) string {
		if name == "run_shell_command" || name == "write_file" {
			return name
		}
		return ""
	}
	subject := func(s registry.Subject) *registry.Tool {
		return builtinTool("run_shell_command", registry.CategoryCommand, s)
	}
	tests := []struct {
		name  string
		rules []Rule
		tool  *registry.Tool
	}{
		{"tools", rules(func(i int) Rule {
			return Rule{Tool: fmt.Sprintf("server__tool_%d", i), Decision: Decision(i % 3)}
		}), mcpTool("github", "create_issue", "create_issue")},
		{"globs", rules(func(i int) Rule { return Rule{Tool: fmt.Sprintf("get_%d_*", i), Decision: Decision(i % 3)} }), mcpTool("github", "create_issue", "create_issue")},
		{"servers", rules(func(i int) Rule {
			return Rule{Server: fmt.Sprintf("server%d", i), Tool: "x_*", Decision: Decision(i % 3)}
		}), mcpTool("github", "create_issue", "create_issue")},
		{"commands allowed", rules(func(i int) Rule {
			return Rule{Tool: "run_shell_command", Command: fmt.Sprintf("program%d test", i), Decision: Allow}
		}), subject(registry.Subject{Command: "git status"})},
		{"commands denied", rules(func(i int) Rule {
			return Rule{Tool: "run_shell_command", Command: fmt.Sprintf("program%d test", i), Decision: Deny}
		}), subject(registry.Subject{Command: "git status"})},
		{"paths by name", rules(func(i int) Rule { return Rule{Path: fmt.Sprintf("**/*.key%d", i), Decision: Decision(i % 3)} }), pathTool("write_file", registry.CategoryWrite, "docs/a.md")},
		{"paths in groups", rules(func(i int) Rule {
			return Rule{Path: fmt.Sprintf("**/*.{key%d,pem%d}", i, i), Decision: Decision(i % 3)}
		}), pathTool("write_file", registry.CategoryWrite, "docs/a.md")},
		{"sources", rules(func(i int) Rule { return Rule{Source: fmt.Sprintf("plugin:p%d", i), Decision: Decision(i % 3)} }), mcpTool("github", "create_issue", "create_issue")},
		{"groups", rules(func(i int) Rule {
			return Rule{Group: fmt.Sprintf("team-%d-*", i), Tool: "github__*", Decision: Decision(i % 3)}
		}), mcpTool("github", "create_issue", "create_issue")},
		{"params of other tools", rules(func(i int) Rule {
			return Rule{Tool: fmt.Sprintf("tool_%d", i), When: when(b, ".a > 1"), Decision: Decision(i % 3)}
		}), mcpTool("github", "create_issue", "create_issue")},
		{"paths", rules(func(i int) Rule { return Rule{Path: fmt.Sprintf("src/%d/**", i), Decision: Decision(i % 3)} }), pathTool("write_file", registry.CategoryWrite, "docs/a.md")},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			p := Policy{Rules: tt.rules, Workspace: "/work", Shell: "bash", Canonical: canonical, Callers: &Callers{}}
			ctx := caller.With(b.Context(), &caller.Caller{Name: "alice", Groups: []string{"staff", "team-x-dev", "ops", "on-call", "team-1000-a"}})
			for b.Loop() {
				if v := p.Decide(ctx, tt.tool, registry.Call{}); v.Decision != Ask {
					b.Fatal(v)
				}
			}
		})
	}
}

// A line of parts that need no rule is decided by the rules on all commands, and Explain says so.
func TestExplainOnLineWithoutEffect(t *testing.T) {
	p := &Policy{Rules: []Rule{{Tool: "run_shell_command", Decision: Deny}}}
	tool := shellTool("FOO=bar")
	reports, err := p.Explain(t.Context(), tool, registry.Call{})
	if v := p.Decide(t.Context(), tool, registry.Call{}); err != nil || v.Decision != Deny || !reports[0].Matches {
		t.Errorf("%s, %+v, %v", v.Decision, reports, err)
	}
}
