package asking

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

func question(v *ui.View, q *exec.Question) {
	v.Printf("")
	switch q.Preview.Kind {
	case registry.PreviewEdit:
		v.Printf("%s wants to change %s:", toolName(q.Tool), name(q.Preview.FileName))
		v.Diff(q.Preview.Diff)
	case registry.PreviewExec:
		command(v, q)
	case registry.PreviewMCP:
		showServer(v, q)
	default:
		info(v, q)
	}
	if len(q.Denied) > 0 {
		v.Printf("The sandbox denied, as far as the output shows:")
		for _, access := range q.Denied {
			v.Quote(ui.Line(access))
		}
	}
	if sandbox := q.Verdict.Confine.String(); sandbox != "" {
		v.Printf("Sandbox: %s", ui.Line(sandbox))
	}
	v.Printf("Reason: %s", ui.Line(q.Verdict.Reason))
	showChanges(v, q.Verdict.Changes)
	v.Printf("")
}

func command(v *ui.View, q *exec.Question) {
	v.Printf("%s wants to run%s:", toolName(q.Tool), repeatNote(q))
	v.Quote(commandOf(q))
	if roots := q.Verdict.Roots(); len(roots) > 0 {
		v.Printf("Programs: %s", ui.Line(strings.Join(roots, ", ")))
	}
	for _, c := range q.Verdict.Commands {
		if c.Root == "" && c.Decision == policy.Ask {
			v.Printf("Note: %s", ui.Line(c.Reason))
		}
	}
	dir := q.Preview.Directory
	if dir == "" || dir == "." {
		v.Printf("Directory: the workspace")
		return
	}
	v.Printf("Directory: %s", name(dir))
}

func showServer(v *ui.View, q *exec.Question) {
	if q.Tool.IsMCP() {
		v.Printf("MCP server %s wants to run its tool %s with:", name(q.Tool.Server), name(q.Tool.ServerTool))
	} else {
		v.Printf("This would %s with:", ui.Line(q.Preview.Title))
	}
	params(v, q.Call.Params)
	if d := strings.TrimSpace(q.Tool.Description); d != "" {
		v.Printf("Description from the server (not verified):")
		v.Quote(d)
	}
	if a := q.Tool.Annotations; len(a) > 0 {
		v.Printf("Annotations from the server (not verified):")
		v.Quote(string(a))
	}
}

func info(v *ui.View, q *exec.Question) {
	v.Printf("%s wants to run with:", toolName(q.Tool))
	if q.Preview.Title != "" {
		v.Quote(q.Preview.Title)
	}
	params(v, q.Call.Params)
	if q.Preview.Prompt != "" {
		v.Printf("Prompt:")
		v.Quote(q.Preview.Prompt)
	}
	if len(q.Preview.URLs) > 0 {
		v.Printf("Addresses:")
		for _, u := range q.Preview.URLs {
			v.Quote(ui.Line(u))
		}
	}
}

// params shows every param in full, strings without quotes.
func params(v *ui.View, params json.RawMessage) {
	var out bytes.Buffer
	if err := json.Indent(&out, params, "", "  "); err != nil {
		v.Quote(string(params))
		return
	}
	v.Quote(out.String())
}

// Changes formats the changes to a tool since it was approved, for width columns; ""
// if there are none.
func Changes(list []policy.Change, width int) string {
	v := ui.View{Width: width}
	showChanges(&v, list)
	return v.Take()
}

// showChanges shows what has changed since the tool was approved.
func showChanges(v *ui.View, list []policy.Change) {
	for _, c := range list {
		part := c.Part
		if part == "behind" {
			part = "command or server"
		}
		switch {
		case c.Part == "tool":
		case c.Part == policy.PartValues:
			v.Printf("Changed: a value in its command, environment, headers or URL (not shown)")
		case c.Old == "" && c.New == "":
			v.Printf("Changed: %s (too long to show, or not stored)", part)
		default:
			v.Printf("Changed: %s", part)
			v.Diff(udiff.Unified("when you allowed it", "now", ui.EndLine(c.Old), ui.EndLine(c.New)))
		}
	}
}

// about summarizes the subject of a question and says what "always" would cover. It
// is short, so that it is on the screen together with the answers.
func about(v *ui.View, q *exec.Question) {
	brief(v, q)
	for _, c := range q.Choices {
		if more := allows(q, c); more != "" {
			v.Printf("[%s] allows %s from now on", c.String()[:1], more)
		}
	}
}

// allows says what an answer would allow from now on; "" if it is for this call alone.
func allows(q *exec.Question, c exec.Choice) string {
	s, ok := q.Scope(c)
	switch {
	case !ok:
		return ""
	case s.Confined:
		return covered(q.Tool, s) + ", in the sandbox,"
	case c == exec.AlwaysOutside:
		return covered(q.Tool, s) + ", outside the sandbox,"
	}
	return covered(q.Tool, s)
}

// covered describes the calls that a remembered answer would allow.
func covered(t *registry.Tool, s policy.Scope) string {
	switch s.Kind {
	case policy.ScopeServer:
		return "every tool of " + serverOf(t) + " in this project"
	case policy.ScopeCommand:
		return ui.Line(s.Covers()) + " in this project"
	case policy.ScopeHost:
		return "every call of " + toolName(t) + " to an address at " +
			ui.Line(strings.Join(s.Values, ", ")) + " in this project"
	case policy.ScopeEdits:
		return "every edit in this workspace"
	}
	return "every call of " + toolName(t) + " in this project"
}

// serverOf names the server or API of a tool.
func serverOf(t *registry.Tool) string {
	if t.IsMCP() {
		return "MCP server " + name(t.Server)
	}
	return "API " + name(t.Server)
}

// brief describes in one or two lines what the call would do.
func brief(v *ui.View, q *exec.Question) {
	if q.Call.Place != "" {
		v.Line("In the script, at " + ui.Line(q.Call.Place))
	}
	switch p := q.Preview; {
	case p.Kind == registry.PreviewEdit:
		added, removed := ui.DiffCounts(p.Diff)
		v.Line("Change " + name(p.FileName) + fmt.Sprintf(": +%d -%d", added, removed))
	case p.Kind == registry.PreviewExec:
		run := "Run" + repeatNote(q) + ": "
		if p.Background {
			run = "Run in the background, even after this call: "
		}
		v.Line(run + ui.Line(commandOf(q)))
		v.Line("In:  " + ui.Line(cmp.Or(p.Directory, ".")))
	case p.Kind == registry.PreviewMCP:
		v.Line("Call " + name(q.Tool.ServerTool) + " of " + serverOf(q.Tool))
	case len(p.URLs) > 0:
		v.Line("Call " + toolName(q.Tool) + ": " + ui.Line(strings.Join(p.URLs, ", ")))
	default:
		v.Line("Call " + toolName(q.Tool))
	}
}

// repeatNote says that a call would run for the second time; "" if it would not.
func repeatNote(q *exec.Question) string {
	if len(q.Denied) == 0 {
		return ""
	}
	return " again, outside the sandbox"
}

// commandOf returns the command line that a call would run.
func commandOf(q *exec.Question) string { return cmp.Or(q.Preview.Command, string(q.Call.Params)) }

// toolName returns the name of a tool with its source, both of which may be
// foreign text.
func toolName(t *registry.Tool) string {
	if t.Source == registry.SourceBuiltin {
		return ui.Line(t.Name)
	}
	return ui.Line(t.Name) + " (" + ui.Line(t.Source) + ")"
}

// name quotes a foreign name.
func name(s string) string { return `"` + ui.Line(s) + `"` }

// Covers returns what an answer would allow from now on; "" if it is for this call alone.
func Covers(q *exec.Question, c exec.Choice) string { return strings.TrimSuffix(allows(q, c), ",") }

// Prompt returns a question about a call as data.
func Prompt(q exec.Question) exec.Prompt {
	p := exec.Prompt{Tool: q.Tool.Name, Source: q.Tool.Source, Server: q.Tool.Server,
		Place: q.Call.Place, Kind: cmp.Or(q.Preview.Kind, registry.PreviewInfo),
		Params: q.Call.Params, Text: Text(&q), Diff: q.Preview.Diff, Command: q.Preview.Command,
		Choices: q.Words(), Covers: map[string]string{}, Reason: q.Verdict.Reason, Origin: q.Verdict.Origin}
	if p.Kind == registry.PreviewExec {
		p.Directory = cmp.Or(q.Preview.Directory, ".")
	}
	for _, word := range p.Choices {
		choice, _ := q.Choice(word)
		if covers := Covers(&q, choice); covers != "" {
			p.Covers[word] = covers
		}
	}
	return p
}

// Text returns a question about a call as plain text, for a person who is asked somewhere
// other than at this terminal.
func Text(q *exec.Question) string {
	v := ui.View{Width: 80}
	v.Printf("%s", Body(q))
	for _, c := range q.Choices {
		if more := allows(q, c); more != "" && c != exec.AlwaysServer && c != exec.AlwaysOutside {
			v.Printf("%q allows %s from now on", exec.Always.String(), more)
		}
	}
	return strings.TrimSpace(v.Take())
}

// Body is [Text] without what the answers cover.
func Body(q *exec.Question) string {
	v := ui.View{Width: 80}
	question(&v, q)
	brief(&v, q)
	return strings.TrimSpace(v.Take())
}
