package policy

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Policy decides on calls. Its fields are read only once in use; it is safe for
// concurrent use. The zero value allows reading and asks about the rest.
type Policy struct {
	// Rules are tried in order; the first that matches decides. The caller
	// orders them: exclusions, flags, system, user, project.
	Rules []Rule
	// Mode is the approval mode; "" is ModeDefault. ModeOrigin tells where it
	// was set, for messages.
	Mode       Mode
	ModeOrigin string
	// Defaults replace the built-in defaults by category; Decision, Reason and
	// Origin of the rules count.
	Defaults map[registry.Category]Rule
	// Banned are programs that no shell command may name, whatever the rules
	// and the mode say (setting shell.banned).
	Banned []registry.Entry
	// AskCatastrophic makes a question for a person, which no mode answers, of
	// what would ruin the machine and is else denied (setting
	// shell.catastrophic).
	AskCatastrophic bool
	// Shell is the grammar of shell commands, as [shellline.Read] takes it. A line
	// in one that it does not know is never allowed by a rule on commands.
	Shell string
	// Canonical returns the built-in tool that a name or an alias stands for,
	// "" if none. nil: there are no aliases.
	Canonical func(name string) string
	// Guarded reports whether a path relative to the workspace must always be
	// asked about before it is changed. nil: none.
	Guarded func(path string) bool
	// Workspace is the absolute path of the workspace, for rules that name
	// absolute paths.
	Workspace string
	// TrustOrigins tells where each server is trusted, by its name.
	TrustOrigins map[string]string
	// Approvals are the remembered answers; nil means none, and nothing can be
	// remembered.
	Approvals *Approvals
}

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

const (
	originDefault  = "default"
	originApproval = "approval"
)

// decision is the work on one call.
type decision struct {
	ctx     context.Context
	policy  *Policy
	tool    *registry.Tool
	subject registry.Subject
	asking  registry.Asking // of the tool itself
	changes []Change
	loaded  bool
	found   []Approval
	unread  bool // the command line could not be parsed
	unsure  bool // what is banned cannot be ruled out
	person  bool // only a person may answer
	whole   bool // the tool is decided on, not a call
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

func (p *Policy) modeOrigin() string {
	if p.ModeOrigin == "" {
		return "approvalMode"
	}
	return p.ModeOrigin
}

// plain decides on a call that is no shell command.
func (d *decision) plain() Verdict {
	for i := range d.policy.Rules {
		r := &d.policy.Rules[i]
		if r.Command != "" || !d.ruleNames(r) || !d.rulePaths(r) {
			continue
		}
		return Verdict{Decision: r.Decision, Reason: r.reason(), Origin: r.Origin, Rule: r}
	}
	if v, ok := d.autoEdit(); ok {
		return v
	}
	v := d.byDefault()
	if v.Decision == Allow {
		return v // no approval could say more, and none need be read
	}
	if id := d.approved(); id != "" {
		return Verdict{Decision: Allow, Reason: "you allowed it for good", Origin: originApproval, Approval: id}
	}
	if len(d.changes) > 0 && v.Decision == Ask {
		v.Reason = changedReason(d.changes)
	}
	return v
}

func (d *decision) autoEdit() (Verdict, bool) {
	if d.policy.Mode != ModeAutoEdit || !d.isEdit() && !d.writesNoFile() {
		return Verdict{}, false
	}
	return Verdict{Decision: Allow, Origin: d.policy.modeOrigin(),
		Reason: "the approval mode allows edits inside the workspace"}, true
}

// isEdit reports whether the call is an edit by a built-in tool that stays
// inside the workspace.
func (d *decision) isEdit() bool {
	if d.tool.Source != registry.SourceBuiltin || d.category() != registry.CategoryWrite {
		return false
	}
	for _, p := range d.subject.Paths {
		if !inside(p) {
			return false
		}
	}
	return len(d.subject.Paths) > 0 || d.whole && d.tool.Subject != nil
}

// writesNoFile reports whether the call is one of a built-in tool that changes
// nothing but what toolreg keeps, such as the todo list.
func (d *decision) writesNoFile() bool {
	return d.tool.Source == registry.SourceBuiltin && d.category() == registry.CategoryWrite && d.tool.Subject == nil
}

// inside reports whether a workspace-relative path stays in the workspace by
// its words; the tools themselves guard against links.
func inside(p string) bool {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.Contains(p, ":")
}

// guardedPath returns the first path that must be asked about, "" if none.
func (d *decision) guardedPath() string {
	if d.policy.Guarded == nil || d.category() == registry.CategoryRead {
		return ""
	}
	for _, p := range d.subject.Paths {
		if d.policy.Guarded(p) {
			return p
		}
	}
	return ""
}

// category is the category that may loosen anything: what an untrusted server
// says of its tools counts for nothing.
func (d *decision) category() registry.Category {
	if d.tool.IsMCP() && !d.tool.Trusted || !d.tool.Category.Valid() {
		return registry.CategoryOther
	}
	return d.tool.Category
}

// byDefault is the decision where no rule and no approval matched.
func (d *decision) byDefault() Verdict {
	cat := d.category()
	set, isSet := d.policy.Defaults[cat]
	base := Verdict{Decision: Ask, Origin: originDefault, Reason: fmt.Sprintf("tools of category %s are asked about", cat)}
	switch {
	case d.tool.IsMCP() && d.tool.Trusted:
		if isSet && set.Decision != Deny { // trust of a server says more than a category
			isSet = false
		}
		base.Decision, base.Reason = Allow, fmt.Sprintf("server %q is trusted by the settings", d.tool.Server)
		base.Origin = cmp.Or(d.policy.TrustOrigins[d.tool.Server], originDefault)
	case d.tool.IsMCP():
		base.Reason = fmt.Sprintf("tools of server %q are asked about", d.tool.Server)
	case d.tool.Source == registry.SourceCommand:
		base.Decision, base.Reason = Allow, "the settings name the command behind discovered tools"
	case d.tool.Source == registry.SourceComposite:
		base.Decision, base.Reason = Allow, "each step of a composite is decided on by itself"
	case cat == registry.CategoryRead:
		base.Decision, base.Reason = Allow, "tools that only read are allowed"
	}
	if !isSet {
		return base
	}
	mixed := d.tool.IsMCP() || d.tool.Source == registry.SourceCommand
	if mixed && stricter(base.Decision, set.Decision) == base.Decision {
		return base // a category's default never opens a server's tools
	}
	return Verdict{Decision: set.Decision, Reason: set.reason(), Origin: set.Origin, Rule: &set}
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

// hostsOf returns the host (with a port that is not the scheme's own) of each
// address, with its scheme where that is not https: consent to what is encrypted
// is none to what is not. It is nil if one cannot be read.
func hostsOf(urls []string) []string {
	var out []string
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" {
			return nil
		}
		host := strings.ToLower(u.Hostname())
		if port := u.Port(); port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
			host += ":" + port
		}
		if u.Scheme != "https" {
			host = u.Scheme + "://" + host
		}
		if !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out
}
