// Package whycmd implements the command why, which shows which setting or rule
// decides about a call.
package whycmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/approvalscmd"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// New returns the command why.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "why TOOL [k=v…]",
		Short: "Explain which setting or rule decides about a call",
		Long: `Show whether a tool is registered and, if not, which setting hides it; whether
a call would be allowed, asked about or denied, and by which rule, approval or
default; and what would allow it. Nothing is run and nobody is asked.

Give params as for call. Without params the answer is for the tool as a whole:
rules on commands, paths, addresses and params are then ignored.

TOOL may be a glob such as 'github__*'. The answer is then given for each tool that
it matches.

With --explain every rule is listed in order, with the condition that the call
does not meet and the value in the call.

Exit codes: 0 (whatever the answer is), 2, 3 (no such tool), 4 (invalid
params), 8 (its source failed).`,
		Example: `  toolreg why write_file file_path=go.mod content=x
  toolreg why run_shell_command command='git log | sudo tee log'
  toolreg why github__create_issue --explain --json`,
		Args:              cli.ArgsBetween(1, -1, "the name of a tool"),
		ValidArgsFunction: complete.Args(e.Complete().Tools(), e.Complete().Params()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return run(cmd.Context(), e, o, argv[0], argv[1:])
		},
	}
	o.Flags(cmd)
	cmd.Flags().BoolVar(&o.explain, "explain", false, "list every rule in order and say why it matches or does not")
	return cmd
}

type options struct {
	cli.ParamsOptions
	explain bool
}

// Document is the JSON of why.
type Document struct {
	Tool       string `json:"tool"`
	Registered bool   `json:"registered"` // it can be called
	Source     string `json:"source,omitempty"`
	// Category is that of a built-in tool if the tool has its name and is decided no more loosely.
	Category registry.Category       `json:"category,omitempty"`
	Hidden   *registry.Hidden        `json:"hidden,omitempty"`   // why it is not registered
	Decision *policy.Decision        `json:"decision,omitempty"` // the policy's decision about the call
	Rule     *whyRule                `json:"rule,omitempty"`     // what decided
	Commands []policy.CommandVerdict `json:"commands,omitempty"` // for a shell command line: each command in it
	Approval *approvalscmd.Approval  `json:"approval,omitempty"` // the approval that applies, or no longer does
	Changes  []policy.Change         `json:"changes,omitempty"`  // why an approval no longer applies
	Override *cli.Override           `json:"override,omitempty"` // the override that changes the tool
	Hint     string                  `json:"hint,omitempty"`     // what would allow the call
	Note     string                  `json:"note,omitempty"`
	Rules    []ruleReport            `json:"rules,omitempty"` // with --explain
	// Sandbox is how the program of a tool that starts one would run.
	Sandbox     *whySandbox         `json:"sandbox,omitempty"`
	Description string              `json:"description,omitempty"` // what the call would do
	Locations   []registry.Location `json:"locations,omitempty"`   // files that the call would touch
}

// whyRule describes what decided: a rule with its conditions, an approval, the approval
// mode or a default.
type whyRule struct {
	Decision policy.Decision `json:"decision"`
	Reason   string          `json:"reason"`
	Origin   string          `json:"origin"`
	Clause   string          `json:"clause"` // name of the clause of the policy that decided
	conditions
}

func newWhyRule(v policy.Verdict) *whyRule {
	r := &whyRule{Decision: v.Decision, Reason: v.Reason, Origin: v.Origin, Clause: v.Clause}
	if v.Rule != nil {
		r.conditions = conditionsOf(v.Rule)
	}
	return r
}

// whySandbox describes how the program of a call would run.
type whySandbox struct {
	Confined bool   `json:"confined"`
	By       string `json:"by,omitempty"`      // the rule, setting or flag that selects the sandbox
	Missing  string `json:"missing,omitempty"` // why the sandbox is not available
	Allows   string `json:"allows,omitempty"`  // what it may do, or could do in a sandbox
	text     string
}

func newWhySandbox(c policy.Confinement) *whySandbox {
	if c.Allows == nil && !c.On && c.Missing == "" {
		return nil
	}
	s := &whySandbox{Confined: c.On, By: c.By, Missing: c.Missing, text: c.String()}
	if c.Allows != nil {
		s.Allows = c.Allows()
	}
	return s
}

func run(ctx context.Context, e *cli.Env, o *options, name string, argv []string) error {
	if err := o.Check(); err != nil {
		return err
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	reg, tools, err := e.Engine.FindTools(ctx, s, name, false)
	if d, ok := hiddenAnswer(name, err); ok {
		return e.IO.PrintText(d, whyText(d, e.IO))
	}
	if err != nil {
		return err
	}
	p, err := s.Calls.Policy(reg)
	if err != nil {
		return err
	}
	for i, tool := range tools {
		params, err := e.Config.Params(ctx, &o.ParamsOptions, tool, argv)
		if err != nil {
			return err
		}
		call := registry.Call{Tool: tool.Name, Params: params}
		if !text.IsGlob(name) {
			call.Tool = name
		}
		d, err := answer(ctx, s, reg, p, tool, call, o.explain)
		if err != nil {
			return err
		}
		if i > 0 && !e.IO.JSON {
			fmt.Fprintln(e.IO.Out)
		}
		if err := e.IO.PrintText(d, whyText(d, e.IO)); err != nil {
			return err
		}
	}
	return nil
}

// hiddenAnswer returns the answer about a tool that was not found because it is hidden; false
// for other errors.
func hiddenAnswer(name string, err error) (Document, bool) {
	missing, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok || missing.Hidden == nil {
		return Document{}, false
	}
	return Document{Tool: name, Source: missing.Hidden.Source, Hidden: missing.Hidden}, true
}

// Explain answers for a tool that was looked up by name; err is the error of the lookup. params are
// one JSON object; empty means none. With rules it lists every rule.
func Explain(ctx context.Context, s *engine.Session, f engine.Found,
	name string, notFound error, params []byte, rules bool) (Document, error) {
	if d, ok := hiddenAnswer(name, notFound); ok {
		return d, nil
	}
	if notFound != nil {
		return Document{}, notFound
	}
	p, err := s.Calls.Policy(f.Registry)
	if err != nil {
		return Document{}, err
	}
	if params, err = registry.DecodeParams(f.Tool.Name, params); err != nil {
		return Document{}, err
	}
	return answer(ctx, s, f.Registry, p, f.Tool,
		registry.Call{Tool: name, Params: engine.Restored(f.Tool, params)}, rules)
}

func answer(ctx context.Context, s *engine.Session, reg *registry.Registry, p *policy.Policy,
	tool *registry.Tool, call registry.Call, explained bool) (Document, error) {
	verdict, note, err := decideOn(ctx, reg, p, tool, call)
	if err != nil {
		return Document{}, err
	}
	d := Document{Tool: tool.Name, Registered: true, Source: tool.Source, Category: policy.RaisedCategory(tool),
		Decision: &verdict.Decision, Rule: newWhyRule(verdict), Commands: verdict.Commands,
		Approval: approvalOf(ctx, p.Approvals, verdict), Note: note}
	if note == "" {
		d.Description, d.Locations = describeCall(ctx, tool, call, s.Settings.Workspace)
	}
	if explained {
		if d.Rules, err = explain(ctx, p, tool, call, note != ""); err != nil {
			return Document{}, err
		}
	}
	if d.Override = cli.NewOverride(tool); d.Override != nil {
		d.Override.Shape = &tool.Definition
	}
	d.Changes, d.Sandbox = verdict.Changes, newWhySandbox(verdict.Confine)
	if verdict.Decision == policy.Ask {
		d.Hint = exec.Hint(tool, verdict)
	}
	return d, nil
}

// decideOn makes the decision that call would make. If no params were given for a tool
// that takes some, it decides about the tool as a whole, and the note says so.
func decideOn(ctx context.Context, reg *registry.Registry, p *policy.Policy,
	t *registry.Tool, call registry.Call) (v policy.Verdict, note string, err error) {
	err = exec.Check(ctx, reg.Validate, t, call)
	empty := string(bytes.Join(bytes.Fields(call.Params), nil)) == "{}"
	if _, invalid := errors.AsType[*registry.ArgsError](err); invalid && empty {
		note := "no params were given, so rules on commands, paths, addresses and params are ignored"
		if t.Confirm != nil {
			note += ", and so are the tool's own checks of certain params"
		}
		return p.DecideTool(ctx, t), note, nil
	}
	if err != nil {
		return v, "", err
	}
	return p.Decide(ctx, t, call), note, nil
}

// approvalOf returns the approval that allowed the call; nil if none did.
func approvalOf(ctx context.Context, store *policy.Approvals, v policy.Verdict) *approvalscmd.Approval {
	if v.Approval == "" {
		return nil
	}
	list, err := store.List(ctx, false)
	if err != nil {
		return nil // it was just removed; the verdict names it
	}
	for _, x := range list {
		if x.ID == v.Approval {
			out := approvalscmd.NewApproval(x)
			return &out
		}
	}
	return nil
}

// whyText formats the answer for a person: one field per line, the last of
// which says what to do.
func whyText(d Document, ios *cli.IO) string {
	var b strings.Builder
	field := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s%s\n", name+":", ui.Line(fmt.Sprintf(format, args...)))
	}
	field("tool", "%s", d.Tool)
	field("source", "%s", d.Source)
	if d.Category != "" {
		field("category", "%s, as that of the built-in tool whose name it has", d.Category)
	}
	if o := d.Override; o != nil {
		field("override", "%s", o.Origin)
		field("shape", "%s", signature(o.Shape))
		field("upstream", "%s", signature(o.Upstream))
	}
	if d.Hidden != nil {
		field("registered", "no")
		field("reason", "%s", d.Hidden.Reason)
		if d.Hidden.Setting != "" {
			field("set at", "%s", d.Hidden.Setting)
		}
		return b.String()
	}
	field("registered", "yes")
	field("decision", "%s", *d.Decision)
	field("reason", "%s", d.Rule.Reason)
	field("set at", "%s", d.Rule.Origin)
	field("clause", "%s", d.Rule.Clause)
	if match := d.Rule.match(); match != "" {
		field("rule", "%s", match)
	}
	for _, c := range d.Commands {
		text := c.Text
		if c.Root != "" && !strings.HasPrefix(text, c.Root) { // inside a wrapper
			text = c.Root + ", in: " + text
		}
		field("command", "%s: %s (%s; %s)", c.Decision, text, c.Reason, c.Origin)
	}
	if x := d.Approval; x != nil {
		field("approval", "%s (%s) of %s",
			x.ID, strings.TrimSpace(string(x.Kind)+" "+x.Value), x.Created.Local().Format(time.DateTime))
	}
	b.WriteString(asking.Changes(d.Changes, ios.WrapWidth()))
	if d.Sandbox != nil && d.Sandbox.text != "" {
		field("sandbox", "%s", d.Sandbox.text)
	}
	if d.Description != "" {
		field("would", "%s", d.Description)
	}
	for _, l := range d.Locations {
		field("at", "%s", l.Path)
	}
	if d.Note != "" {
		field("note", "%s", d.Note)
	}
	if d.Hint != "" {
		field("to allow", "%s", d.Hint)
	}
	for i, r := range d.Rules {
		field(fmt.Sprintf("rule %d", i+1), "%s", r)
	}
	return b.String()
}

// signature formats a tool as its name with its params; "?" marks optional
// params.
func signature(d *registry.Definition) string {
	var params []string
	for _, p := range args.Describe(d) {
		switch {
		case strings.ContainsRune(p.Name, '.'): // inside another param
		case p.Required:
			params = append(params, p.Name)
		default:
			params = append(params, p.Name+"?")
		}
	}
	return d.Name + "(" + strings.Join(params, ", ") + ")"
}
