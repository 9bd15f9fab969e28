package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/trust"
)

// policies makes the policies of a session, one for the tools of each registry. Its fields may not
// change.
type policies struct {
	rules    *policyRules
	programs *programs.Set
	clients  *store.Store // has the approvals of clients; nil if the state folder has them
	// credentials is what policy.Policy has as Credentials.
	credentials func() func(path string) string
	// next is that of the session that has replaced this one; nil if none has.
	next atomic.Pointer[policies]
}

// policy returns the policy for the calls of a registry's tools: first exclusions and bans,
// which deny before anything allows; then the rules of the settings, allowedTools, and
// approvals. The error is an *settings.InputError.
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
		Rules: s.rules.all, Callers: &policy.Callers{}, Mode: mode, ModeOrigin: origin, Defaults: defaults,
		Banned: set.ShellBanned.Sourced(), AskCatastrophic: set.ShellCatastrophic == "ask", Shell: s.programs.Shell(),
		Canonical: canonical(), Guarded: builtin.Guarded,
		NewHidden: func(path string) bool {
			rel, err := filepath.Rel(home, path)
			return builtin.NewHidden(set.Workspace, path) ||
				hasHome && err == nil && filepath.IsLocal(rel) && builtin.StartsPrograms(rel)
		},
		Credentials: s.credentials, Workspace: set.Workspace, Root: set.ProjectRoot, TrustOrigins: trusted,
		Means: s.programs.Confiner.Means, Approvals: approvals,
	}, nil
}

// newest returns those of the session that has replaced this one last.
func (s *policies) newest() *policies {
	if next := s.next.Load(); next != nil {
		return next.newest()
	}
	return s
}

// decide returns the verdict of a policy that s has made for a registry and, because a call may have
// waited for an answer meanwhile, that of the sessions which have replaced this one since. What any
// of them denies is denied.
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
// there are none, and adding one fails with the reason. shared has those of clients; if it
// is nil, the state folder has them too.
func OpenApprovals(set *settings.Settings, folders *state.Folders,
	shared *store.Store, warn func(registry.Diagnostic)) *policy.Approvals {
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
	a := OpenApprovals(p.Settings, p.Folders, s.clients, p.Warn)
	a.Behind = s.behind
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
func (s *policies) behind(ctx context.Context, t *registry.Tool) ([]byte, error) {
	all, err := s.programsOf(ctx, s.programs.Expander.Still(), t)
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
		env, err := x.Env(ctx, set.Env)
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

// policyRules are the compiled rules of the settings.
type policyRules struct {
	set *settings.Settings
	all []policy.Rule
}

// compileRules compiles the rules in their order: exclusions deny before anything
// allows; then the rules of the settings, then allowedTools. The error is a
// *document.Error with all mistakes. evaluator evaluates the conditions of projects;
// see [jq.Expression.Apart].
func compileRules(set *settings.Settings, evaluator []string) (*policyRules, error) {
	var problems []document.Problem
	out := entryRules(nil, set.ExcludeTools, policy.Deny, &problems)
	names := canonical()
	for _, r := range set.Rules {
		rule, err := compileRule(r, names)
		if err != nil {
			problems = append(problems, r.Origin.Problem(err.Error(), ""))
		}
		if r.Origin.Scope == settings.ScopeProject {
			rule.When = rule.When.Apart(evaluator)
		}
		out = append(out, rule)
	}
	out = entryRules(out, set.AllowedTools, policy.Allow, &problems)
	return &policyRules{set, out}, document.NewError(problems)
}

// entryRules appends a rule for each entry of a list such as excludeTools.
func entryRules(out []policy.Rule, list settings.List,
	decision policy.Decision, problems *[]document.Problem) []policy.Rule {
	for i, e := range list.Sourced() {
		r, err := policy.EntryRule(e, decision)
		if err != nil {
			*problems = append(*problems, list.Entries[i].Origin.Problem(err.Error(), ""))
			continue
		}
		r.Personal = list.Entries[i].Origin.Scope != settings.ScopeProject
		out = append(out, r)
	}
	return out
}

func compileRule(r settings.Rule, canonical func(string) string) (policy.Rule, error) {
	rule := policy.Rule{
		Tool: registry.NameIn(r.Tool), Source: r.Source, Server: r.Server, Category: r.Category,
		Annotations: r.Annotations, Command: r.Command, Path: r.Path, Client: r.Client, Group: r.Group,
		Profile: r.Profile, Layer: r.Layer, Prompt: r.Prompt, Resource: r.Resource,
		Reason: r.Reason, Origin: r.Origin.String(), Personal: r.Origin.Scope != settings.ScopeProject,
	}
	var err error
	if rule.Decision, err = policy.ParseDecision(r.Decision); err != nil {
		return rule, err
	}
	if r.When != "" {
		if rule.When, err = jq.Compile(r.When); err != nil {
			return rule, fmt.Errorf("when %q is %w", r.When, err)
		}
	}
	if err = rule.Compile(); err != nil {
		return rule, err
	}
	return rule, rule.ValidateSandbox(canonical)
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

// CheckExamples checks the rules against their example calls, which they must match
// (match) or not match (notMatch). builtin is the source of the built-in tools, shell the
// grammar of shell commands. The error is a *document.Error with all examples that fail.
func (r *policyRules) CheckExamples(ctx context.Context, builtin registry.Source, shell string) error {
	if !slices.ContainsFunc(r.set.Rules, func(r settings.Rule) bool { return len(r.Match)+len(r.NotMatch) > 0 }) {
		return nil
	}
	c := &exampleCheck{policy: &policy.Policy{Canonical: canonical(), Workspace: r.set.Workspace, Shell: shell}}
	c.builtin, _, _ = builtin.Discover(ctx)
	first := len(r.all) - len(r.set.AllowedTools.Entries) - len(r.set.Rules)
	for i, set := range r.set.Rules {
		rule := &r.all[first+i]
		for _, example := range set.Match {
			c.check(ctx, rule, example, true)
		}
		for _, example := range set.NotMatch {
			c.check(ctx, rule, example, false)
		}
	}
	return document.NewError(c.problems)
}

// exampleCheck checks example calls and collects what is wrong.
type exampleCheck struct {
	policy   *policy.Policy
	builtin  []registry.Tool
	problems []document.Problem
}

func (c *exampleCheck) check(ctx context.Context, r *policy.Rule, example settings.ExampleCall, want bool) {
	tool := c.tool(r, cmp.Or(example.Tool, shellTool))
	params := example.Params
	if example.Line != "" {
		params, _ = json.Marshal(map[string]string{"command": example.Line})
	}
	if params == nil {
		params = json.RawMessage("{}")
	}
	got, err := c.policy.Matches(ctx, r, tool, registry.Call{Tool: tool.Name, Params: params})
	about := example.Line
	if example.Line == "" {
		about = strings.TrimSpace(example.Tool + " " + string(example.Params))
	}
	list := map[bool]string{true: "match", false: "notMatch"}[want]
	fail := func(format string, args ...any) {
		c.problems = append(c.problems, example.Origin.Problem(fmt.Sprintf(format, args...), ""))
	}
	switch {
	case err != nil:
		fail("%s: the rule cannot be checked with %q: %s", list, about, err)
	case got && !want:
		fail("%s: the rule matches %q", list, about)
	case want && !got:
		fail("%s: the rule does not match %q", list, about)
	}
}

const shellTool = "run_shell_command"

// tool returns the tool of an example: the built-in tool with that name, or else one with
// that name from the source that the rule names. An example has no category and no
// annotations, so they are assumed to be the rule's.
func (c *exampleCheck) tool(r *policy.Rule, name string) *registry.Tool {
	builtin := c.policy.Canonical(name)
	for i := range c.builtin {
		if c.builtin[i].Name == builtin {
			return &c.builtin[i]
		}
	}
	t := &registry.Tool{Trusted: true,
		Definition: registry.Definition{Name: name, Source: r.Source, Category: registry.Category(r.Category)}}
	if len(r.Annotations) > 0 {
		t.Annotations, _ = json.Marshal(r.Annotations) // cannot fail for booleans
	}
	server, plain, qualified := strings.Cut(name, "__")
	switch {
	case qualified:
		t.Server, t.ServerTool = server, plain
	case r.Server != "":
		t.Server, t.ServerTool = r.Server, name
	case r.Source == "":
		t.Source = registry.SourceCommand
	}
	if t.Server != "" && !strings.HasPrefix(t.Source, registry.APIPrefix) {
		t.Source = registry.MCPPrefix + t.Server
	}
	return t
}

// sharedApprovals keeps the approvals of clients, and questions about their calls, in a store.
type sharedApprovals struct{ store *store.Store }

const (
	// approvalsTime is how long approvals are kept after their last change.
	approvalsTime = 90 * 24 * time.Hour
	// updates is how often a change is tried that others get ahead of.
	updates = 100
)

// storedAs returns the kind and the id in the store of a file, and how long it is kept.
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
