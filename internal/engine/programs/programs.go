// Package programs prepares what the programs that settings name run with: expanded values,
// environments, the sandbox, hooks, and the context that they are told. It knows no sources, and
// runs nothing itself but the commands that settings refer to for a value.
package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/builtin/shell"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// Set has what programs of the settings run with: expanded values, environments and the sandbox.
type Set struct {
	Settings *settings.Settings // must not be changed
	Dir      string             // the working directory
	Environ  []string           // of the process, "K=V"
	Folders  *state.Folders
	Warn     func(registry.Diagnostic)
	Log      *slog.Logger
	Hide     func(string) string // masks the secrets of the settings

	Expander *values.Expander
	Confiner *confine.Confiner
	Env      []string // of the commands that tools run; nil until it is known
	own      []string // of programs that no setting of the project names; see [settings.Settings.For]
	EnvErr   error    // why Env is incomplete
	// Shell returns the shell whose grammar is used to read commands, which is the one that
	// runs them.
	Shell func() string
}

// New expands the environments of programs. References to commands run these, unless still is set.
// seen is called with the value of each reference. The caller must call Confiner.Close.
func New(ctx context.Context, given Set, still bool, seen func(value string)) *Set {
	p := &given
	p.Expander = values.NewExpander(p.Settings.ProjectRoot, p.Environ)
	p.Confiner = confine.New(confine.Options{Settings: p.Settings,
		Environ: p.Environ, Env: p.ToolEnv, Expand: p.Expander.Expand,
		Hide: p.privateFolders, Closed: p.Folders.SocketFolders, Protect: p.guardedPaths, Neutral: p.Folders.Neutral,
		Logs: p.Folders.Sandbox, Warn: p.Warn, Log: p.Log})
	p.Expander.Environ = append(slices.Clone(p.Expander.Environ), p.Bytecode())
	p.Expander.Confine = func(scope settings.Scope) process.Confiner {
		return p.Confiner.ProgramsOf(confine.References, scope)
	}
	if still {
		p.Expander = p.Expander.WithoutCommands()
	}
	p.Expander.Seen = seen
	p.Shell = sync.OnceValue(func() string { return shell.Name(p.Env) })
	p.Env, p.EnvErr = values.ToolEnviron(ctx, p.Settings, p.Expander, p.Environ)
	p.own = p.Env
	if own := p.Settings.For(settings.ScopeUser); own != p.Settings {
		var err error
		if p.own, err = values.ToolEnviron(ctx, own, p.Expander, p.Environ); err != nil && p.EnvErr == nil {
			p.Warn(registry.Warning("env_unset", "", err.Error(),
				"commands run without the variables of the setting env"))
		}
	}
	if p.EnvErr != nil && !p.Settings.DiscoveryCommand.IsSet() {
		p.Warn(registry.Warning("env_unset", "", p.EnvErr.Error(),
			"commands run without the variables of the setting env"))
	}
	return p
}

// ToolEnv returns the environment of commands that tools run, or that of the process until it is
// known.
func (p *Set) ToolEnv() []string {
	if p.Env == nil {
		return p.Expander.Environ
	}
	return p.Env
}

// EnvFor returns the environment of a program that a setting names. If that setting is a project's,
// it includes the variables that the project adds.
func (p *Set) EnvFor(c settings.Command) []string {
	if c.Origin.Scope == settings.ScopeProject {
		return p.Env
	}
	return p.own
}

// Workspace returns the workspace of the settings; "" means that there is none.
func (p *Set) Workspace() string {
	if p.Settings.NoWorkspace {
		return ""
	}
	return p.Settings.Workspace
}

// Bytecode returns a variable that makes Python keep compiled modules in a folder of toolreg. Trust
// does not cover compiled modules of a project, because they change from run to run; an archive
// could contain one that does something else and has the timestamps that Python expects. It also
// keeps Python from writing to the folders of plugins, which would revoke trust.
func (p *Set) Bytecode() string {
	folder := os.DevNull
	if dir, err := p.Folders.Cache("python"); err == nil {
		folder = dir.Path
	}
	return "PYTHONPYCACHEPREFIX=" + folder
}

// Hooks returns the hooks of the settings; nil if there are none.
func (p *Set) Hooks(ctx context.Context) *hooks.Set {
	set := NewHooks(ctx, p.Settings, p.Expander, p.Environ)
	if set != nil {
		set.Hide = p.Hide
		for i := range set.Hooks {
			h := &set.Hooks[i]
			h.Confine, h.Env = p.Confiner.ProgramsOf(confine.Hooks, p.Settings.Hooks[i].Origin.Scope),
				append(h.Env, p.Bytecode())
		}
	}
	return set
}

// privateFolders returns toolreg's own folders in the home folder, which confined
// programs must not read.
func (p *Set) privateFolders() []string {
	var out []string
	if dir := settings.UserFolder(p.Environ); dir != "" {
		out = append(out, dir)
	}
	if d, err := p.Folders.State(); err == nil {
		out = append(out, d.Path)
	}
	if dir, err := state.DefaultDir(p.Environ); err == nil && !slices.Contains(out, dir) {
		out = append(out, dir)
	}
	if dir, err := state.DefaultCacheDir(p.Environ); err == nil {
		out = append(out, dir)
	}
	if dir, err := p.Folders.Secrets(); err == nil {
		out = append(out, dir.Path)
	}
	return append(out, p.Folders.SocketFolders()...)
}

// ProtectedPaths returns the files and folders of toolreg that no tool may change.
func (p *Set) ProtectedPaths() []string {
	out := append(p.Settings.ProtectedPaths(p.Environ, p.Dir, p.Settings.Globals.Files),
		filepath.Join(p.Settings.ProjectRoot, lock.Name))
	if dir, err := state.DefaultDataDir(p.Environ); err == nil {
		out = append(out, dir)
	}
	return out
}

// guardedPaths returns what sandboxed programs must not change: the protected paths, scripts in the
// workspace that run outside the sandbox without a question, and the folders of plugins.
func (p *Set) guardedPaths() []string {
	scripts, plugins, err := p.Settings.Scripts(p.Environ)
	if err != nil {
		p.Warn(registry.Warning("sandbox_scripts", "",
			"sandboxed programs may change scripts of the settings: "+err.Error(), ""))
	}
	return slices.Concat(p.ProtectedPaths(), scripts, plugins)
}

// PluginSettings returns the settings of one plugin, expanded; nil if there are
// none.
func (p *Set) PluginSettings(ctx context.Context, id string) (json.RawMessage, error) {
	for _, n := range p.Settings.RawNamed("plugins.settings") {
		if n.Name == id {
			return expand.JSON(n.JSON(),
				func(text string) (string, error) { return p.Expander.Secret(ctx, text, n.Origin.Scope) })
		}
	}
	return nil, nil
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
		out.Hooks = append(out.Hooks, hooks.Hook{Event: hooks.Event(h.Event),
			Command: h.Command.Argv, Tools: h.Tools, Timeout: h.Timeout,
			Env:    append(slices.Clone(env.vars), "TOOLREG_PROJECT_ROOT="+set.ProjectRoot),
			Origin: h.Origin.String(), Place: h.Layer,
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

// Facts are the context of a run: what programs and expressions are told about it.
type Facts struct {
	programs *Set
	given    []settings.Named
}

// Facts returns the context of a run with values given for it.
func (p *Set) Facts(given []settings.Named) Facts { return Facts{p, given} }

// JSON returns the context of this run: the setting context, overridden by what is given
// for the run and by the values that toolreg sets itself.
func (c Facts) JSON() json.RawMessage { return c.json(c.programs.Warn) }

// json calls unset with a warning about each value that cannot be expanded.
func (c Facts) json(unset func(registry.Diagnostic)) json.RawMessage {
	set, all := c.programs.Settings, map[string]any{"sandboxed": false}
	for _, n := range set.RawNamed("context") {
		value, err := expand.JSON(n.JSON(), c.programs.Expander.Expand)
		if err != nil {
			unset(registry.Warning("context_unset", "",
				fmt.Sprintf("%s: context.%s is ignored: %s", n.Origin, n.Name, err), ""))
			continue
		}
		all[n.Name] = value
	}
	for _, n := range c.given {
		all[n.Name] = n.JSON()
	}
	for name, value := range map[string]string{"workspace": set.Workspace, "projectRoot": set.ProjectRoot} {
		if value != "" {
			all[name] = value
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("{}") // cannot happen: each value is JSON
	}
	return out
}

// Text returns one value of the context as text; "" if it is not set or is
// neither text nor a number. A value that cannot be expanded is reported by JSON.
func (c Facts) Text(name string) string {
	value := jsonx.Get(c.json(func(registry.Diagnostic) {}), name)
	text, _ := jsonx.Text(value)
	if jsonx.KindOf(value) == jsonx.Number {
		return string(value)
	}
	return text
}
