package policy

import (
	"context"
	"slices"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// DeniesAll reports whether every call of a tool is denied, regardless of its params, and
// returns the verdict. Such tools are not declared to models. It is about the calls of a
// client if ctx is that of its request, see [caller.Known], else about those of all callers.
func (p *Policy) DeniesAll(ctx context.Context, t *registry.Tool) (Verdict, bool) {
	d := &decision{ctx: ctx, policy: p, tool: t, whole: true, anyClient: !caller.Known(ctx)}
	v, ok := d.beforeDefaults()
	if !ok {
		if _, edits := d.autoEdit(); edits {
			return Verdict{}, false
		}
		v = d.byDefault()
	}
	v = d.mode(v)
	return v, v.Decision == Deny
}

// beforeDefaults returns the verdict of the first rule that applies to all calls
// of the tool. A rule that matches only some calls and does not deny them also
// ends the search, because then not every call is denied.
func (d *decision) beforeDefaults() (v Verdict, ok bool) {
	if v, banned := d.bannedName(); banned {
		return v, true
	}
	all := func(r *Rule) bool {
		return (r.Command == "" && r.Path == "" || d.isBlindTo(r)) && r.When == nil && !(d.anyClient && r.isForSome())
	}
	for i, r := range d.rules() {
		if d.ruleNames(r) && (r.Decision != Deny || all(r)) {
			return d.verdictOf(d.prevailing(i, func(r *Rule) bool { return d.ruleNames(r) && all(r) })), true
		}
	}
	return Verdict{}, false
}

// HasCallers reports whether a rule is about certain callers.
func (p *Policy) HasCallers() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.isForSome() })
}
