package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

// Decide answers whether a call may run. It never fails: what cannot be told
// is asked about or denied, and the reason says so.
func (p *Policy) Decide(ctx context.Context, t *registry.Tool, call registry.Call) (v Verdict) {
	defer func() {
		if r := recover(); r != nil { // a tool's Subject came from elsewhere
			v = Verdict{Decision: Deny, Origin: originDefault, Reason: fmt.Sprintf("deciding failed: %v", r)}
		}
	}()
	var subject registry.Subject
	if t.Subject != nil {
		var err error
		if subject, err = t.Subject(call); err != nil {
			return Verdict{Decision: Deny, Origin: originDefault,
				Reason: "cannot tell what the call would touch: " + err.Error()}
		}
	}
	c := &decision{ctx: ctx, policy: p, tool: t, subject: subject}
	if t.Confirm != nil {
		c.asking = t.Confirm(ctx, call)
	}
	return c.verdict()
}

// DecideTool answers for a tool as a whole, without params: rules that speak of
// commands, paths or addresses are left out, and so is what the tool itself asks
// about; edits are taken to stay inside the workspace. It is for telling people; a call needs Decide.
func (p *Policy) DecideTool(ctx context.Context, t *registry.Tool) Verdict {
	c := &decision{ctx: ctx, policy: p, tool: t, whole: true}
	return c.verdict()
}

func (d *decision) verdict() Verdict {
	var v Verdict
	if d.subject.Command != "" {
		v = d.command()
	} else {
		v = d.plain()
	}
	if guarded := d.guardedPath(); guarded != "" && v.Decision == Allow {
		v = Verdict{Decision: Ask, Origin: originDefault, Commands: v.Commands, Firm: true,
			Reason: fmt.Sprintf("%q can make other programs run something; changing it is always asked about", guarded)}
	}
	if d.asking.Reason != "" && v.Decision != Deny {
		v = Verdict{Decision: Ask, Reason: d.asking.Reason, Origin: d.asking.Origin, Commands: v.Commands, Firm: true}
	}
	v = d.mode(v)
	v.Agreed = v.Decision == Allow && d.policy.Mode == ModeYolo
	v.Changes, v.Unread, v.Unsure = d.changes, d.unread, d.unsure
	v.Hides = d.hides(v.Rule)
	if v.Decision == Ask && d.policy.Approvals != nil {
		v.Scopes = d.scopes(v)
	}
	return v
}

// mode applies the approval mode to what rules, approvals and defaults said.
func (d *decision) mode(v Verdict) Verdict {
	p := d.policy
	switch {
	case v.Decision == Deny:
	case p.Mode == ModePlan && d.category() != registry.CategoryRead && d.tool.Source != registry.SourceComposite:
		return Verdict{Decision: Deny, Origin: p.modeOrigin(), Commands: v.Commands,
			Reason: fmt.Sprintf("plan mode allows reading only, and %q is a tool that may do more", d.tool.Name)}
	case v.Decision == Ask && d.person:
		v.Person = true
	case v.Decision == Ask && p.Mode == ModeYolo && (d.unread && d.bans() || d.unsure):
		v.Decision = Deny
		v.Reason += "; nobody is asked in this mode, and banned commands cannot be ruled out"
	case v.Decision == Ask && p.Mode == ModeYolo:
		return Verdict{Decision: Allow, Origin: p.modeOrigin(), Commands: v.Commands, Reason: "the approval mode allows what would be asked about"}
	}
	return v
}

// bans reports whether any command is denied to this tool.
func (d *decision) bans() bool {
	return len(d.policy.Banned) > 0 || !d.policy.AskCatastrophic ||
		slices.ContainsFunc(d.policy.Rules, func(r Rule) bool { return r.Decision == Deny && d.ruleNames(&r) })
}

// scopes lists what an "always" could stand for, none where a rule or a doubt
// would ask again whatever is remembered.
func (d *decision) scopes(v Verdict) []Scope {
	if v.Firm || v.Rule != nil && v.Origin != originDefault && !d.isDefaultRule(v.Rule) || d.guardedPath() != "" {
		return nil
	}
	switch {
	case d.subject.Command != "":
		if roots := rememberable(v.Commands); len(roots) > 0 && !d.unread && !d.unsure && !d.person {
			return []Scope{{Kind: ScopeCommand, Values: roots}}
		}
		return nil
	case d.tool.IsMCP():
		return []Scope{{Kind: ScopeTool}, {Kind: ScopeServer}}
	case d.isEdit():
		return []Scope{{Kind: ScopeEdits}}
	}
	if len(d.subject.URLs) > 0 {
		if hosts := hostsOf(d.subject.URLs); hosts != nil {
			return []Scope{{Kind: ScopeHost, Values: hosts}}
		}
		return nil
	}
	return []Scope{{Kind: ScopeTool}}
}

// isDefaultRule reports whether r is one of the defaults by category, which
// approvals stand before.
func (d *decision) isDefaultRule(r *Rule) bool {
	set, ok := d.policy.Defaults[d.category()]
	return ok && set == *r
}
