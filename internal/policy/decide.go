package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// Decide answers whether a call may run. It never fails: what cannot be
// determined is asked about or denied, and the reason says so.
func (p *Policy) Decide(ctx context.Context, t *registry.Tool, call registry.Call) (v Verdict) {
	defer func() {
		if r := recover(); r != nil { // a tool's Subject came from elsewhere
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

// decision begins to decide on a call.
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

// DecideTool answers for a tool as a whole, without params: it leaves out rules on commands, paths
// and params and what the tool itself asks about certain params, and assumes that edits stay
// inside the workspace. It serves listings; a call needs Decide.
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

// mode applies the approval mode to what rules, approvals and defaults said.
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
		v.Reason += "; yolo mode asks nobody, and banned commands cannot be ruled out"
	case v.Decision == Ask && p.Mode == ModeYolo:
		return Verdict{Decision: Allow, Origin: p.modeOrigin(), Commands: v.Commands, Reason: "the approval mode allows it without asking"}
	}
	return v
}

// bans reports whether this tool is denied any command.
func (d *decision) bans() bool {
	return len(d.policy.Banned) > 0 || !d.policy.AskCatastrophic ||
		d.anyRule(func(r *Rule) bool { return r.Decision == Deny && d.ruleNames(r) })
}

// scopes lists what an "always" could cover. It is empty if a rule or a doubt
// would ask again regardless of remembered answers.
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

// isDefaultRule reports whether r is one of the defaults by category, over
// which approvals take precedence.
func (d *decision) isDefaultRule(r *Rule) bool {
	set, ok := d.policy.Defaults[d.category()]
	return ok && set == *r
}
