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
	f, err := p.factsOf(ctx, t, call)
	if err != nil {
		return nil, err
	}
	return f.explain(), nil
}

// ExplainTool is like [Policy.Explain] for a tool as a whole, as in
// [Policy.DecideTool].
func (p *Policy) ExplainTool(ctx context.Context, t *registry.Tool) []RuleReport {
	return p.factsOfTool(ctx, t, false).explain()
}

func (f *facts) explain() []RuleReport {
	var out []RuleReport
	for i := range f.policy.Rules {
		out = append(out, f.explainRule(&f.policy.Rules[i])...)
	}
	return out
}

// explainRule reports separately about each part of the line if the other
// conditions are met.
func (f *facts) explainRule(r *Rule) []RuleReport {
	report := RuleReport{Rule: r, Unmet: cmp.Or(r.unmetCaller(f.who, f.anyone), f.unmet(r))}
	if r.When != nil && f.call != nil && f.ruleNames(r) {
		report.Failed = f.evaluate(r.When).err
	}
	if report.Unmet == "" && !f.isPlain(r) && len(f.parts) == 0 {
		report.Unmet = conditionCommand
	}
	report.Matches = report.Unmet == ""
	if report.Failed == nil {
		report.Value = f.valueOf(report.Unmet)
	}
	if !report.Matches || len(f.parts) == 0 {
		return []RuleReport{report}
	}
	var out []RuleReport
	for _, m := range f.parts {
		part := report
		part.Part = m.part.Text
		if part.Matches = f.ruleCommand(r, m.part) == shell.Yes; !part.Matches {
			part.Unmet, part.Value = conditionCommand, f.subject.Command
		}
		out = append(out, part)
	}
	return out
}

// valueOf returns the value of the call that a rule's condition is compared with.
func (f *facts) valueOf(condition string) string {
	switch condition {
	case conditionTool:
		return f.tool.Name
	case conditionSource:
		return f.tool.Source
	case conditionServer:
		return f.tool.Server
	case conditionCategory:
		return string(f.category)
	case conditionAnnotations:
		return string(f.tool.Annotations)
	case conditionClient:
		return caller.Name(f.ctx)
	case conditionGroup:
		return strings.Join(caller.Groups(f.ctx), ", ")
	case conditionProfile:
		return caller.Profile(f.ctx)
	case conditionPath:
		return strings.Join(f.subject.Paths, ", ")
	case conditionWhen:
		if f.call != nil {
			return "false"
		}
	}
	return ""
}

// Matches reports whether a rule matches a call, regardless of other rules and of the caller. A
// rule that loosens must match all parts of a command line, other rules at least one.
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
