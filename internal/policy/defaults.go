package policy

import (
	"cmp"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// isPlain reports whether a rule can match without knowing commands.
func (f *facts) isPlain(r *Rule) bool { return r.Command == "" || f.isBlindTo(r) && !r.isNarrow() }

// decidingRule returns the rule that decides of those that match; nil if none does.
func decidingRule(rules []*Rule, matches func(*Rule) bool) *Rule {
	for i, r := range rules {
		if matches(r) {
			return prevailing(rules[i:], matches)
		}
	}
	return nil
}

// prevailing returns the rule that decides if the first one matches: a rule of the caller's profile
// loosens no deny of a file that is read before it.
func prevailing(rules []*Rule, matches func(*Rule) bool) *Rule {
	first := rules[0]
	if first.Profile != "" && first.Decision != Deny {
		for _, r := range rules[1:] {
			if r.Decision == Deny && r.Layer < first.Layer && matches(r) {
				return r
			}
		}
	}
	return first
}

// verdictOf returns the verdict of a rule that matches.
func (f *facts) verdictOf(r *Rule) Verdict {
	v := Verdict{Origin: r.Origin, Rule: r}
	v.Decision, v.Reason = f.ruled(r)
	return v
}

// byDefault returns the verdict if no rule and no approval matches.
func (f *facts) byDefault() Verdict {
	v := f.ownDefault()
	n := f.bears
	if n == nil {
		return v
	}
	named := f.policy.factsOfTool(f.ctx,
		&registry.Tool{Definition: registry.Definition{Name: n.Name,
			Source: registry.SourceBuiltin, Category: n.Category}},
		f.anyone)
	if b := named.ownDefault(); stricter(v.Decision, b.Decision) != v.Decision {
		b.Reason = f.underName(b.Reason)
		return b
	}
	return v
}

// ownDefault is byDefault for the tool as its source and category have it.
func (f *facts) ownDefault() Verdict {
	t, cat := f.tool, f.category
	set, isSet := f.policy.Defaults[cat]
	base := Verdict{Decision: Ask, Origin: originDefault,
		Reason: fmt.Sprintf("tools of category %s require confirmation", cat)}
	switch {
	case t.OfServer() && t.Trusted:
		base.Decision, base.Reason = Allow, t.ServerLabel()+" is trusted by the settings"
		base.Origin = cmp.Or(f.policy.TrustOrigins[t.Server], originDefault)
	case t.OfServer():
		base.Reason = fmt.Sprintf("tools of %s require confirmation", t.ServerLabel())
	case t.Source == registry.SourceCommand:
		base.Decision, base.Reason = Allow, "discovered tools run a command that the settings name"
	case t.Source == registry.SourceComposite:
		base.Decision, base.Reason = Allow, "each step of a composite is checked on its own"
	case cat == registry.CategoryRead:
		base.Decision, base.Reason = Allow, "tools that only read are allowed"
	}
	if !isSet {
		return base
	}
	mixed := t.OfServer() || t.Source == registry.SourceCommand
	if mixed && stricter(base.Decision, set.Decision) == base.Decision {
		return base // a category default never loosens the decision for these tools
	}
	return f.verdictOf(&set)
}
