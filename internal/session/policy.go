package session

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

// newPolicy orders the rules (spec section 8.3): first exclusions and bans,
// which deny before anything allows; then the rules of the settings,
// allowedTools, and approvals. The error is an *InputError.
func (r *run) newPolicy(reg *registry.Registry) (*policy.Policy, error) {
	mode, err := policy.ParseMode(r.set.ApprovalMode)
	if err != nil {
		return nil, &InputError{Err: err}
	}
	p := &policy.Policy{Mode: mode, ModeOrigin: r.set.ApprovalOrigin.String(), Workspace: r.set.Workspace, Guarded: builtin.Guarded}
	if r.set.Globals.Yes && mode != policy.ModePlan {
		p.Mode, p.ModeOrigin = policy.ModeYolo, "--yes"
	}
	names := builtin.Aliases()
	for _, name := range builtin.Names() {
		names[name] = name
	}
	p.Canonical = func(name string) string { return names[name] }
	if p.Rules, err = rules(r.set); err != nil {
		return nil, err
	}
	if p.Defaults, err = policyDefaults(r.set); err != nil {
		return nil, err
	}
	p.TrustOrigins = map[string]string{}
	for _, s := range r.set.Servers {
		if s.Trust {
			p.TrustOrigins[s.Name] = s.TrustOrigin.String()
		}
	}
	p.Banned = entries(r.set.ShellBanned)
	p.AskCatastrophic = r.set.ShellCatastrophic == "ask"
	p.Shell = builtin.Shell(r.env) // parse commands as the shell that will run them
	p.Approvals = Approvals(r.set, r.deps.Folders, r.deps.Warn)
	p.Approvals.Siblings = siblings(reg)
	return p, nil
}

// Approvals returns the stored approvals of the project. Without a state folder
// there are none, and adding one fails with the reason.
func Approvals(set *settings.Settings, folders *Folders, warn func(registry.Diagnostic)) *policy.Approvals {
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

func rules(set *settings.Settings) ([]policy.Rule, error) {
	out, err := entryRules(nil, set.ExcludeTools, policy.Deny)
	if err != nil {
		return nil, err
	}
	for _, r := range set.Rules {
		rule, err := ruleOf(r, policy.Rule{Tool: r.Tool, Source: r.Source, Server: r.Server, Category: r.Category, Command: r.Command, Path: r.Path})
		if err != nil {
			return nil, err
		}
		out = append(out, rule)
	}
	return entryRules(out, set.AllowedTools, policy.Allow)
}

// entryRules appends a rule for each entry of a list such as excludeTools.
func entryRules(out []policy.Rule, list settings.List, decision policy.Decision) ([]policy.Rule, error) {
	for _, e := range entries(list) {
		r, err := policy.EntryRule(e, decision)
		if err != nil {
			return nil, &InputError{Err: fmt.Errorf("%s: %w", e.Setting, err)}
		}
		out = append(out, r)
	}
	return out, nil
}

func policyDefaults(set *settings.Settings) (map[registry.Category]policy.Rule, error) {
	out := map[registry.Category]policy.Rule{}
	for category, r := range set.PolicyDefaults {
		if r.Origin.Scope == settings.ScopeDefault {
			continue // the policy itself handles these, with details about servers and discovered tools
		}
		rule, err := ruleOf(r, policy.Rule{Category: category})
		if err != nil {
			return nil, err
		}
		out[registry.Category(category)] = rule
	}
	return out, nil
}

// ruleOf adds the fields of a settings rule to a rule that has its tool
// pattern.
func ruleOf(r settings.Rule, rule policy.Rule) (policy.Rule, error) {
	decision, err := policy.ParseDecision(r.Decision)
	if err == nil {
		rule.Decision, rule.Reason, rule.Origin = decision, r.Reason, r.Origin.String()
		err = rule.Validate()
	}
	if err != nil {
		return rule, &InputError{Err: fmt.Errorf("%s: %w", r.Origin, err)}
	}
	return rule, nil
}
