package engine

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/trust"
)

// policyOptions are what a policy needs besides the rules.
type policyOptions struct {
	Folders *state.Folders
	Shell   string                         // the shell whose grammar is used to read commands
	Means   func(kind string) policy.Means // how programs can be confined
	Warn    func(registry.Diagnostic)
}

// Policy orders the rules for the tools of a registry: first exclusions and bans, which
// deny before anything allows; then the rules of the settings, allowedTools, and
// approvals.
func (r *policyRules) Policy(o policyOptions, reg *registry.Registry) (*policy.Policy, error) {
	mode, err := policy.ParseMode(r.set.ApprovalMode)
	if err != nil {
		return nil, err
	}
	p := &policy.Policy{Mode: mode, ModeOrigin: r.set.ApprovalOrigin.String(), Workspace: r.set.Workspace, Guarded: builtin.Guarded}
	if r.set.Globals.Yes && mode != policy.ModePlan {
		p.Mode, p.ModeOrigin = policy.ModeYolo, "--yes"
	}
	p.Canonical = canonical()
	p.Rules = r.all
	if p.Defaults, err = policyDefaults(r.set); err != nil {
		return nil, err
	}
	p.TrustOrigins = map[string]string{}
	for _, s := range r.set.Servers {
		if s.Trust {
			p.TrustOrigins[s.Name] = s.TrustOrigin.String()
		}
	}
	p.Means, p.Shell = o.Means, o.Shell
	p.Banned = r.set.ShellBanned.Sourced()
	p.AskCatastrophic = r.set.ShellCatastrophic == "ask"
	p.Approvals = OpenApprovals(r.set, o.Folders, o.Warn)
	p.Approvals.Siblings = siblings(reg)
	return p, nil
}

// canonical returns a function that resolves a name or an alias to the name of a built-in
// tool.
func canonical() func(string) string {
	names := builtin.Aliases()
	for _, name := range builtin.Names() {
		names[name] = name
	}
	return func(name string) string { return names[name] }
}

// OpenApprovals returns the stored approvals of the project. Without a state folder
// there are none, and adding one fails with the reason.
func OpenApprovals(set *settings.Settings, folders *state.Folders, warn func(registry.Diagnostic)) *policy.Approvals {
	d, err := folders.State()
	project := set.ProjectRoot
	if path, linkErr := filepath.EvalSymlinks(project); linkErr == nil {
		project = path // resolve links, so that every path of a project means the same project
	}
	return &policy.Approvals{Dir: d, Unavailable: err, Project: project, Folder: trust.Identity(project), Warn: warn}
}

// siblings finds the tools that an approval of a server or of edits covers.
func siblings(reg *registry.Registry) func(string) []*registry.Tool {
	return func(source string) []*registry.Tool {
		return slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return t.Source != source })
	}
}

func policyDefaults(set *settings.Settings) (map[registry.Category]policy.Rule, error) {
	out := map[registry.Category]policy.Rule{}
	for category, r := range set.PolicyDefaults {
		if r.Origin.Scope == settings.ScopeDefault {
			continue // the policy itself handles these, with details about servers and discovered tools
		}
		decision, err := policy.ParseDecision(r.Decision)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Origin, err)
		}
		out[registry.Category(category)] = policy.Rule{Category: category, Decision: decision, Reason: r.Reason, Origin: r.Origin.String()}
	}
	return out, nil
}
