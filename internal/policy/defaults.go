package policy

import (
	"cmp"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// plain decides on a call that is not a shell command.
func (d *decision) plain() Verdict {
	if v, banned := d.bannedName(); banned {
		return v
	}
	for i, r := range d.rules() {
		if d.rulePlain(r) {
			return d.verdictOf(d.prevailing(i, d.rulePlain))
		}
	}
	if v, ok := d.autoEdit(); ok {
		return v
	}
	v := d.byDefault()
	if v.Decision == Allow {
		return v // approvals cannot change this, so do not read them
	}
	if id := d.approved(); id != "" {
		return Verdict{Decision: Allow, Reason: "you chose to always allow it", Origin: originApproval, Approval: id}
	}
	if len(d.changes) > 0 && v.Decision == Ask {
		v.Reason = changedReason(d.changes)
	}
	return v
}

// rulePlain reports whether a rule matches a call that is not a shell command.
func (d *decision) rulePlain(r *Rule) bool { return d.isPlain(r) && d.unmet(r) == "" }

// isPlain reports whether a rule can match without knowing commands.
func (d *decision) isPlain(r *Rule) bool { return r.Command == "" || d.isBlindTo(r) && !r.isNarrow() }

// prevailing returns the rule that decides if rule i is the first that matches: a rule of the
// caller's profile loosens no deny of a file that is read before it.
func (d *decision) prevailing(i int, matches func(*Rule) bool) *Rule {
	first := d.rules()[i]
	if first.Profile != "" && first.Decision != Deny {
		for _, r := range d.rules()[i+1:] {
			if r.Decision == Deny && r.Layer < first.Layer && matches(r) {
				return r
			}
		}
	}
	return first
}

// verdictOf returns the verdict of a rule that matches.
func (d *decision) verdictOf(r *Rule) Verdict {
	v := Verdict{Origin: r.Origin, Rule: r}
	v.Decision, v.Reason = d.ruled(r)
	return v
}

func (d *decision) autoEdit() (Verdict, bool) {
	if d.policy.Mode != ModeAutoEdit || !d.isEdit() && !d.writesNoFile() {
		return Verdict{}, false
	}
	return Verdict{Decision: Allow, Origin: d.policy.modeOrigin(),
		Reason: "the approval mode allows edits inside the workspace"}, true
}

// byDefault returns the verdict if no rule and no approval matches.
func (d *decision) byDefault() Verdict {
	v := d.ownDefault()
	n := d.bears()
	if n == nil {
		return v
	}
	named := decision{ctx: d.ctx, policy: d.policy, whole: d.whole, tool: &registry.Tool{Definition: registry.Definition{Name: n.Name, Source: registry.SourceBuiltin, Category: n.Category}}}
	if b := named.ownDefault(); stricter(v.Decision, b.Decision) != v.Decision {
		b.Reason = d.underName(b.Reason)
		return b
	}
	return v
}

// ownDefault is byDefault for the tool as its source and category have it.
func (d *decision) ownDefault() Verdict {
	cat := d.category()
	set, isSet := d.policy.Defaults[cat]
	base := Verdict{Decision: Ask, Origin: originDefault, Reason: fmt.Sprintf("tools of category %s require confirmation", cat)}
	switch {
	case d.tool.OfServer() && d.tool.Trusted:
		base.Decision, base.Reason = Allow, d.tool.ServerLabel()+" is trusted by the settings"
		base.Origin = cmp.Or(d.policy.TrustOrigins[d.tool.Server], originDefault)
	case d.tool.OfServer():
		base.Reason = fmt.Sprintf("tools of %s require confirmation", d.tool.ServerLabel())
	case d.tool.Source == registry.SourceCommand:
		base.Decision, base.Reason = Allow, "discovered tools run a command that the settings name"
	case d.tool.Source == registry.SourceComposite:
		base.Decision, base.Reason = Allow, "each step of a composite is checked on its own"
	case cat == registry.CategoryRead:
		base.Decision, base.Reason = Allow, "tools that only read are allowed"
	}
	if !isSet {
		return base
	}
	mixed := d.tool.OfServer() || d.tool.Source == registry.SourceCommand
	if mixed && stricter(base.Decision, set.Decision) == base.Decision {
		return base // a category default never loosens the decision for these tools
	}
	return d.verdictOf(&set)
}
