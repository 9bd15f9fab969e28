package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// Decide decides whether a call may run. It never fails: if something cannot be
// determined, it asks or denies, and the reason says so.
func (p *Policy) Decide(ctx context.Context, t *registry.Tool, call registry.Call) (v Verdict) {
	defer func() {
		if r := recover(); r != nil { // in the tool's Subject or Confirm, which are not part of this package
			v = Verdict{Decision: Deny, Origin: originDefault, Reason: fmt.Sprintf("the policy check failed: %v", r)}
		}
	}()
	c, err := p.decision(ctx, t, call)
	if err != nil {
		return Verdict{Decision: Deny, Origin: originDefault, Reason: err.Error()}
	}
	if t.Confirm != nil {
		c.asking = t.Confirm(ctx, call)
	}
	return c.verdict()
}

// decision returns the initial state of a decision on a call.
func (p *Policy) decision(ctx context.Context, t *registry.Tool, call registry.Call) (*decision, error) {
	d := &decision{ctx: ctx, policy: p, tool: t, params: call.Params}
	if t.Subject != nil {
		var err error
		if d.subject, err = t.Subject(call); err != nil {
			return nil, fmt.Errorf("cannot determine what the call would access: %w", err)
		}
	}
	return d, nil
}

// DecideTool decides on a tool as a whole, without params, for listings. It
// ignores rules on commands, paths and params, and questions that the tool asks
// only for certain params, and it assumes that edits stay inside the workspace.
// Use Decide for calls.
func (p *Policy) DecideTool(ctx context.Context, t *registry.Tool) Verdict {
	c := &decision{ctx: ctx, policy: p, tool: t, whole: true}
	if t.Confirm != nil {
		c.asking = t.Confirm(ctx, registry.Call{Tool: t.Name, Params: json.RawMessage("{}")})
	}
	return c.verdict()
}

func (d *decision) verdict() Verdict {
	var v Verdict
	if d.subject.Command != "" {
		v = d.command()
	} else {
		v = d.plain()
	}
	ruled := v
	if guarded := d.guardedPath(); guarded != "" && v.Decision == Allow {
		v = Verdict{Decision: Ask, Origin: originDefault, Commands: v.Commands, Firm: true,
			Reason: fmt.Sprintf("%q can make other programs run commands; changing it always requires confirmation", guarded)}
	}
	if d.asking.Reason != "" && v.Decision != Deny {
		v = Verdict{Decision: Ask, Reason: d.asking.Reason, Origin: d.asking.Origin, Commands: v.Commands, Firm: true}
	}
	v = d.confine(d.mode(v), ruled)
	v.Agreed = (v.Decision == Allow || v.Decision == Sandbox) && d.policy.Mode == ModeYolo
	v.Changes, v.Unread, v.Unsure = d.changes, d.unread, d.unsure
	v.Hides, v.Paths = d.hides(v.Rule), d.subject.Paths
	if v.Decision == Ask && d.policy.Approvals != nil {
		v.Scopes = d.scopes(v)
	}
	return v
}

// mode applies the approval mode to the decision of rules, approvals and defaults.
func (d *decision) mode(v Verdict) Verdict {
	p := d.policy
	switch {
	case v.Decision == Deny:
	case p.Mode == ModePlan && d.category() != registry.CategoryRead && d.tool.Source != registry.SourceComposite:
		return Verdict{Decision: Deny, Origin: p.modeOrigin(), Commands: v.Commands,
			Reason: fmt.Sprintf("plan mode allows only reading, and tool %q may do more", d.tool.Name)}
	case v.Decision == Ask && d.person:
		v.Person = true
	case v.Decision == Ask && p.Mode == ModeYolo && (d.unread && d.bans() || d.unsure):
		v.Decision = Deny
		v.Reason += "; yolo mode does not ask, and banned commands cannot be ruled out"
	case v.Decision == Ask && p.Mode == ModeYolo:
		return Verdict{Decision: Allow, Origin: p.modeOrigin(), Commands: v.Commands, Reason: "the approval mode allows it without asking"}
	}
	return v
}

// bans reports whether any command of this tool is denied.
func (d *decision) bans() bool {
	return len(d.policy.Banned) > 0 || !d.policy.AskCatastrophic ||
		d.anyRule(func(r *Rule) bool { return r.Decision == Deny && d.ruleNames(r) })
}

// scopes returns the scopes that an "always" could be remembered for. There are
// none if a rule or a doubt would ask again regardless.
func (d *decision) scopes(v Verdict) []Scope {
	if v.Firm || v.Rule != nil && v.Origin != originDefault && !d.isDefaultRule(v.Rule) || d.guardedPath() != "" {
		return nil
	}
	switch {
	case d.subject.Command != "":
		if covers := rememberable(v.Commands); len(covers) > 0 && !d.unread && !d.unsure && !d.person {
			return []Scope{{Kind: ScopeCommand, Values: covers}}
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

// isDefaultRule reports whether r is one of the category defaults, which are
// overridden by approvals.
func (d *decision) isDefaultRule(r *Rule) bool {
	set, ok := d.policy.Defaults[d.category()]
	return ok && set == *r
}
