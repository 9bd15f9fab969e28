package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// programTool is a tool whose calls start a program, and whose subject is its
// param command.
func programTool(program string) *registry.Tool {
	return &registry.Tool{
		Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin, Category: registry.CategoryCommand},
		Behavior: registry.Behavior{Program: program,
			Subject: func(c registry.Call) (registry.Subject, error) {
				var p struct{ Command string }
				err := json.Unmarshal(c.Params, &p)
				return registry.Subject{Command: p.Command, Directory: "."}, err
			}},
	}
}

func TestConfinement(t *testing.T) {
	have, lack, yes := func() string { return "" }, func() string { return "no kernel" }, func() bool { return true }
	sandboxRule := []Rule{{Command: "pwd", Decision: Allow, Origin: "a:1"}, {Command: "git push", Decision: Ask, Origin: "a:2"}, {Tool: "run_shell_command", Decision: Sandbox, Origin: "a:3"}}
	tests := []struct {
		name, line string
		rules      []Rule
		mode       Mode
		means      Means
		want       Decision
		on, online bool
		by, reason string
	}{
		{"a rule", "ls", sandboxRule, "", Means{Missing: have}, Sandbox, true, false, "a:3", ""},
		{"an allowed line", "pwd", sandboxRule, "", Means{Missing: have}, Allow, false, false, "", ""},
		{"a mixed line", "pwd | ls", sandboxRule, "", Means{Missing: have}, Sandbox, true, false, "a:3", ""},
		{"a part that asks", "ls; git push", sandboxRule, "", Means{Missing: have}, Ask, false, false, "", ""},
		{"a part that asks, in a mode", "ls; git push", sandboxRule, "", Means{Auto: true, Origin: "m", Missing: have}, Ask, true, false, "m", ""},
		{"an unknown program", "$X", sandboxRule, "", Means{Missing: have}, Ask, false, false, "", ""},
		{"a rule without a sandbox", "ls", sandboxRule, "", Means{Missing: lack}, Ask, false, false, "", "no kernel"},
		{"a rule for a kind that is off", "ls", sandboxRule, "", Means{Off: true, Missing: have}, Ask, false, false, "", "is off"},
		{"a rule under yolo", "ls", sandboxRule, ModeYolo, Means{YoloAuto: true, Missing: have}, Sandbox, true, false, "a:3", ""},
		{"plan denies", "ls", sandboxRule, ModePlan, Means{Missing: have}, Deny, false, false, "", ""},
		{"yolo", "ls", nil, ModeYolo, Means{YoloAuto: true, Missing: have}, Allow, true, true, "approvalMode", ""},
		{"yolo, an allowed line", "pwd", sandboxRule, ModeYolo, Means{YoloAuto: true, Missing: have}, Allow, true, true, "approvalMode", ""},
		{"yolo without a sandbox", "ls", nil, ModeYolo, Means{YoloAuto: true, Missing: lack}, Allow, false, false, "approvalMode", ""},
		{"yolo requires", "ls", nil, ModeYolo, Means{YoloRequire: true, YoloOrigin: "y", Missing: lack}, Deny, false, false, "", "no kernel"},
		{"yolo that is off", "ls", nil, ModeYolo, Means{Missing: have}, Allow, false, false, "", ""},
		{"a mode requires", "pwd", sandboxRule, "", Means{Require: true, Origin: "m", Missing: lack}, Deny, false, false, "", "no kernel"},
		{"a mode asks for it", "pwd", sandboxRule, "", Means{Auto: true, Origin: "m", Missing: lack}, Allow, false, false, "m", ""},
		{"an uncleaned workspace", "pwd", sandboxRule, "", Means{Missing: have, Uncleaned: yes}, Ask, false, false, "", "still running"},
		{"an uncleaned workspace, in the sandbox", "pwd | ls", sandboxRule, "", Means{Missing: have, Uncleaned: yes}, Sandbox, true, false, "a:3", ""},
		{"an uncleaned workspace, in a mode", "pwd", sandboxRule, "", Means{Auto: true, Origin: "m", Missing: have, Uncleaned: yes}, Allow, true, false, "m", ""},
		{"an uncleaned workspace, agreed", "pwd", sandboxRule, ModeYolo, Means{Missing: have, Uncleaned: yes}, Allow, false, false, "", ""},
		{"no means", "ls", sandboxRule, "", Means{}, Ask, false, false, "", "no sandbox is available"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := &Policy{Rules: valid(t, test.rules), Mode: test.mode, Shell: "bash", Means: func(kind string) Means {
				if kind != "shell" {
					t.Errorf("asked about %q", kind)
				}
				return test.means
			}}
			params, _ := json.Marshal(map[string]string{"command": test.line})
			v := p.Decide(t.Context(), programTool("shell"), registry.Call{Params: params})
			if v.Decision != test.want || v.Confine.On != test.on || v.Confine.Online != test.online || v.Confine.By != test.by || !strings.Contains(v.Reason, test.reason) {
				t.Errorf("%v, %+v: %s", v.Decision, v.Confine, v.Reason)
			}
		})
	}
}

// A call stays in the sandbox even if the tool itself asks a question.
func TestConfirmedCallsStayConfined(t *testing.T) {
	tool := programTool("shell")
	tool.Confirm = func(context.Context, registry.Call) registry.Asking { return registry.Asking{Reason: "sure?"} }
	p := &Policy{Rules: valid(t, []Rule{{Decision: Sandbox, Origin: "a:1"}}), Shell: "bash", Means: func(string) Means { return Means{Missing: func() string { return "" }} }}
	v := p.Decide(t.Context(), tool, registry.Call{Params: json.RawMessage(`{"command":"ls"}`)})
	if v.Decision != Ask || !v.Confine.On || v.Confine.By != "a:1" {
		t.Errorf("%v, %+v", v.Decision, v.Confine)
	}
}

func TestSandboxRuleOnToolsWithoutPrograms(t *testing.T) {
	p := &Policy{Rules: valid(t, []Rule{{Decision: Sandbox}}), Means: func(string) Means { t.Error("asked"); return Means{} }}
	v := p.Decide(t.Context(), &registry.Tool{Definition: registry.Definition{Name: "x", Source: "mcp:s", Server: "s"}}, registry.Call{})
	if v.Decision != Ask || v.Confine.On || !strings.Contains(v.Reason, "it starts no program") {
		t.Errorf("%v: %s", v.Decision, v.Reason)
	}
	canonical := func(name string) string {
		return map[string]string{"read": "read_file", "bash": "run_shell_command"}[name]
	}
	for _, test := range []struct {
		rule Rule
		ok   bool
	}{
		{Rule{Tool: "read", Decision: Sandbox}, false}, {Rule{Tool: "bash", Decision: Sandbox}, true}, {Rule{Server: "*", Decision: Sandbox}, false},
		{Rule{Source: "mcp:x", Decision: Sandbox}, false}, {Rule{Source: "composite", Decision: Sandbox}, false}, {Rule{Tool: "*", Decision: Sandbox}, true},
		{Rule{Source: "builtin", Category: "read", Decision: Sandbox}, false}, {Rule{Source: "builtin", Category: "command", Decision: Sandbox}, true},
		{Rule{Source: "plugin:x", Category: "read", Decision: Sandbox}, true}, {Rule{Category: "read", Decision: Sandbox}, true},
		{Rule{Tool: "read", Decision: Ask}, true}, {Rule{Source: "plugin:*", Decision: Sandbox}, true},
	} {
		if err := test.rule.ValidateSandbox(canonical); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test.rule, err)
		}
	}
}

// One line says how a call would run, also if nobody asked for the sandbox.
func TestConfinementIsDescribed(t *testing.T) {
	allows := func(text string) func() string { return func() string { return text } }
	for _, tt := range []struct {
		confinement Confinement
		want        string
	}{
		{Confinement{On: true, By: "a:1", Allows: allows("reads all")}, "on (a:1): reads all"},
		{Confinement{By: "a:1", Missing: "no kernel", Allows: allows("reads all")}, "unavailable, running without it (a:1): no kernel"},
		{Confinement{Allows: allows("reads all")}, "off; a rule with the decision sandbox would turn it on: reads all"},
		{Confinement{Allows: allows("")}, ""},
		{Confinement{}, ""},
		{Confinement{On: true}, ""},
	} {
		if got := tt.confinement.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// The description of a call that is not confined is what the sandbox would allow, without
// the network unless that is enabled.
func TestConfinementAllows(t *testing.T) {
	means := Means{Missing: func() string { return "" }, Allows: func(online bool) string { return map[bool]string{true: "net", false: "no net"}[online] }}
	for _, tt := range []struct {
		name   string
		mode   Mode
		change func(*Means)
		want   string
	}{
		{"off", "", func(*Means) {}, "off; a rule with the decision sandbox would turn it on: no net"},
		{"a mode", "", func(m *Means) { m.Auto, m.Origin = true, "m" }, "on (m): no net"},
		{"yolo", ModeYolo, func(m *Means) { m.YoloAuto = true }, "on (approvalMode): net"},
		{"yolo requires", ModeYolo, func(m *Means) { m.YoloRequire, m.YoloOrigin = true, "y" }, "on (y): net"},
		{"a mode and yolo", ModeYolo, func(m *Means) { m.Auto, m.Origin, m.YoloAuto, m.YoloOrigin = true, "m", true, "y" }, "on (m): net"},
		{"a mode, and yolo requires", ModeYolo, func(m *Means) { m.Auto, m.Origin, m.YoloRequire, m.YoloOrigin = true, "m", true, "y" }, "on (y): net"},
		{"a mode requires, and yolo", ModeYolo, func(m *Means) { m.Require, m.Origin, m.YoloRequire, m.YoloOrigin = true, "m", true, "y" }, "on (m): net"},
		{"yolo in another mode", "", func(m *Means) { m.YoloAuto, m.YoloOrigin = true, "y" }, "off; a rule with the decision sandbox would turn it on: no net"},
	} {
		m := means
		tt.change(&m)
		p := &Policy{Mode: tt.mode, Shell: "bash", Means: func(string) Means { return m }}
		if got := p.Decide(t.Context(), programTool("shell"), registry.Call{Params: json.RawMessage(`{"command":"ls"}`)}).Confine.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// valid returns copies of the rules, which must be valid.
func valid(t *testing.T, rules []Rule) []Rule {
	t.Helper()
	out := slices.Clone(rules)
	for i := range out {
		if err := out[i].Validate(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Only a person's answer leads a shell command out of the sandbox, and only where no
// setting demands it.
func TestWhatMayLeaveTheSandbox(t *testing.T) {
	rule := []Rule{{Decision: Sandbox, Origin: "a:1"}}
	have := func() string { return "" }
	tests := []struct {
		name, program, line string
		rules               []Rule
		mode                Mode
		means               Means
		want                bool
	}{
		{"a rule", "shell", "ls", rule, "", Means{Missing: have}, true},
		{"a mode", "shell", "ls", nil, "", Means{Auto: true, Missing: have}, true},
		{"a mode that requires", "shell", "ls", nil, "", Means{Require: true, Missing: have}, false},
		{"a rule and a mode that requires", "shell", "ls", rule, "", Means{Require: true, Missing: have}, false},
		{"a rule under yolo", "shell", "ls", rule, ModeYolo, Means{YoloAuto: true, Missing: have}, false},
		{"yolo", "shell", "ls", nil, ModeYolo, Means{YoloAuto: true, Missing: have}, false},
		{"a catastrophic line", "shell", "rm -rf /", nil, "", Means{Auto: true, Missing: have}, false},
		{"a plugin", "plugins", "", rule, "", Means{Missing: have}, false},
	}
	for _, test := range tests {
		p := &Policy{Rules: valid(t, test.rules), Mode: test.mode, Shell: "bash", AskCatastrophic: true, Means: func(string) Means { return test.means }}
		params, _ := json.Marshal(map[string]string{"command": test.line})
		v := p.Decide(t.Context(), programTool(test.program), registry.Call{Params: params})
		if v.Decision == Deny || !v.Confine.On || v.Confine.Outside != test.want {
			t.Errorf("%s: %v, %+v", test.name, v.Decision, v.Confine)
		}
	}
}
