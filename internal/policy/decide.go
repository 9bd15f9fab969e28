package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Decide decides whether a call may run. It never fails: if something cannot be
// determined, it asks or denies, and the reason says so.
func (p *Policy) Decide(ctx context.Context, t *registry.Tool, call registry.Call) (v Verdict) {
	defer func() {
		if r := recover(); r != nil { // in the tool's Subject or Confirm, which are not part of this package
			v = failedVerdict(fmt.Errorf("the policy check failed: %v", r))
		}
	}()
	f, err := p.factsOf(ctx, t, call)
	if err != nil {
		return failedVerdict(err)
	}
	if t.Confirm != nil {
		f.asking = t.Confirm(ctx, call)
	}
	return f.verdict()
}

// failedVerdict returns the verdict if the facts are not known.
func failedVerdict(err error) Verdict {
	return Verdict{Decision: Deny, Origin: originDefault, Clause: "failed-check", Reason: err.Error()}
}

// DecideTool decides on a tool as a whole, without params, for listings. It
// ignores rules on commands, paths and params, and questions that the tool asks
// only for certain params, and it assumes that edits stay inside the workspace.
// Use Decide for calls.
func (p *Policy) DecideTool(ctx context.Context, t *registry.Tool) Verdict {
	f := p.factsOfTool(ctx, t, false)
	if t.Confirm != nil {
		f.asking = t.Confirm(ctx, registry.Call{Tool: t.Name, Params: json.RawMessage("{}")})
	}
	return f.verdict()
}

// DeniesAll reports whether every call of a tool is denied, regardless of its params, and returns
// the verdict. Such tools are not declared to models. If ctx is that of a client's request, see
// [caller.Known], it is about that client's calls, otherwise about the calls of all callers.
func (p *Policy) DeniesAll(ctx context.Context, t *registry.Tool) (Verdict, bool) {
	f := p.factsOfTool(ctx, t, !caller.Known(ctx))
	m := &matter{facts: f, rule: f.ruleOnAll()}
	v := m.amend(m.decide([]clause{
		{name: "banned", says: runsBanned},
		{name: "core", says: outsideCore},
		{name: "rule", says: byRule},
		{name: "auto-edit", says: autoEdit},
		{name: "default", says: func(m *matter, _ Verdict) (Verdict, bool) { return m.byDefault(), true }},
	}), []clause{{name: "plan", says: planMode}})
	return v, v.Decision == Deny
}

// ruleOnAll returns the rule that decides whether all calls of the tool are denied, or nil. A rule
// about only some of the calls counts if it does not deny them: then not every call is denied.
func (f *facts) ruleOnAll() *Rule {
	return decidingRule(f.rules, func(r *Rule) bool {
		all := (r.Command == "" && r.Path == "" || f.isBlindTo(r)) && r.When == nil && !(f.anyone && r.isForSome())
		return f.ruleNames(r) && (r.Decision != Deny || all)
	})
}

// HasCallers reports whether a rule is about certain callers.
func (p *Policy) HasCallers() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.isForSome() })
}

// verdict decides by all clauses.
func (f *facts) verdict() Verdict {
	v := f.decideParts()
	if v.Decision == Sandbox {
		v.Confine = f.inSandbox(v.Origin, false) // even if a later clause asks
	}
	v = (&matter{facts: f}).amend(v, ofCall())
	switch {
	case v.Decision == Deny:
		v.Confine = Confinement{}
	case !v.Confine.On:
		v.Confine, _ = f.confinement()
	}
	v.Agreed = v.runs() && f.policy.Mode == ModeYolo
	v.Person = v.Decision == Ask && f.person
	v.Unread, v.Unsure = f.unread, f.unsure
	v.Hides, v.HidesKey = f.hides(v.Rule)
	v.Paths = f.subject.Paths
	if v.Decision == Ask && f.policy.Approvals != nil {
		v.Scopes = f.scopes(v)
		if len(v.Scopes) > 0 && v.Scopes[0].Confined {
			v.InSandbox = f.inSandbox(originApproval, false)
		}
	}
	return v
}

// decideParts decides about the call, or about each part of its command line. The line is allowed
// if every part is allowed, and denied if any part is denied.
func (f *facts) decideParts() Verdict {
	if len(f.parts) == 0 {
		return f.aboutCall().decide(deciding())
	}
	var v Verdict
	var commands []CommandVerdict
	seen := map[CommandVerdict]bool{}
	var changes []Change
	var changed []string
	decided := f.parts[0] // whose verdict is that of the line
	for i, m := range f.parts {
		c := m.amend(m.decide(deciding()), ofPart())
		said := CommandVerdict{
			Text: m.part.Text, Root: m.part.Root(), Decision: c.Decision, Reason: c.Reason, Origin: c.Origin,
			Clause: c.Clause, remember: c.remember, moved: m.elsewhere != "",
		}
		if !seen[said] {
			commands, seen[said] = append(commands, said), true
		}
		changed = append(changed, c.changed...)
		if len(c.Changes) > 0 {
			changes = c.Changes
		}
		unread := m.part.Unread && c.Decision == Ask && v.Decision == Ask // prefer this reason, which explains most
		// Which reason says more: nothing allowed the part before, or a rule with the path allows
		// this one.
		passed := c.Decision == v.Decision &&
			(decided.part.Passes || c.Decision == Allow && c.Rule != nil && c.Rule.Path != "")
		if i == 0 || unread || passed || stricter(v.Decision, c.Decision) != v.Decision {
			decided, v = m, c
		}
	}
	v.Commands, v.Changes = commands, changes
	if v.Decision == Ask && len(changes) > 0 {
		v.Reason = changedReason(changes)
	}
	if accept, seen := f.means.Accept, time.Now(); accept != nil && len(changed) > 0 {
		v.Accept = func(ctx context.Context) error { return accept(ctx, changed, seen) }
	}
	return v
}

// scopes returns the scopes that an "always" could be remembered for. There are
// none if a rule or a doubt would ask again regardless.
func (f *facts) scopes(v Verdict) []Scope {
	set, ok := f.policy.Defaults[f.category] // which approvals override
	if v.Firm || v.Rule != nil && !(ok && reflect.DeepEqual(set, *v.Rule)) ||
		f.changes(f.policy.Guarded)+f.changes(f.policy.NewHidden) != "" {
		return nil
	}
	switch {
	case f.subject.Command != "":
		return f.commandScopes(v.Commands)
	case f.tool.OfServer():
		return []Scope{{Kind: ScopeTool}, {Kind: ScopeServer}}
	case f.isEdit():
		return []Scope{{Kind: ScopeEdits}}
	}
	if len(f.subject.URLs) > 0 {
		if hosts := hostsOf(f.subject.URLs); hosts != nil {
			return []Scope{{Kind: ScopeHost, Values: hosts}}
		}
		return nil
	}
	return []Scope{{Kind: ScopeTool}}
}

// commandScopes is scopes for a command line. An "always" must cover the whole line; if a part is
// in doubt, there is none.
func (f *facts) commandScopes(commands []CommandVerdict) (scopes []Scope) {
	var covers []string
	moved := false
	for _, c := range commands {
		if c.Decision != Ask {
			continue
		}
		if c.remember == "" {
			return nil
		}
		moved, covers = moved || c.moved, text.AppendNew(covers, c.remember)
	}
	if len(covers) == 0 {
		return nil
	}
	if f.unconfinable() == "" {
		scopes = append(scopes, Scope{Kind: ScopeCommand, Values: covers, Confined: true})
	}
	if !moved {
		scopes = append(scopes, Scope{Kind: ScopeCommand, Values: covers})
	}
	return scopes
}
