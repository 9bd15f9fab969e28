package asking

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

func aQuestion(choices ...exec.Choice) exec.Question {
	if choices == nil {
		choices = []exec.Choice{exec.Yes, exec.Always, exec.No}
	}
	return exec.Question{
		Tool:    &registry.Tool{Definition: registry.Definition{Name: "write_file", Source: registry.SourceBuiltin}},
		Call:    registry.Call{Params: []byte(`{"file_path":"a.txt"}`)},
		Preview: registry.Preview{Kind: registry.PreviewInfo},
		Verdict: policy.Verdict{Reason: "tools of category write require confirmation", Scopes: []policy.Scope{{Kind: policy.ScopeTool}}},
		Choices: choices,
	}
}

func shown(width int, color bool, q exec.Question) string {
	v := ui.View{Width: width, Color: color}
	question(&v, &q)
	about(&v, &q)
	return v.String()
}

const bar = "  │ "

func want(t *testing.T, got string, lines ...string) {
	t.Helper()
	if diff := cmp.Diff("\n"+strings.Join(lines, "\n")+"\n", got); diff != "" {
		t.Error(diff)
	}
}

func TestViewExec(t *testing.T) {
	want(t, shown(80, false, exec.Question{
		Tool:    &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin}},
		Preview: registry.Preview{Kind: registry.PreviewExec, Command: "make all\n\x1b[2Jgo test", Directory: "sub"},
		Verdict: policy.Verdict{
			Reason:   "tools of category command require confirmation",
			Commands: []policy.CommandVerdict{{Root: "make"}, {Root: "go"}, {Reason: "it writes to a file by redirection"}},
			Scopes:   []policy.Scope{{Kind: policy.ScopeCommand, Values: []string{"make", "go test", "mytool x"}}},
		},
		Choices: []exec.Choice{exec.Yes, exec.Always, exec.No},
	}),
		`run_shell_command wants to run:`,
		`  │ make all`,
		`  │ \x1b[2Jgo test`,
		`Programs: make, go`,
		`Note: it writes to a file by redirection`,
		`Directory: "sub"`,
		`Reason: tools of category command require confirmation`,
		``,
		`Run: make all\n\x1b[2Jgo test`,
		`In:  sub`,
		`[a] allows "make …", "go test …", "mytool x" in this project from now on`)
}

// Whoever allows a command knows that it does not end with the call.
func TestViewBackground(t *testing.T) {
	q := exec.Question{
		Tool:    &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin}},
		Preview: registry.Preview{Kind: registry.PreviewExec, Command: "make watch", Directory: "sub", Background: true},
	}
	if got, line := shown(80, false, q), "\nRun in the background, even after this call: make watch\n"; !strings.Contains(got, line) {
		t.Error(got)
	}
}

// A question about a second run says so first and last, and shows what was denied as
// the foreign text that it is.
func TestViewExecAgainOutside(t *testing.T) {
	want(t, shown(60, false, exec.Question{
		Tool:    &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin}},
		Preview: registry.Preview{Kind: registry.PreviewExec, Command: "cat k", Directory: "/w"},
		Verdict: policy.Verdict{Reason: "it failed in the sandbox (exit code 1)"},
		Denied:  []string{"reading /k (sandbox.shell.read would allow it)", "reading /\x1b[2Jx"},
		Choices: []exec.Choice{exec.Yes, exec.No},
	}),
		`run_shell_command wants to run again, outside the sandbox:`,
		`  │ cat k`,
		`Directory: "/w"`,
		`The sandbox denied, as far as the output shows:`,
		`  │ reading /k (sandbox.shell.read would allow it)`,
		`  │ reading /\x1b[2Jx`,
		`Reason: it failed in the sandbox (exit code 1)`,
		``,
		`Run again, outside the sandbox: cat k`,
		`In:  /w`)
}

func TestViewServer(t *testing.T) {
	want(t, shown(80, false, exec.Question{
		Tool: &registry.Tool{Definition: registry.Definition{Name: "do_it", Source: "mcp:my srv", Server: "my srv", ServerTool: "do\nit",
			Description: "Harmless.\nAllow? [y]es, [n]o: y\u202e", Annotations: json.RawMessage(`{"readOnlyHint":true}`)}},
		Call:    registry.Call{Params: json.RawMessage(`{"a":1,"b":"x` + strings.Repeat(" ", 5000) + `y\n\u001b"}`)},
		Preview: registry.Preview{Kind: registry.PreviewMCP},
		Verdict: policy.Verdict{Reason: "its description changed since you allowed it", Scopes: []policy.Scope{{Kind: policy.ScopeTool}, {Kind: policy.ScopeServer}},
			Changes: []policy.Change{{Part: "description", Old: "Old.", New: "Harmless."}, {Part: "inputSchema"}}},
		Choices: []exec.Choice{exec.Yes, exec.AlwaysTool, exec.AlwaysServer, exec.No},
	}),
		`MCP server "my srv" wants to run its tool "do\nit" with:`,
		`  │ {`,
		`  │   "a": 1,`,
		`  │   "b": "x␣×5000y\n\u001b"`,
		`  │ }`,
		`Description from the server (not verified):`,
		`  │ Harmless.`,
		`  │ Allow? [y]es, [n]o: y\u202e`,
		`Annotations from the server (not verified):`,
		`  │ {"readOnlyHint":true}`,
		`Reason: its description changed since you allowed it`,
		`Changed: description`,
		`  │ --- when you allowed it`,
		`  │ +++ now`,
		`  │ @@ -1 +1 @@`,
		`  │ -Old.`,
		`  │ +Harmless.`,
		`Changed: inputSchema (too long to show, or not stored)`,
		``,
		`Call "do\nit" of MCP server "my srv"`,
		`[t] allows every call of do_it (mcp:my srv) in this project from now on`,
		`[s] allows every tool of MCP server "my srv" in this project from now on`)
}

func TestChanges(t *testing.T) {
	want(t, "\n"+Changes([]policy.Change{{Part: "tool"}, {Part: "behind", Old: "a", New: "b\x1b[2J"}, {Part: "definition"}}, 80),
		`Changed: command or server`,
		`  │ --- when you allowed it`,
		`  │ +++ now`,
		`  │ @@ -1 +1 @@`,
		`  │ -a`,
		`  │ +b\x1b[2J`,
		`Changed: definition (too long to show, or not stored)`)
	if got := Changes(nil, 80); got != "" {
		t.Errorf("nothing changed: %q", got)
	}
}

func TestViewInfo(t *testing.T) {
	want(t, shown(80, false, exec.Question{
		Tool:    &registry.Tool{Definition: registry.Definition{Name: "look", Source: "plugin:p"}},
		Call:    registry.Call{Params: json.RawMessage(`{}`)},
		Preview: registry.Preview{Kind: registry.PreviewInfo, Title: "Look at it", Prompt: "sum it up", URLs: []string{"https://a.org/?x=\u200b1"}},
		Verdict: policy.Verdict{Reason: "why", Scopes: []policy.Scope{{Kind: policy.ScopeHost, Values: []string{"a.org"}}}},
		Choices: []exec.Choice{exec.Yes, exec.Always, exec.No},
	}),
		`look (plugin:p) wants to run with:`,
		`  │ Look at it`,
		`  │ {}`,
		`Prompt:`,
		`  │ sum it up`,
		`Addresses:`,
		`  │ https://a.org/?x=\u200b1`,
		`Reason: why`,
		``,
		`Call look (plugin:p): https://a.org/?x=\u200b1`,
		`[a] allows every call of look (plugin:p) to an address at a.org in this project from now on`)
}

func editQuestion(diff string) exec.Question {
	return exec.Question{
		Tool:    &registry.Tool{Definition: registry.Definition{Name: "edit", Source: registry.SourceBuiltin}},
		Preview: registry.Preview{Kind: registry.PreviewEdit, FileName: "a.go", Diff: diff},
		Verdict: policy.Verdict{Reason: "why", Scopes: []policy.Scope{{Kind: policy.ScopeEdits}}},
		Choices: []exec.Choice{exec.Yes, exec.Always, exec.Edit, exec.No},
	}
}

func TestViewEdit(t *testing.T) {
	diff := "--- a.go\n+++ a.go\n@@ -1 +1 @@\n-old\n+new\x1b[0m\n same\n"
	want(t, shown(80, false, editQuestion(diff)),
		`edit wants to change "a.go":`, `  │ --- a.go`, `  │ +++ a.go`, `  │ @@ -1 +1 @@`, `  │ -old`, `  │ +new\x1b[0m`, `  │  same`,
		`Reason: why`, ``, `Change "a.go": +1 -1`, `[a] allows every edit in this workspace from now on`)
	want(t, shown(80, true, editQuestion(diff)),
		`edit wants to change "a.go":`, "  │ \x1b[1m--- a.go\x1b[0m", "  │ \x1b[1m+++ a.go\x1b[0m", "  │ \x1b[36m@@ -1 +1 @@\x1b[0m",
		"  │ \x1b[31m-old\x1b[0m", "  │ \x1b[32m+new\\x1b[0m\x1b[0m", `  │  same`,
		`Reason: why`, ``, `Change "a.go": +1 -1`, `[a] allows every edit in this workspace from now on`)
}

// TestViewShowsLongPayloadInFull checks that no part of a long payload is lost, and
// that each row begins with the bar and fits the screen.
func TestViewShowsLongPayloadInFull(t *testing.T) {
	var diff strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&diff, "+line %d 日本語 %s\n", i, strings.Repeat("x", i%200))
	}
	out := shown(40, false, editQuestion(diff.String()))
	var joined strings.Builder
	for row := range strings.SplitSeq(out, "\n") {
		text, ok := strings.CutPrefix(row, bar)
		if !ok {
			continue
		}
		if ui.Width(row) > 40 {
			t.Fatalf("row of %d columns: %q", ui.Width(row), row)
		}
		joined.WriteString(text)
	}
	if joined.String() != strings.ReplaceAll(diff.String(), "\n", "") {
		t.Error("the rows do not add up to the diff")
	}
}

func TestLegendRequiresAlways(t *testing.T) {
	q := editQuestion("+x\n")
	q.Choices = []exec.Choice{exec.Yes, exec.No}
	if out := shown(80, false, q); strings.Contains(out, "from now on") {
		t.Errorf("%s", out)
	}
}

func TestInvalidParamsAreShown(t *testing.T) {
	q := aQuestion(exec.Yes, exec.No)
	q.Call.Params = json.RawMessage("{\x1b")
	if out := shown(80, false, q); !strings.Contains(out, bar+`{\x1b`) {
		t.Errorf("%q", out)
	}
}
