package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// view draws questions. Text from a tool, a server or a model is shown in full,
// with a bar before each line, so that it cannot be mistaken for toolreg's own text.
type view struct {
	width int
	color bool
	b     strings.Builder
}

const bar = "  │ "

func (v *view) question(q exec.Question) string {
	v.b.WriteString("\n")
	switch q.Preview.Kind {
	case registry.PreviewEdit:
		v.edit(q)
	case registry.PreviewExec:
		v.exec(q)
	case registry.PreviewMCP:
		v.server(q)
	default:
		v.info(q)
	}
	if len(q.Denied) > 0 {
		v.printf("The sandbox denied, as far as the output shows:")
		for _, access := range q.Denied {
			v.quote(Line(access))
		}
	}
	if sandbox := q.Verdict.Confine.String(); sandbox != "" {
		v.printf("Sandbox: %s", Line(sandbox))
	}
	v.printf("Reason: %s", Line(q.Verdict.Reason))
	v.changes(q.Verdict.Changes)
	v.b.WriteString("\n")
	return v.b.String()
}

// printf writes a line of toolreg's own.
func (v *view) printf(format string, args ...any) {
	fmt.Fprintf(&v.b, format+"\n", args...)
}

// quote writes a block of foreign text in full.
func (v *view) quote(text string) {
	for l := range strings.SplitSeq(strings.TrimRight(payload(text), "\n"), "\n") {
		v.row([]Span{{Text: strings.ReplaceAll(l, "\t", "    ")}})
	}
}

// prose is quote for text to read rather than to decide on: it is wrapped
// between words.
func (v *view) prose(text string) {
	for l := range strings.SplitSeq(strings.TrimSpace(payload(text)), "\n") {
		for _, row := range WrapSpans([]Span{{Text: strings.ReplaceAll(l, "\t", "    ")}}, max(v.width-Width(bar)-1, 20)) {
			v.row(row)
		}
	}
}

// row writes one line, broken at the width of the screen so that every row begins
// with the bar.
func (v *view) row(spans []Span) {
	room := max(v.width-Width(bar)-1, 20)
	for {
		head, rest := SplitSpans(spans, room)
		v.b.WriteString(bar + Paint(head, v.color) + "\n")
		if len(rest) == 0 {
			return
		}
		spans = rest
	}
}

// diff writes a unified diff in full.
func (v *view) diff(text string) {
	for _, row := range Diff(strings.ReplaceAll(payload(text), "\t", "    ")) {
		v.row(row)
	}
}

// DiffText formats a unified diff of foreign text in full, with bars as in questions,
// for a screen with width columns.
func DiffText(diff string, width int, color bool) string {
	v := view{width: width, color: color}
	v.diff(diff)
	return v.b.String()
}

func (v *view) edit(q exec.Question) {
	v.printf("%s wants to change %s:", toolName(q.Tool), name(q.Preview.FileName))
	v.diff(q.Preview.Diff)
}

func (v *view) exec(q exec.Question) {
	v.printf("%s wants to run%s:", toolName(q.Tool), again(q))
	v.quote(commandOf(q))
	if roots := q.Verdict.Roots(); len(roots) > 0 {
		v.printf("Programs: %s", Line(strings.Join(roots, ", ")))
	}
	for _, c := range q.Verdict.Commands {
		if c.Root == "" && c.Decision == policy.Ask {
			v.printf("Note: %s", Line(c.Reason))
		}
	}
	dir := q.Preview.Directory
	if dir == "" || dir == "." {
		v.printf("Directory: the workspace")
		return
	}
	v.printf("Directory: %s", name(dir))
}

func (v *view) server(q exec.Question) {
	if q.Tool.IsMCP() {
		v.printf("MCP server %s wants to run its tool %s with:", name(q.Tool.Server), name(q.Tool.ServerTool))
	} else {
		v.printf("This would %s with:", Line(q.Preview.Title))
	}
	v.params(q.Call.Params)
	if d := strings.TrimSpace(q.Tool.Description); d != "" {
		v.printf("Description from the server (not verified):")
		v.quote(d)
	}
	if a := q.Tool.Annotations; len(a) > 0 {
		v.printf("Annotations from the server (not verified):")
		v.quote(string(a))
	}
}

func (v *view) info(q exec.Question) {
	v.printf("%s wants to run with:", toolName(q.Tool))
	if q.Preview.Title != "" {
		v.quote(q.Preview.Title)
	}
	v.params(q.Call.Params)
	if q.Preview.Prompt != "" {
		v.printf("Prompt:")
		v.quote(q.Preview.Prompt)
	}
	if len(q.Preview.URLs) > 0 {
		v.printf("Addresses:")
		for _, u := range q.Preview.URLs {
			v.quote(Line(u))
		}
	}
}

// params shows every param in full, strings without quotes.
func (v *view) params(params json.RawMessage) {
	var out bytes.Buffer
	if err := json.Indent(&out, params, "", "  "); err != nil {
		v.quote(string(params))
		return
	}
	v.quote(out.String())
}

// Changes formats the changes to a tool since it was approved, for width columns; ""
// if there are none.
func Changes(list []policy.Change, width int) string {
	v := view{width: width}
	v.changes(list)
	return v.b.String()
}

// changes shows what has changed since the tool was approved.
func (v *view) changes(changes []policy.Change) {
	for _, c := range changes {
		part := c.Part
		if part == "behind" {
			part = "command or server"
		}
		switch {
		case c.Part == "tool":
		case c.Part == policy.PartValues:
			v.printf("Changed: a value in its command, environment, headers or URL (not shown)")
		case c.Old == "" && c.New == "":
			v.printf("Changed: %s (too long to show, or not stored)", part)
		default:
			v.printf("Changed: %s", part)
			v.diff(udiff.Unified("when you allowed it", "now", lines(c.Old), lines(c.New)))
		}
	}
}

func lines(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// about summarizes the subject of a question and says what "always" would cover. It
// is short, so that it is on the screen together with the answers.
func (v *view) about(q exec.Question) {
	v.brief(q)
	for _, s := range q.Verdict.Scopes {
		if c, ok := scopeChoice(q, s); ok {
			v.printf("[%s] allows %s%s from now on", c.String()[:1], covered(q.Tool, s), where(c, s))
		}
	}
}

// scopeChoice returns the answer that remembers a scope; false if it is not offered.
func scopeChoice(q exec.Question, s policy.Scope) (exec.Choice, bool) {
	c := exec.Always
	if s.Kind == policy.ScopeServer {
		c = exec.AlwaysServer
	} else if s.Kind == policy.ScopeCommand && !s.Confined && slices.Contains(q.Choices, exec.AlwaysOutside) {
		c = exec.AlwaysOutside
	} else if slices.Contains(q.Choices, exec.AlwaysTool) {
		c = exec.AlwaysTool
	}
	return c, slices.Contains(q.Choices, c)
}

// where says that a remembered answer is about the sandbox; "" if it is not.
func where(c exec.Choice, s policy.Scope) string {
	switch {
	case s.Confined:
		return ", in the sandbox,"
	case c == exec.AlwaysOutside:
		return ", outside the sandbox,"
	}
	return ""
}

// covered describes the calls that a remembered answer would allow.
func covered(t *registry.Tool, s policy.Scope) string {
	switch s.Kind {
	case policy.ScopeServer:
		return "every tool of " + serverOf(t) + " in this project"
	case policy.ScopeCommand:
		return Line(s.Covers()) + " in this project"
	case policy.ScopeHost:
		return "every call of " + toolName(t) + " to an address at " + Line(strings.Join(s.Values, ", ")) + " in this project"
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
func (v *view) brief(q exec.Question) {
	if q.Call.Place != "" {
		v.line("In the script, at " + Line(q.Call.Place))
	}
	switch p := q.Preview; {
	case p.Kind == registry.PreviewEdit:
		added, removed := DiffCounts(p.Diff)
		v.line("Change " + name(p.FileName) + fmt.Sprintf(": +%d -%d", added, removed))
	case p.Kind == registry.PreviewExec:
		run := "Run" + again(q) + ": "
		if p.Background {
			run = "Run in the background, even after this call: "
		}
		v.line(run + Line(commandOf(q)))
		v.line("In:  " + Line(cmp.Or(p.Directory, ".")))
	case p.Kind == registry.PreviewMCP:
		v.line("Call " + name(q.Tool.ServerTool) + " of " + serverOf(q.Tool))
	case len(p.URLs) > 0:
		v.line("Call " + toolName(q.Tool) + ": " + Line(strings.Join(p.URLs, ", ")))
	default:
		v.line("Call " + toolName(q.Tool))
	}
}

// again says that a call would run for the second time; "" if it would not.
func again(q exec.Question) string {
	if len(q.Denied) == 0 {
		return ""
	}
	return " again, outside the sandbox"
}

// line writes a line that may end in foreign text, cut to one row.
func (v *view) line(text string) { v.printf("%s", Cut(text, max(v.width-1, 40))) }

// commandOf returns the command line that a call would run.
func commandOf(q exec.Question) string { return cmp.Or(q.Preview.Command, string(q.Call.Params)) }

// toolName returns the name of a tool with its source, both of which may be
// foreign text.
func toolName(t *registry.Tool) string {
	if t.Source == registry.SourceBuiltin {
		return Line(t.Name)
	}
	return Line(t.Name) + " (" + Line(t.Source) + ")"
}

// name quotes a foreign name.
func name(s string) string { return `"` + Line(s) + `"` }

// Covers returns what each answer that is remembered would allow from now on.
func Covers(q exec.Question) map[exec.Choice]string {
	out := map[exec.Choice]string{}
	for _, s := range q.Verdict.Scopes {
		if c, ok := scopeChoice(q, s); ok {
			out[c] = covered(q.Tool, s) + strings.TrimSuffix(where(c, s), ",")
		}
	}
	return out
}

// Prompt returns a question about a call as data.
func Prompt(q exec.Question) exec.Prompt {
	p := exec.Prompt{Tool: q.Tool.Name, Source: q.Tool.Source, Server: q.Tool.Server, Place: q.Call.Place, Kind: cmp.Or(q.Preview.Kind, registry.PreviewInfo),
		Params: q.Call.Params, Text: QuestionText(q), Diff: q.Preview.Diff, Command: q.Preview.Command, Choices: q.Words(), Covers: map[string]string{}, Reason: q.Verdict.Reason, Origin: q.Verdict.Origin}
	if p.Kind == registry.PreviewExec {
		p.Directory = cmp.Or(q.Preview.Directory, ".")
	}
	covers := Covers(q)
	for _, word := range p.Choices {
		if choice, _ := q.Choice(word); covers[choice] != "" {
			p.Covers[word] = covers[choice]
		}
	}
	return p
}

// QuestionText returns a question about a call as plain text, for a person who is
// asked somewhere other than at this terminal.
func QuestionText(q exec.Question) string {
	v := view{width: 80}
	v.printf("%s", QuestionBody(q))
	for _, s := range q.Verdict.Scopes {
		if c, ok := scopeChoice(q, s); ok && c != exec.AlwaysServer && c != exec.AlwaysOutside {
			v.printf("%q allows %s%s from now on", exec.Always.String(), covered(q.Tool, s), where(c, s))
		}
	}
	return strings.TrimSpace(v.b.String())
}

// QuestionBody is [QuestionText] without what the answers cover.
func QuestionBody(q exec.Question) string {
	v := view{width: 80}
	v.question(q)
	v.brief(q)
	return strings.TrimSpace(v.b.String())
}
