package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/rules"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/trust"
)

// policies makes the policies of a session, one for the tools of each registry. Its fields may not
// change.
type policies struct {
	rules    *rules.Rules
	programs *programs.Set
	clients  *store.Store // has the approvals of clients; nil if the state folder has them
	// credentials returns the function that is Credentials of policy.Policy.
	credentials func() func(path string) string
	unasked     unasked
	// next has the policies of the session that replaced this one; nil if none did.
	next atomic.Pointer[policies]
}

// policy returns the policy for the calls of a registry's tools: first exclusions and bans,
// which deny before anything allows; then the rules of the settings, allowedTools, and
// approvals. The error is a *settings.InputError.
func (s *policies) policy(reg *registry.Registry) (*policy.Policy, error) {
	set := s.programs.Settings
	mode, err := policy.ParseMode(set.ApprovalMode)
	if err != nil {
		return nil, &settings.InputError{Err: err}
	}
	origin := set.ApprovalOrigin.String()
	if set.Globals.Yes && mode != policy.ModePlan {
		mode, origin = policy.ModeYolo, "--yes"
	}
	defaults, err := policyDefaults(set)
	if err != nil {
		return nil, &settings.InputError{Err: err}
	}
	trusted := map[string]string{}
	for _, server := range set.Entries() {
		if server.Trust {
			trusted[server.Name] = server.TrustOrigin.String()
		}
	}
	approvals := s.approvals()
	approvals.Siblings = func(source string) []*registry.Tool { // that an approval of a server or of edits covers
		return slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return t.Source != source })
	}
	home, hasHome := homeWithin(set.Workspace, s.programs.Environ)
	return &policy.Policy{
		Rules: s.rules.All, Core: s.rules.Core, Callers: &policy.Callers{}, Mode: mode, ModeOrigin: origin, Defaults: defaults,
		Banned: set.ShellBanned.Sourced(), AskCatastrophic: set.ShellCatastrophic == "ask", Shell: s.programs.Shell(),
		Canonical: builtin.Canonical(),
		Guarded:   func(path string) bool { return workspace.Guarded(path) || s.unasked.get(s.programs).has(path) },
		NewHidden: func(path string) bool {
			rel, err := filepath.Rel(home, path)
			return workspace.NewHidden(set.Workspace, path) ||
				hasHome && err == nil && filepath.IsLocal(rel) && workspace.StartsPrograms(rel)
		},
		Credentials: s.credentials, Workspace: set.Workspace, Root: set.ProjectRoot, TrustOrigins: trusted,
		ShellHome: homeOf(s.programs.ToolEnv()), Means: s.programs.Confiner.Means, Approvals: approvals,
	}, nil
}

// unasked are the files of [settings.Settings.Unasked] and [settings.Settings.Missing].
type unasked struct {
	once    sync.Once
	root    string                 // of the workspace
	files   map[string]fs.FileInfo // nil is a file that does not exist
	missing map[string]bool
}

// get stats the files once, because a line that writes thousands of files compares each with them.
func (u *unasked) get(p *programs.Set) *unasked {
	u.once.Do(func() {
		u.root, u.files = trust.Real(p.Settings.Workspace), map[string]fs.FileInfo{}
		for _, file := range p.Settings.Unasked(p.Environ) {
			u.files[file], _ = os.Stat(file)
		}
		u.missing = p.Settings.Missing(p.Environ)
	})
	return u
}

// has reports whether a change at path, relative to the workspace, changes one of the files, under
// any name that leads to it, or creates a missing one.
func (u *unasked) has(path string) bool {
	path = expand.From(u.root, filepath.FromSlash(path))
	path = filepath.Join(trust.Real(filepath.Dir(path)), filepath.Base(path))
	info, err := os.Stat(path)
	for file, is := range u.files {
		if path == file || path != u.root && strings.HasPrefix(file, path+string(filepath.Separator)) ||
			is != nil && (err == nil && os.SameFile(info, is) ||
				is.IsDir() && strings.HasPrefix(path, file+string(filepath.Separator))) {
			return true
		}
	}
	for at := path; err != nil && strings.HasPrefix(at, u.root+string(filepath.Separator)); at = filepath.Dir(at) {
		if u.missing[at] {
			return true
		}
	}
	return false
}

// newest returns the policies of the latest session that has replaced this one.
func (s *policies) newest() *policies {
	if next := s.next.Load(); next != nil {
		return next.newest()
	}
	return s
}

// decide returns the verdict of p, a policy that s has made for a registry. A call may have waited
// for an answer while its session was replaced, so the policies of later sessions decide too, and
// what any of them denies is denied.
func (s *policies) decide(p *policy.Policy, reg *registry.Registry,
	verdict func(*policy.Policy) policy.Verdict) policy.Verdict {
	v, next := verdict(p), s.next.Load()
	if next == nil || v.Decision == policy.Deny {
		return v
	}
	changed, err := next.policy(reg)
	if err != nil {
		return policy.Verdict{Decision: policy.Deny, Reason: err.Error(), Origin: "the changed settings"}
	}
	return next.decide(changed, reg, verdict)
}

// homeOf returns the home folder in an environment; "" if it has none.
func homeOf(environ []string) string {
	env := expand.NewEnviron(environ)
	return cmp.Or(env.Get("HOME"), env.Get("USERPROFILE"))
}

// homeWithin returns the path of the user's home folder relative to the workspace, if that is the
// home folder or contains it.
func homeWithin(workspace string, environ []string) (rel string, ok bool) {
	workspace, home := trust.Real(workspace), trust.Real(homeOf(environ))
	rel, err := filepath.Rel(workspace, home)
	return rel, err == nil && workspace != "" && home != "" && filepath.IsLocal(rel)
}

// OpenApprovals returns the stored approvals of the project. Without a state folder
// there are none, and adding one fails with the reason. shared has those of clients; if it
// is nil, the state folder has them too.
func OpenApprovals(set *settings.Settings, folders *state.Folders,
	shared *store.Store, warn func(registry.Diagnostic)) *policy.Approvals {
	d, err := folders.State()
	project := trust.Real(set.ProjectRoot) // every path of a project means the same project
	a := &policy.Approvals{Dir: d, Unavailable: err, Project: project, Folder: trust.Identity(project), Warn: warn}
	if workspace := trust.Real(set.Workspace); workspace != project {
		a.Workspace = workspace
	}
	if shared != nil {
		a.Shared = sharedApprovals{shared}
	}
	return a
}

// samplingMethod is the ServerTool of the tool that answers a server's sampling requests.
const samplingMethod = "sampling/createMessage"

// approvals returns the stored approvals, with what is needed to compare tools with them.
func (s *policies) approvals() *policy.Approvals {
	p := s.programs
	a := OpenApprovals(p.Settings, p.Folders, s.clients, p.Warn)
	a.Behind = s.behind
	return a
}

// program is the program or address that provides a tool. Approvals have hashes of its printed
// form.
type program struct {
	Argv, Env, Headers []string
	Inherit            bool
	Cwd, Type          string
	URLs               []string
}

// behind returns what provides a tool: its command, environment, headers and URL, expanded, with
// the values that [registry.Tool.Identity] masks. cmd: references stay as written. It is nil for
// built-in tools that start no program.
func (s *policies) behind(ctx context.Context, t *registry.Tool) ([]byte, error) {
	all, err := s.programsOf(ctx, s.programs.Expander.WithoutCommands(), t)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return fmt.Appendf(nil, "%#v", all), nil
}

func (s *policies) programsOf(ctx context.Context, x *values.Expander, t *registry.Tool) (all []program, err error) {
	set := s.programs.Settings
	if server := set.Server(t.Server); server != nil && t.OfServer() {
		s, err := x.Server(ctx, *server)
		if err != nil {
			return nil, err
		}
		all = append(all,
			program{append([]string{s.Command}, s.Args...), values.Pairs(s.Env), values.Pairs(s.Headers),
				s.InheritEnv, s.Cwd, s.Type, []string{s.URL, s.HTTPURL}})
	}
	if api := set.API(t.Server); api != nil && t.OfServer() {
		a, err := x.API(ctx, *api)
		if err != nil {
			return nil, err
		}
		all = append(all, program{Headers: append(values.Pairs(a.Headers), values.Auth(a)...),
			URLs: []string{a.Spec, a.URL}})
	}
	command := func(c settings.Command, set *settings.Settings) error {
		argv, err := x.Command(c)
		if err != nil {
			return err
		}
		env, err := x.Pairs(ctx, "env", set.Env)
		all = append(all, program{Argv: argv, Env: values.Pairs(env), Inherit: set.InheritEnv})
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
		out[registry.Category(category)] = policy.Rule{Category: category,
			Decision: decision, Reason: r.Reason, Origin: r.Origin.String()}
	}
	return out, nil
}

// sharedApprovals keeps the approvals of clients, and questions about their calls, in a store.
type sharedApprovals struct{ store *store.Store }

const (
	// approvalsTime is how long approvals are kept after their last change.
	approvalsTime = 90 * 24 * time.Hour
	// updates is how often a change is retried when another process was faster.
	updates = 100
)

// storedAs returns the kind and the id of a file in the store, and how long it is kept.
func storedAs(file string) (kind, id string, ttl time.Duration) {
	if kind, id, ok := strings.Cut(file, "/"); ok {
		return kind, id, policy.QuestionLifetime
	}
	return strings.TrimSuffix(file, ".json"), "", approvalsTime
}

// Read implements policy.SharedApprovals.
func (a sharedApprovals) Read(ctx context.Context, file string) ([]byte, error) {
	kind, id, _ := storedAs(file)
	v, err := a.store.Get(ctx, kind, id)
	return v.Data, err
}

// Update implements policy.SharedApprovals. In place of a file that is removed, an empty one is
// stored for a minute, because only values can be replaced if they are unchanged.
func (a sharedApprovals) Update(ctx context.Context, file string, change func([]byte) ([]byte, error)) error {
	kind, id, ttl := storedAs(file)
	now, err := a.store.Get(ctx, kind, id)
	for range updates {
		if err != nil {
			return err
		}
		data, changeErr := change(now.Data)
		if changeErr != nil {
			return changeErr
		}
		if data == nil && len(now.Data) == 0 {
			return nil
		}
		lasts := ttl
		if data == nil {
			lasts = time.Minute
		}
		var done bool
		if now, done, err = a.store.Swap(ctx, kind, id, now, data, lasts); done {
			return nil
		}
	}
	return errors.New("they change too often")
}

// Each implements policy.SharedApprovals.
func (a sharedApprovals) Each(ctx context.Context, folder string,
	use func([]byte, func(context.Context) error) error) error {
	return a.store.Each(ctx, folder, use)
}

// Key implements policy.SharedApprovals.
func (a sharedApprovals) Key() []byte { return a.store.Derive("hashes") }
