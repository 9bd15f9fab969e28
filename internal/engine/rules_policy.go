package engine

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/trust"
)

// policies makes the policies of a session. Its fields may not change.
type policies struct {
	rules    *policyRules
	programs *programs
	clients  *store.Store // has the approvals of clients; nil: the state folder has them
	// credentials returns what policy.Policy has as Credentials.
	credentials func() func(path string) string
	// next is that of the session that has replaced this one; nil: none has.
	next atomic.Pointer[policies]
}

// policy returns the policy for the calls of a registry's tools: first exclusions and bans,
// which deny before anything allows; then the rules of the settings, allowedTools, and
// approvals. The error is an *InputError.
func (s *policies) policy(reg *registry.Registry) (*policy.Policy, error) {
	set, environ := s.programs.set, s.programs.environ
	mode, err := policy.ParseMode(set.ApprovalMode)
	if err != nil {
		return nil, &InputError{Err: err}
	}
	p := &policy.Policy{Mode: mode, ModeOrigin: set.ApprovalOrigin.String(), Workspace: set.Workspace, Root: set.ProjectRoot, Guarded: builtin.Guarded,
		NewHidden: func(path string) bool { return builtin.NewHidden(set.Workspace, path) }}
	if home, ok := homeWithin(set.Workspace, environ); ok {
		p.NewHidden = func(path string) bool {
			rel, err := filepath.Rel(home, path)
			return builtin.NewHidden(set.Workspace, path) || err == nil && filepath.IsLocal(rel) && builtin.StartsPrograms(rel)
		}
	}
	if set.Globals.Yes && mode != policy.ModePlan {
		p.Mode, p.ModeOrigin = policy.ModeYolo, "--yes"
	}
	p.Canonical = canonical()
	p.Rules, p.Callers = s.rules.all, &policy.Callers{}
	if p.Defaults, err = policyDefaults(set); err != nil {
		return nil, &InputError{Err: err}
	}
	p.TrustOrigins = map[string]string{}
	for _, server := range set.Entries() {
		if server.Trust {
			p.TrustOrigins[server.Name] = server.TrustOrigin.String()
		}
	}
	p.Credentials = s.credentials()
	p.Means, p.Shell = s.programs.confiner.Means, s.programs.shell()
	p.Banned = set.ShellBanned.Sourced()
	p.AskCatastrophic = set.ShellCatastrophic == "ask"
	p.Approvals = s.approvals()
	p.Approvals.Siblings = func(source string) []*registry.Tool { // that an approval of a server or of edits covers
		return slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return t.Source != source })
	}
	return p, nil
}

// homeWithin returns the path of the user's home folder relative to a workspace that is or holds it.
func homeWithin(workspace string, environ []string) (rel string, ok bool) {
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real
	}
	env := expand.NewEnviron(environ)
	home := cmp.Or(env.Get("HOME"), env.Get("USERPROFILE"))
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	rel, err := filepath.Rel(workspace, home)
	return rel, err == nil && workspace != "" && home != "" && filepath.IsLocal(rel)
}

// OpenApprovals returns the stored approvals of the project. Without a state folder
// there are none, and adding one fails with the reason. shared has those of clients; nil: the
// state folder has them too.
func OpenApprovals(set *settings.Settings, folders *state.Folders, shared *store.Store, warn func(registry.Diagnostic)) *policy.Approvals {
	d, err := folders.State()
	project := set.ProjectRoot
	if path, linkErr := filepath.EvalSymlinks(project); linkErr == nil {
		project = path // resolve links, so that every path of a project means the same project
	}
	a := &policy.Approvals{Dir: d, Unavailable: err, Project: project, Folder: trust.Identity(project), Warn: warn}
	if workspace := trust.Real(set.Workspace); workspace != trust.Real(set.ProjectRoot) {
		a.Workspace = workspace
	}
	if shared != nil {
		a.Shared = sharedApprovals{shared}
	}
	return a
}

// samplingMethod is the ServerTool of the tool that answers a server's sampling requests.
const samplingMethod = "sampling/createMessage"

// approvals returns the stored approvals, which tools can be compared with.
func (s *policies) approvals() *policy.Approvals {
	p := s.programs
	a := OpenApprovals(p.set, p.folders, s.clients, p.reports.add)
	a.Behind = p.behind
	return a
}

// program is a program or an address that provides a tool. Approvals have hashes of how it prints.
type program struct {
	Argv, Env, Headers []string
	Inherit            bool
	Cwd, Type          string
	URLs               []string
}

// behind returns what provides a tool: command, environment, headers and URL, expanded and with the
// values that [registry.Tool.Identity] masks; cmd: references as written. It is nil for tools of
// our own that start no program.
func (p *programs) behind(ctx context.Context, t *registry.Tool) ([]byte, error) {
	all, err := p.programsOf(ctx, p.expander.Still(), t)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return fmt.Appendf(nil, "%#v", all), nil
}

func (p *programs) programsOf(ctx context.Context, x *values.Expander, t *registry.Tool) (all []program, err error) {
	set := p.set
	if server := set.Server(t.Server); server != nil && t.OfServer() {
		s, err := x.Server(ctx, *server)
		if err != nil {
			return nil, err
		}
		all = append(all,
			program{append([]string{s.Command}, s.Args...), pairValues(s.Env), pairValues(s.Headers), s.InheritEnv, s.Cwd, s.Type, []string{s.URL, s.HTTPURL}})
	}
	if api := set.API(t.Server); api != nil && t.OfServer() {
		a, err := x.API(ctx, *api)
		if err != nil {
			return nil, err
		}
		all = append(all, program{Headers: append(pairValues(a.Headers), authValues(a)...), URLs: []string{a.Spec, a.URL}})
	}
	command := func(c settings.Command, set *settings.Settings) error {
		argv, err := x.Command(c)
		if err != nil {
			return err
		}
		env, err := x.Env(ctx, set.Env)
		all = append(all, program{Argv: argv, Env: pairValues(env), Inherit: set.InheritEnv})
		return err
	}
	switch sampling := set.Sampling.Command; {
	case t.IsMCP() && t.ServerTool == samplingMethod:
		err = command(sampling, set.For(sampling.Origin.Scope))
	case t.Source == registry.SourceCommand:
		if err = command(set.DiscoveryCommand, set); err == nil {
			var argv []string
			argv, err = x.Command(set.CallCommand)
			all = append(all, program{Argv: argv})
		}
	case t.Program != "" && (len(set.Env) > 0 || set.InheritEnv):
		err = command(settings.Command{}, set)
	}
	return all, err
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
