package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

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
	d := &decision{ctx: ctx, policy: p, tool: t, call: call}
	if call.Tool != t.Qualified() && call.Tool != t.Server+"__"+t.PlainName() {
		d.contested = t.Contested
	}
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
	c := &decision{ctx: ctx, policy: p, tool: t, whole: true, contested: t.Contested}
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
	if r := d.reading(); r.Decision == Deny && v.Decision != Deny || r.Decision == Ask && v.Decision == Allow {
		v = r
	}
	ruled := v
	if guarded := d.guardedPath(); guarded != "" && v.Decision == Allow {
		v = Verdict{Decision: Ask, Origin: originDefault, Commands: v.Commands, Firm: true,
			Reason: fmt.Sprintf("%q can make other programs run commands; changing it always requires confirmation", guarded)}
	}
	if hidden := d.newHiddenPath(); hidden != "" && v.Decision == Allow && (v.Rule == nil || v.Rule.Path == "") {
		v = Verdict{Decision: Ask, Origin: originDefault, Commands: v.Commands, Firm: true,
			Reason: fmt.Sprintf("programs may act on %q, as on files whose names begin with a dot and in a home folder; only a rule with its path allows changing it", hidden)}
	}
	if p, why := d.credentials(); why != "" && (v.Decision == Allow || v.Decision == Sandbox) {
		v = Verdict{Decision: Ask, Origin: originDefault, Commands: v.Commands, Firm: true, ByPath: true,
			Reason: fmt.Sprintf("%q %s; only a rule with its path allows it", p, why)}
	}
	if d.asking.Reason != "" && v.Decision != Deny {
		v = Verdict{Decision: Ask, Reason: d.asking.Reason, Origin: d.asking.Origin, Commands: v.Commands, Firm: true}
	}
	if uncleaned := d.means().Uncleaned; uncleaned != nil && v.Decision == Allow && d.subject.Command != "" && !d.confine(v, ruled).Confine.On && uncleaned() {
		v = Verdict{Decision: Ask, Origin: originDefault, Commands: v.Commands, Firm: true,
			Reason: "a sandboxed program is still running in the workspace, or was killed, and what it has written there can change what this command runs; stop it, or remove such files with `toolreg --yes call run_shell_command command=true`, which runs in the sandbox"}
	}
	v = d.confine(d.mode(v), ruled)
	if d.contested != "" && (v.Decision == Allow || v.Decision == Sandbox) {
		v = Verdict{Decision: Ask, Origin: originDefault, Firm: true, Contested: d.contested, Reason: fmt.Sprintf(
			"server %q failed, comes before %q, and may have a tool of this name; %s means that of %q",
			d.contested, d.tool.Server, d.tool.Qualified(), d.tool.Server)}
	}
	v.Agreed = (v.Decision == Allow || v.Decision == Sandbox) && d.policy.Mode == ModeYolo
	v.Changes, v.Unread, v.Unsure = d.changes, d.unread, d.unsure
	v.Hides, v.HidesKey = d.hides(v.Rule)
	v.Paths = d.subject.Paths
	if v.Decision == Ask && d.policy.Approvals != nil {
		if d.approvals(); d.away != nil {
			return Verdict{Decision: Deny, Later: true, Origin: originDefault, Commands: v.Commands, Reason: "it needs an answer, and " + d.away.Error()}
		}
		v.Scopes = d.scopes(v)
		if len(v.Scopes) > 0 && v.Scopes[0].Confined {
			v.InSandbox = d.inSandbox(originApproval)
		}
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
	case v.Decision == Ask && p.Mode == ModeYolo && (d.unread && d.banned() != "" || d.unsure):
		v.Decision = Deny
		v.Reason += "; yolo mode does not ask, and " + cmp.Or(d.banned(), "commands that rules ask about") + " cannot be ruled out"
	case v.Decision == Ask && p.Mode == ModeYolo:
		return Verdict{Decision: Allow, Origin: p.modeOrigin(), Commands: v.Commands, Reason: "the approval mode allows it without asking"}
	}
	return v
}

// banned describes the commands of this tool that are denied; it is "" if none are.
func (d *decision) banned() string {
	switch {
	case len(d.policy.Banned) > 0:
		return "banned commands"
	case d.anyRule(func(r *Rule) bool { return r.Decision == Deny && d.ruleNames(r) }):
		return "commands that rules deny"
	case !d.policy.AskCatastrophic:
		return "commands that setting shell.catastrophic denies"
	}
	return ""
}

// scopes returns the scopes that an "always" could be remembered for. There are
// none if a rule or a doubt would ask again regardless.
func (d *decision) scopes(v Verdict) []Scope {
	if v.Firm || v.Rule != nil && !d.isDefaultRule(v.Rule) || d.guardedPath() != "" || d.newHiddenPath() != "" {
		return nil
	}
	switch {
	case d.subject.Command != "":
		if covers := rememberable(v.Commands); len(covers) > 0 && !d.unread && !d.unsure && !d.person {
			scope := Scope{Kind: ScopeCommand, Values: covers}
			var scopes []Scope
			if d.unconfinable() == "" {
				scopes = append(scopes, Scope{Kind: ScopeCommand, Values: covers, Confined: true})
			}
			if !d.moved {
				scopes = append(scopes, scope)
			}
			return scopes
		}
		return nil
	case d.tool.OfServer():
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
	return ok && reflect.DeepEqual(set, *r)
}
