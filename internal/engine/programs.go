package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// programs has what the programs that settings name are run with: expanded values, environments
// and the sandbox.
type programs struct {
	set     *settings.Settings
	dir     string   // the working directory
	environ []string // of the process, "K=V"
	folders *state.Folders
	reports *reports

	expander *values.Expander
	confiner *confine.Confiner
	env      []string // of the commands that tools run; nil until it is known
	own      []string // of programs that no setting of the project names; see [settings.Settings.For]
	envErr   error    // why env is incomplete
}

// newPrograms expands the environments of programs. References to commands run these, unless
// still is set. seen is told of each value that a reference has. The caller must call
// confiner.Close.
func newPrograms(ctx context.Context, given programs, still bool, seen func(value string)) *programs {
	p := &given
	p.expander = values.NewExpander(p.set.ProjectRoot, p.environ)
	p.confiner = confine.New(confine.Options{Settings: p.set, Environ: p.environ, Env: p.programEnv, Expand: p.expander.Expand,
		Hide: p.privateFolders, Closed: p.folders.SocketFolders, Protect: p.guardedPaths, Neutral: p.folders.Neutral,
		Logs: p.folders.Sandbox, Warn: p.reports.add, Log: p.reports.log})
	p.expander.Environ = append(slices.Clone(p.expander.Environ), p.bytecode())
	p.expander.Confine = func(scope settings.Scope) process.Confiner { return p.confiner.ProgramsOf(confine.References, scope) }
	if still {
		p.expander = p.expander.Still()
	}
	p.expander.Seen = seen
	p.env, p.envErr = values.ToolEnviron(ctx, p.set, p.expander, p.environ)
	p.own = p.env
	if own := p.set.For(settings.ScopeUser); own != p.set {
		var err error
		if p.own, err = values.ToolEnviron(ctx, own, p.expander, p.environ); err != nil && p.envErr == nil {
			p.reports.warn("env_unset", "", err.Error(), "commands run without the variables of the setting env")
		}
	}
	if p.envErr != nil && !p.set.DiscoveryCommand.IsSet() {
		p.reports.warn("env_unset", "", p.envErr.Error(), "commands run without the variables of the setting env")
	}
	return p
}

// programEnv returns the environment of commands, or that of the process as long as the
// former is unknown.
func (p *programs) programEnv() []string {
	if p.env == nil {
		return p.expander.Environ
	}
	return p.env
}

// envFor returns the environment of a program that a setting names. That of tools has the variables
// of a project, too.
func (p *programs) envFor(c settings.Command) []string {
	if c.Origin.Scope == settings.ScopeProject {
		return p.env
	}
	return p.own
}

// shell returns the shell whose grammar is used to read commands, which is the one that
// runs them.
func (p *programs) shell() string { return builtin.Shell(p.env) }

// bytecode returns a variable with which Python keeps compiled modules in a folder of toolreg.
// Those in a project are not covered by trust, because they change from run to run, but an
// archive can give a module that does something else the times that Python expects. It also
// keeps Python from writing to the folders of plugins, which would revoke trust.
func (p *programs) bytecode() string {
	folder := os.DevNull
	if dir, err := p.folders.Cache("python"); err == nil {
		folder = dir.Path
	}
	return "PYTHONPYCACHEPREFIX=" + folder
}

// hooks returns the hooks of the settings; nil if there are none.
func (p *programs) hooks(ctx context.Context) *hooks.Set {
	set := NewHooks(ctx, p.set, p.expander, p.environ)
	if set != nil {
		for i := range set.Hooks {
			h := &set.Hooks[i]
			h.Confine, h.Env = p.confiner.ProgramsOf(confine.Hooks, p.set.Hooks[i].Origin.Scope), append(h.Env, p.bytecode())
		}
	}
	return set
}

// privateFolders returns toolreg's own folders in the home folder, which confined
// programs must not read.
func (p *programs) privateFolders() []string {
	var out []string
	if dir := settings.UserFolder(p.environ); dir != "" {
		out = append(out, dir)
	}
	if d, err := p.folders.State(); err == nil {
		out = append(out, d.Path)
	}
	if dir, err := state.DefaultDir(p.environ); err == nil && !slices.Contains(out, dir) {
		out = append(out, dir)
	}
	if dir, err := state.DefaultCacheDir(p.environ); err == nil {
		out = append(out, dir)
	}
	if dir, err := p.folders.Secrets(); err == nil {
		out = append(out, dir.Path)
	}
	return append(out, p.folders.SocketFolders()...)
}

// protectedPaths returns the files and folders of toolreg that no tool may change.
func (p *programs) protectedPaths() []string {
	out := append(p.set.ProtectedPaths(p.environ, p.dir, p.set.Globals.Files), filepath.Join(p.set.ProjectRoot, lock.Name))
	if dir, err := state.DefaultDataDir(p.environ); err == nil {
		out = append(out, dir)
	}
	return out
}

// guardedPaths returns what sandboxed programs do not change: the protected paths, and the
// scripts in the workspace that run outside the sandbox without a question.
func (p *programs) guardedPaths() []string {
	scripts, err := p.set.Scripts(p.environ)
	if err != nil {
		p.reports.warn("sandbox_scripts", "", "sandboxed programs may change scripts of the settings: "+err.Error(), "")
	}
	return append(p.protectedPaths(), scripts...)
}

// pluginSettings returns the settings of one plugin, expanded; nil if there are
// none.
func (p *programs) pluginSettings(ctx context.Context, id string) (json.RawMessage, error) {
	for _, n := range p.set.RawNamed("plugins.settings") {
		if n.Name == id {
			return expand.JSON(n.JSON(), func(text string) (string, error) { return p.expander.Secret(ctx, text, n.Origin.Scope) })
		}
	}
	return nil, nil
}

// announcer calls the hooks onRegister and onDiagnostic once.
type announcer struct {
	programs *programs
	still    bool // see [Options.Still]
	done     atomic.Bool
}

func (a *announcer) announce(ctx context.Context, reg *registry.Registry) {
	if a.still {
		return
	}
	set := a.programs.hooks(ctx)
	if set == nil || !a.done.CompareAndSwap(false, true) {
		return
	}
	reports := a.programs.reports
	if err := errors.Join(set.Registered(ctx, reg.Tools()), set.Noticed(ctx, reports.with(reg.Diagnostics()))); err != nil {
		reports.warn("hook_failed", "", err.Error(), "")
	}
}

// NewHooks returns the hooks of settings, nil if there are none, without a session; environ is
// the environment of the process.
func NewHooks(ctx context.Context, set *settings.Settings, x *values.Expander, environ []string) *hooks.Set {
	if len(set.Hooks) == 0 {
		return nil
	}
	out := &hooks.Set{Dir: set.ProjectRoot}
	type environment struct {
		vars []string
		err  error
	}
	envs := map[settings.Scope]environment{}
	for _, h := range set.Hooks {
		env, ok := envs[h.Origin.Scope]
		if !ok {
			env.vars, env.err = values.ToolEnviron(ctx, set.For(h.Origin.Scope), x, environ)
			envs[h.Origin.Scope] = env
		}
		out.Hooks = append(out.Hooks, hooks.Hook{Event: hooks.Event(h.Event), Command: h.Command.Argv, Tools: h.Tools, Timeout: h.Timeout,
			Env: append(slices.Clone(env.vars), "TOOLREG_PROJECT_ROOT="+set.ProjectRoot), Origin: h.Origin.String(), Place: h.Layer,
			Expand: func() ([]string, error) {
				if env.err != nil {
					return nil, env.err
				}
				return hookCommand(x, h.Command)
			}})
	}
	return out
}

// hookCommand expands a hook's command. A relative program path in the system's
// or user's settings is resolved from the folder of those settings: hooks run
// in the project, which must not be able to replace the program.
func hookCommand(x *values.Expander, c settings.Command) ([]string, error) {
	argv, err := x.Command(c)
	if err != nil {
		return nil, err
	}
	ours := c.Origin.Scope == settings.ScopeUser || c.Origin.Scope == settings.ScopeSystem
	if ours && strings.ContainsRune(filepath.ToSlash(argv[0]), '/') && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(filepath.Dir(c.Origin.Name), argv[0])
	}
	return argv, nil
}

// Fact is one value of the context, given for this run.
type Fact struct {
	Name  string
	Value json.RawMessage
}

// facts are the context of a run: what programs and expressions are told about it.
type facts struct {
	set      *settings.Settings
	given    []Fact
	expander *values.Expander
	reports  *reports
}

// json returns the context of this run: the setting context, overridden by --context
// and by the values that toolreg sets itself.
func (c facts) json() json.RawMessage {
	all := map[string]json.RawMessage{"sandboxed": json.RawMessage("false")}
	for _, n := range c.set.RawNamed("context") {
		value, err := expand.JSON(n.JSON(), c.expander.Expand)
		if err != nil {
			c.reports.warn("context_unset", "", fmt.Sprintf("%s: context.%s is ignored: %s", n.Origin, n.Name, err), "")
			continue
		}
		all[n.Name] = value
	}
	for _, fact := range c.given {
		all[fact.Name] = fact.Value
	}
	set := func(name, value string) {
		if text, err := json.Marshal(value); err == nil && value != "" {
			all[name] = text
		}
	}
	set("channel", c.set.Globals.Channel)
	set("workspace", c.set.Workspace)
	set("projectRoot", c.set.ProjectRoot)
	out, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("{}") // cannot happen: each value is JSON
	}
	return out
}

// text returns one value of the context as text; "" if it is not set or is
// neither text nor a number.
func (c facts) text(name string) string {
	var value json.RawMessage
	for _, n := range c.set.RawNamed("context") {
		if n.Name == name {
			// A value that cannot be expanded is reported by json.
			value, _ = expand.JSON(n.JSON(), c.expander.Expand)
		}
	}
	for _, fact := range c.given {
		if fact.Name == name {
			value = fact.Value
		}
	}
	var out string
	var number json.Number
	if json.Unmarshal(value, &out) != nil && json.Unmarshal(value, &number) == nil {
		out = number.String()
	}
	return out
}
