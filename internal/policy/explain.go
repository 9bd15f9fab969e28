package policy

import (
	"cmp"
	"context"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// RuleReport says whether a rule matches a call, or one part of its command line.
type RuleReport struct {
	Rule *Rule
	// Part is the part of the command line that the report is about; "" if it is
	// about the call.
	Part    string
	Matches bool
	// Unmet is the first condition that the call does not meet, by its key in the
	// settings. Value is the corresponding value of the call; "" if it has none.
	Unmet, Value string
	// Failed is the error of the rule's expression; nil if it could be evaluated.
	Failed error
}

// Explain compares a call with all rules, in order, and reports which ones match.
func (p *Policy) Explain(ctx context.Context, t *registry.Tool, call registry.Call) ([]RuleReport, error) {
	d, err := p.decision(ctx, t, call)
	if err != nil {
		return nil, err
	}
	return d.explain(), nil
}

// ExplainTool is like [Policy.Explain] for a tool as a whole, as in
// [Policy.DecideTool].
func (p *Policy) ExplainTool(ctx context.Context, t *registry.Tool) []RuleReport {
	return (&decision{ctx: ctx, policy: p, tool: t, whole: true}).explain()
}

func (d *decision) explain() []RuleReport {
	var line shell.Line
	if d.subject.Command != "" {
		line = d.readLine()
	}
	var out []RuleReport
	for i := range d.policy.Rules {
		out = append(out, d.explainRule(&d.policy.Rules[i], line)...)
	}
	return out
}

// explainRule reports separately about each part of the line if the other
// conditions are met.
func (d *decision) explainRule(r *Rule, line shell.Line) []RuleReport {
	report := RuleReport{Rule: r, Unmet: cmp.Or(r.unmetCaller(d.caller(), d.anyClient), d.unmet(r))}
	if r.When != nil && !d.whole && d.ruleNames(r) {
		report.Failed = d.evaluate(r.When).err
	}
	if report.Unmet == "" && !d.isPlain(r) && len(line.Commands) == 0 {
		report.Unmet = conditionCommand
	}
	report.Matches = report.Unmet == ""
	if report.Failed == nil {
		report.Value = d.valueOf(report.Unmet)
	}
	if !report.Matches || len(line.Commands) == 0 {
		return []RuleReport{report}
	}
	var out []RuleReport
	for i := range line.Commands {
		part := report
		part.Part = line.Commands[i].Text
		if part.Matches = d.ruleCommand(r, &line.Commands[i]) == shell.Yes; !part.Matches {
			part.Unmet, part.Value = conditionCommand, d.subject.Command
		}
		out = append(out, part)
	}
	return out
}

// valueOf returns the value of the call that a rule's condition is compared with.
func (d *decision) valueOf(condition string) string {
	switch condition {
	case conditionTool:
		return d.tool.Name
	case conditionSource:
		return d.tool.Source
	case conditionServer:
		return d.tool.Server
	case conditionCategory:
		return string(d.category())
	case conditionAnnotations:
		return string(d.tool.Annotations)
	case conditionClient:
		return caller.Name(d.ctx)
	case conditionGroup:
		return strings.Join(caller.Groups(d.ctx), ", ")
	case conditionProfile:
		return caller.Profile(d.ctx)
	case conditionPath:
		return strings.Join(d.subject.Paths, ", ")
	case conditionWhen:
		if !d.whole {
			return "false"
		}
	}
	return ""
}

// Matches reports whether a rule matches a call, regardless of other rules and of who makes the
// call. A rule that loosens must match all parts of a command line, other rules at least one.
func (p *Policy) Matches(ctx context.Context, r *Rule, t *registry.Tool, call registry.Call) (bool, error) {
	alone := *p
	alone.Rules, alone.Callers = []Rule{*r}, nil
	alone.Rules[0].Client, alone.Rules[0].Group, alone.Rules[0].Profile = "", "", ""
	reports, err := alone.Explain(ctx, t, call)
	for _, report := range reports {
		if report.Failed != nil {
			return false, report.Failed
		}
		if report.Matches != r.isNarrow() {
			return report.Matches, nil
		}
	}
	return r.isNarrow() && err == nil, err
}
