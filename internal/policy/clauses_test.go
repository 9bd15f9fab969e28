package policy

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// Each clause decides in some case. A new clause needs an example here.
func TestEachClauseDecides(t *testing.T) {
	workspace := t.TempDir()
	for _, dir := range []string{"vendor/x", "sub"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(line string) *registry.Tool {
		tool := shellTool(line)
		tool.Program = registry.ProgramShell
		return tool
	}
	rules := func(r ...Rule) []Rule { return r }
	available := func(m Means) func(string) Means {
		return func(string) Means {
			if m.Missing == nil {
				m.Missing = func() string { return "" }
			}
			return m
		}
	}
	approving := func(tool *registry.Tool) *Approvals {
		a := &Approvals{Dir: stateDir(t)}
		if err := a.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	broken := pathTool("read_file", registry.CategoryRead)
	broken.Subject = func(registry.Call) (registry.Subject, error) { return registry.Subject{}, errors.New("no such path") }
	asking := pathTool("read_file", registry.CategoryRead)
	asking.Confirm = func(context.Context, registry.Call) registry.Asking {
		return registry.Asking{Reason: "sure?", Origin: "tool"}
	}
	sending := pathTool("send", registry.CategoryRead, "a")
	sending.Source = registry.SourceCommand
	contested := trusted(mcpTool("s", "t", "t"))
	contested.Contested = "other"
	write, fetch := pathTool("write_file", registry.CategoryWrite, ".git/a"), fetchTool("https://a")
	yes := func(string) bool { return true }
	missing := func() string { return "no sandbox" }

	cases := []struct {
		clause string
		policy Policy
		tool   *registry.Tool
		want   Decision
	}{
		{"failed-check", Policy{}, broken, Deny},
		{"too-large", Policy{}, shell(strings.Repeat("a;", 1<<20)), Deny},
		{"catastrophic", Policy{}, shell("chmod -R 000 /"), Deny},
		{"catastrophic", Policy{AskCatastrophic: true, Mode: ModeYolo}, shell("chmod -R 000 /"), Ask},
		{"banned", Policy{Banned: banned()}, shell("rm x"), Deny},
		{"core", Policy{Core: []Limit{{"coreTools", rules(Rule{Command: "git"})}}, Mode: ModeYolo}, shell("git log && make"), Deny},
		{"no-effect", Policy{Core: []Limit{{"coreTools", rules(Rule{Command: "ls"})}}, Rules: rules(Rule{Command: "ls", Decision: Allow})}, shell("timeout 5 ls"), Allow},
		{"rule", Policy{Rules: rules(Rule{Decision: Allow})}, write, Allow},
		{"no-effect", Policy{Rules: rules(Rule{Command: "ls", Decision: Allow})}, shell("timeout 5 ls"), Allow},
		{"auto-edit", Policy{Mode: ModeAutoEdit}, write, Allow},
		{"approval", Policy{Approvals: approving(todoTool())}, todoTool(), Allow},
		{"default", Policy{}, write, Ask},
		{"doubt", Policy{Rules: rules(Rule{Path: "a", Decision: Deny}, Rule{Decision: Allow})}, shell("make > $X"), Ask},
		{"other-folder", Policy{Rules: rules(Rule{Command: "make", Decision: Allow})}, shell("cd vendor/x && make"), Ask},
		{"changed-program", Policy{Rules: rules(Rule{Decision: Allow}), Means: available(Means{Changed: func([]string, string) []string { return []string{"/x"} }})}, shell("make"), Ask},
		{"reads-files", Policy{Rules: rules(Rule{Tool: "read_file", Decision: Deny})}, sending, Deny},
		{"guarded-path", Policy{Rules: rules(Rule{Decision: Allow}), Guarded: yes}, write, Ask},
		{"hidden-path", Policy{Rules: rules(Rule{Decision: Allow}), NewHidden: yes}, write, Ask},
		{"credentials", Policy{Credentials: guarding(func(string) string { return "is a key" })}, pathTool("read_file", registry.CategoryRead, "k"), Ask},
		{"tool-asks", Policy{}, asking, Ask},
		{"sandbox-leftovers", Policy{Rules: rules(Rule{Decision: Allow}), Means: available(Means{Uncleaned: func() bool { return true }})}, shell("make"), Ask},
		{"plan", Policy{Mode: ModePlan}, write, Deny},
		{"yolo-doubt", Policy{Mode: ModeYolo, Banned: banned()}, shell("$X"), Deny},
		{"yolo", Policy{Mode: ModeYolo}, write, Allow},
		{"sandbox-required", Policy{Mode: ModeYolo, Means: available(Means{Require: true, Missing: missing})}, shell("make"), Deny},
		{"contested-name", Policy{Mode: ModeYolo}, contested, Ask},
		{"no-answers", Policy{Approvals: &Approvals{Shared: &memory{away: errors.New("gone")}}}, fetch, Deny},
	}
	seen := []string{"failed-check"}
	for _, tt := range cases {
		tt.policy.Workspace, tt.policy.Shell = workspace, "bash"
		ctx := t.Context()
		if tt.clause == "no-answers" {
			ctx = caller.With(ctx, &caller.Caller{Name: "a"})
		}
		v := tt.policy.Decide(ctx, tt.tool, registry.Call{Tool: tt.tool.Name})
		decided := v.Clause == tt.clause || slices.ContainsFunc(v.Commands, func(c CommandVerdict) bool { return c.Clause == tt.clause })
		if !decided || v.Decision != tt.want {
			t.Errorf("%s: %s by %s: %s", tt.clause, v.Decision, v.Clause, v.Reason)
		}
		seen = append(seen, tt.clause)
	}
	for _, c := range slices.Concat(deciding(), ofPart(), ofCall()) {
		if !slices.Contains(seen, c.name) {
			t.Errorf("no example of the clause %s", c.name)
		}
	}
}

// Only the mode yolo loosens what another clause has said, and no clause can do so unmarked.
func TestNoClauseLoosens(t *testing.T) {
	var loosen []string
	for _, c := range slices.Concat(deciding(), ofPart(), ofCall()) {
		if c.loosens {
			loosen = append(loosen, c.name)
		}
	}
	if diff := cmp.Diff([]string{"yolo"}, loosen); diff != "" {
		t.Error("clauses that loosen:", diff)
	}
	m := &matter{facts: (&Policy{}).factsOfTool(t.Context(), todoTool(), false)}
	decisions := []Decision{Allow, Sandbox, Ask, Deny} // from loose to strict
	for i, before := range decisions {
		for j, says := range decisions {
			for _, loosens := range []bool{false, true} {
				want := says
				if before == Deny || j < i && !loosens {
					want = before
				}
				c := clause{name: "c", loosens: loosens, says: func(*matter, Verdict) (Verdict, bool) { return Verdict{Decision: says}, true }}
				if v := m.amend(Verdict{Decision: before}, []clause{c}); v.Decision != want {
					t.Errorf("%s after %s, loosens %t: %s", says, before, loosens, v.Decision)
				}
			}
		}
	}
}

// In many combinations of settings, tools and calls no clause tries to loosen a verdict, and what a
// clause says does not depend on how often it is asked.
func TestClausesOnlyTighten(t *testing.T) {
	lines := []string{"ls", "make", "rm x", "$X", "make; $X", "cd vendor && make", "echo x > .git/hooks/a", "chmod -R 000 /", "a 'b", "timeout 5 make", "cat k > a", "git push"}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) bool { return r.IntN(n) == 0 }
	ignored := cmp.Options{cmpopts.IgnoreFields(Verdict{}, "Accept", "Hides", "Confine", "InSandbox"), cmp.AllowUnexported(Verdict{}, CommandVerdict{}),
		cmp.Comparer(func(a, b *Rule) bool {
			return (a == nil) == (b == nil) && (a == nil || a.Origin == b.Origin && a.Decision == b.Decision)
		})}
	for range 2000 {
		p := &Policy{Workspace: "/w", Shell: "bash", Mode: []Mode{ModeDefault, ModeAutoEdit, ModePlan, ModeYolo}[r.IntN(4)], AskCatastrophic: pick(2), Approvals: &Approvals{Shared: &memory{}}}
		for range r.IntN(4) {
			p.Rules = append(p.Rules, Rule{
				Decision: Decision(r.IntN(4)),
				Tool:     []string{"*", "run_shell_command", "read_file", "send"}[r.IntN(4)],
				Command:  []string{"", "", "make", "git", "ls"}[r.IntN(5)],
				Path:     []string{"", "", "", ".git/**", "k"}[r.IntN(5)],
			})
		}
		if pick(2) {
			p.Banned = banned()
		}
		if pick(2) {
			p.Guarded, p.NewHidden = func(p string) bool { return strings.HasPrefix(p, ".git") }, func(p string) bool { return p == "k" }
		}
		if pick(2) {
			p.Credentials = guarding(func(p string) string { return strings.Repeat("is a key", strings.Count(p, "k")) })
		}
		if pick(3) {
			p.Defaults = map[registry.Category]Rule{registry.CategoryCommand: {Decision: Decision(r.IntN(4))}}
		}
		m := Means{Auto: pick(2), Require: pick(3), YoloAuto: pick(2), Missing: func() string { return "" }, Uncleaned: func() bool { return true }}
		if pick(3) {
			m.Missing = func() string { return "no sandbox" }
		}
		p.Means = func(string) Means { return m }
		sending := pathTool("send", registry.CategoryRead, "k")
		sending.Source = registry.SourceCommand
		shell := shellTool(lines[r.IntN(len(lines))])
		shell.Program = registry.ProgramShell
		contested := trusted(mcpTool("s", "t", "t"))
		contested.Contested = "other"
		tool := []*registry.Tool{shell, shell, shell, sending, contested, pathTool("write_file", registry.CategoryWrite, "k"), pathTool("read_file", registry.CategoryRead, "a", "k")}[r.IntN(7)]
		ctx := t.Context()
		if pick(4) {
			ctx = caller.With(ctx, &caller.Caller{Name: "a"})
		}
		f, err := p.factsOf(ctx, tool, registry.Call{Tool: tool.Name})
		if err != nil {
			t.Fatal(err)
		}
		if pick(8) {
			f.asking = registry.Asking{Reason: "sure?", Origin: "tool"}
		}
		watched := func(list []clause) (out []clause) {
			for _, c := range list {
				out = append(out, clause{name: c.name, loosens: c.loosens, says: func(m *matter, v Verdict) (Verdict, bool) {
					w, ok := c.says(m, v)
					again, _ := c.says(m, v)
					if diff := cmp.Diff(w, again, ignored...); ok && diff != "" {
						t.Errorf("%s says something else when it is asked again: %s", c.name, diff)
					}
					if ok && !c.loosens && stricter(v.Decision, w.Decision) != w.Decision {
						t.Errorf("%s: %s after %s (%s): %+v", c.name, w.Decision, v.Decision, v.Clause, p.Rules)
					}
					return w, ok
				}})
			}
			return out
		}
		for _, part := range f.parts {
			part.amend(part.decide(deciding()), watched(ofPart()))
		}
		(&matter{facts: f}).amend(f.decideParts(), watched(ofCall()))
	}
}

// A question about a command says why no rule and no earlier answer decides, if a person may expect that.
func TestWhyCommandAsks(t *testing.T) {
	const byDefault = "tools of category command require confirmation"
	p := shellPolicy(t)
	p.Rules = append(p.Rules, entries(t, Allow, "run_shell_command(python)", "run_shell_command(kubectl)")...)
	for line, want := range map[string]string{
		"make":                           byDefault,
		"apply_patch x":                  "apply_patch is a tool",
		"applypatch x":                   "apply_patch is a tool",
		"python -c 'print(1)'":           "so a rule must have all words of the command",
		"ruby -e 1":                      byDefault,
		"kubectl apply -f x":             "so a rule must name it, not kubectl alone",
		"kubectl apply --dry-run=F -f x": "so a rule must name it, not kubectl alone",
		"kubectl apply --dry-run=client -f x --dry-run=none": "so a rule must name it, not kubectl alone",
		"helm upgrade a b": byDefault,
	} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != Ask || !strings.Contains(v.Reason, want) {
			t.Errorf("%s: %s (%s), want %q", line, v.Decision, v.Reason, want)
		}
	}
	if v := (&Policy{}).Decide(t.Context(), shellTool("kubectl apply -f x"), registry.Call{}); v.Reason != byDefault {
		t.Errorf("without a rule: %s", v.Reason)
	}
}

// A part without an effect of its own needs no rule, and rules on all commands are not about it.
func TestPartWithoutEffect(t *testing.T) {
	p := &Policy{Rules: []Rule{{Command: "make", Decision: Allow}, {Decision: Ask}}}
	for line, want := range map[string]Decision{"timeout 5 make": Allow, "timeout 5 ls": Ask, "command -v ninja || make": Allow, "command ninja || make": Ask} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%s: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// The reason of a call says which answer allowed it, and a question that a change of the tool caused.
func TestReasonsOfApprovals(t *testing.T) {
	a := &Approvals{Dir: stateDir(t)}
	older := shellTool("")
	older.Description = "older"
	for _, given := range []struct {
		tool  *registry.Tool
		scope Scope
	}{
		{todoTool(), Scope{Kind: ScopeTool}},
		{shellTool(""), Scope{Kind: ScopeCommand, Values: []string{"make"}}},
		{older, Scope{Kind: ScopeCommand, Values: []string{"ninja"}}},
	} {
		if err := a.Remember(t.Context(), given.tool, given.scope); err != nil {
			t.Fatal(err)
		}
	}
	p := &Policy{Approvals: a}
	for _, tt := range []struct {
		tool *registry.Tool
		want string
	}{
		{todoTool(), "you chose to always allow it"},
		{shellTool("make all"), `you chose to always allow "make"`},
		{shellTool("ninja"), "its description changed since you allowed it"},
		{shellTool("ninja; make; ls"), "its description changed since you allowed it"}, // whatever follows
		{shellTool("ls; ninja"), "its description changed since you allowed it"},
	} {
		if v := p.Decide(t.Context(), tt.tool, registry.Call{}); v.Reason != tt.want {
			t.Errorf("%s, want %q", v.Reason, tt.want)
		}
	}
}

// The same answer in two workspaces of a project is two answers.
func TestAnswersOfWorkspaces(t *testing.T) {
	dir := stateDir(t)
	for _, workspace := range []string{"", "/p/a", "/p/b"} {
		a := &Approvals{Dir: dir, Workspace: workspace}
		if err := a.Remember(t.Context(), todoTool(), Scope{Kind: ScopeTool}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := (&Approvals{Dir: dir}).List(t.Context(), false)
	if err != nil || len(list) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
}
