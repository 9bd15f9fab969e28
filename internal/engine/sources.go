package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// sources has the sources of one run in the order of registration.
type sources struct {
	local   []registry.Source   // started for every request
	servers []*mcpclient.Source // started only if needed
	off     []OffServer         // disabled or not allowed, never started

	plugins       []Plugin             // all that were found
	pluginFolders []string             // where they were looked for
	composites    *discover.Composites // nil: none
}

// all returns all sources in the order of registration.
func (s *sources) all() []registry.Source {
	out := slices.Clone(s.local)
	for _, server := range s.servers {
		out = append(out, server)
	}
	return out
}

// withoutPlugins returns the local sources except plugins if name is that of a
// built-in tool: no plugin can take that name, so a call does not have to wait
// for plugins. It returns nil for other names, and if there are no plugins.
func (s *sources) withoutPlugins(name string) []registry.Source {
	if len(s.plugins) == 0 || builtin.Named(name) == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.local), func(source registry.Source) bool {
		return strings.HasPrefix(source.Name(), registry.PluginPrefix)
	})
}

// serverOf returns the server that a name of the form server__tool refers to,
// or nil. The longest server name wins.
func (s *sources) serverOf(name string) *mcpclient.Source {
	var found *mcpclient.Source
	longest := 0
	for _, server := range s.servers {
		raw := server.Info().Name
		for _, prefix := range []string{raw + "__", registry.ValidName(raw + "__")} {
			if strings.HasPrefix(name, prefix) && len(raw) > longest {
				found, longest = server, len(raw)
			}
		}
	}
	return found
}

// hidden finds the tool that a name would refer to if no setting excluded it,
// by name, alias, server__tool or name@version; nil if there is none.
func (s *sources) hidden(reg *registry.Registry, name string) *registry.Hidden {
	plain, version := name, ""
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		plain, version = name[:i], name[i+1:]
	}
	canonical := builtin.Aliases()[plain]
	var other *registry.Hidden // of another version
	for _, h := range reg.Hidden() {
		server, isMCP := strings.CutPrefix(h.Source, registry.MCPPrefix)
		qualified := server + "__" + h.Name
		meant := h.Name == name || h.Name == plain ||
			canonical != "" && h.Source == registry.SourceBuiltin && h.Name == canonical ||
			isMCP && (qualified == plain || registry.ValidName(qualified) == plain)
		switch {
		case meant && (plain == name || h.Version == version):
			return &h
		case meant && other == nil:
			other = &h
		}
	}
	if other != nil && reg.Versions(plain) == nil {
		return other
	}
	for _, off := range s.off {
		if strings.HasPrefix(plain, off.Name+"__") || strings.HasPrefix(plain, registry.ValidName(off.Name+"__")) {
			return &registry.Hidden{Name: plain, Source: registry.MCPPrefix + off.Name, Reason: "its server is " + off.Reason(), Setting: off.setting()}
		}
	}
	return nil
}

// OffServer is a server that the settings turn off.
type OffServer struct {
	settings.Server
	options mcpclient.Options
}

// Reason says which setting turns it off.
func (o OffServer) Reason() string {
	if o.Disabled {
		return "disabled at " + o.Origin.String()
	}
	return "not allowed: " + o.Excluded.String()
}

// setting returns the place of that setting.
func (o OffServer) setting() string {
	if o.Disabled {
		return o.Origin.String()
	}
	return o.Excluded.String()
}

// info describes the server.
func (o OffServer) info() mcpclient.Info {
	info := mcpclient.New(o.options).Info()
	info.State, info.Error = mcpclient.StateDisabled, o.Reason()
	return info
}

// filters converts the settings that exclude tools to filters, in the order in which they
// apply.
func filters(set *settings.Settings) []registry.Filter {
	out := []registry.Filter{discover.DisabledFilter(set.PluginsOff.Sourced())}
	if set.CoreTools.Set {
		out = append(out, registry.CoreToolsFilter(set.CoreTools.Sourced(), originOf(set.CoreTools)))
	}
	for _, server := range set.Servers {
		if server.IncludeTools.Set || server.ExcludeTools.Set {
			out = append(out, mcpclient.Filter(server))
		}
	}
	out = append(out,
		registry.PermissionsFilter(deniedPermissions(set)),
		discover.ConditionFilter(),
		registry.OptionalFilter(set.AllowOptional.Sourced()))
	if set.OnlyTools.Set {
		out = append(out, registry.OnlyFilter(set.OnlyTools.Sourced(), originOf(set.OnlyTools)))
	}
	return append(out, registry.ExcludeFilter(set.ExcludeTools.Sourced()))
}

// originOf returns where a list was set; "" if it is empty.
func originOf(l settings.List) string {
	if len(l.Entries) == 0 {
		return ""
	}
	return l.Entries[0].Origin.String()
}

// deniedPermissions maps each permission that is turned off to its setting.
func deniedPermissions(set *settings.Settings) map[string]string {
	out := map[string]string{}
	for name, allowed := range set.Permissions {
		if !allowed {
			out[name] = set.DeniedBy[name].String()
		}
	}
	return out
}

// presetFilters hides the built-in tools that are not in the preset.
func presetFilters(preset string) []registry.Filter {
	if preset == "" {
		return nil
	}
	return []registry.Filter{func(t *registry.Tool) *registry.Hidden {
		if t.Source != registry.SourceBuiltin || InPreset(preset, t) {
			return nil
		}
		return &registry.Hidden{Reason: "it is not in the preset " + preset, Setting: "--preset"}
	}}
}

// CheckPreset returns an *InputError if a preset does not exist; "" is no
// preset and valid.
func CheckPreset(preset string) error {
	for _, p := range presets(preset) {
		if !slices.Contains(builtin.Presets(), p) {
			return &InputError{Err: fmt.Errorf("unknown preset %q", p), Hint: "one of " + strings.Join(builtin.Presets(), ", ") + ", or several with commas"}
		}
	}
	return nil
}

// presets splits the value of --preset; nil if it is empty.
func presets(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.Split(text, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// InPreset reports whether a tool is in one of the presets. "" includes all
// tools. Only "full" includes tools that are not built in, and "mcp" those of
// MCP servers.
func InPreset(preset string, t *registry.Tool) bool {
	if preset == "" {
		return true
	}
	return slices.ContainsFunc(presets(preset), func(p string) bool {
		return p == "full" || p == builtin.PresetMCP && t.IsMCP() || t.Source == registry.SourceBuiltin && builtin.InPreset(p, t.OriginalName())
	})
}

// narrow removes the sources that have no tools in the preset: only "full"
// includes tools that are not built in.
func (s *sources) narrow(preset string) {
	given := presets(preset)
	if len(given) == 0 || slices.Contains(given, "full") {
		return
	}
	s.local = slices.DeleteFunc(s.local, func(source registry.Source) bool { return source.Name() != registry.SourceBuiltin })
	if !slices.Contains(given, builtin.PresetMCP) {
		s.servers, s.off = nil, nil
	}
}

// serverNames returns the names of all servers, with those that are turned off
// last.
func (s *sources) serverNames() []string {
	var out []string
	for _, server := range s.servers {
		out = append(out, server.Info().Name)
	}
	for _, off := range s.off {
		out = append(out, off.Name)
	}
	return out
}

// newSources creates the sources without starting any.
func (s *Session) newSources(ctx context.Context, composites *discover.Composites) *sources {
	env, envErr := values.ToolEnviron(ctx, s.set, s.expander, s.deps.Environ)
	if envErr != nil && !s.set.DiscoveryCommand.IsSet() {
		s.warn("env_unset", "", envErr.Error(), "commands run without the variables of the setting env")
	}
	s.env = env
	out := &sources{composites: composites}
	out.plugins, out.pluginFolders = findPlugins(ctx, pluginOptions{Settings: s.set, Environ: s.deps.Environ, Expander: s.expander, Cached: s.cached, Run: s.PluginOptions, EnvErr: envErr})
	own := s.builtinOptions()
	own.Protected = append(own.Protected, protectedFiles(out.plugins, s.set.Workspace)...)
	out.local = []registry.Source{builtin.Source(own)}
	for _, p := range out.plugins {
		if p.Source != nil {
			out.local = append(out.local, p.Source)
		}
	}
	if composites != nil {
		out.local = append(out.local, composites)
	}
	if s.set.DiscoveryCommand.IsSet() || s.set.DiscoveryCommand.Err != nil {
		out.local = append(out.local, discover.NewCommand(s.commandOptions(envErr)))
	}
	for _, server := range s.set.Servers {
		options := s.ServerOptions(ctx, server)
		if server.Disabled || server.Excluded != nil {
			out.off = append(out.off, OffServer{server, options})
			continue
		}
		out.servers = append(out.servers, mcpclient.New(options))
	}
	out.narrow(s.opts.Preset)
	return out
}

// discoverLimits returns the limits of plugins and of the discovery command.
func (r *run) discoverLimits() discover.Limits {
	l := r.set.Limits
	return discover.Limits{Discovery: l.DiscoveryOutput, Output: l.Result, Tools: l.Tools, Schema: l.Schema}
}

// PluginOptions returns the options for running the plugin with an id.
func (r *run) PluginOptions(id string) discover.PluginOptions {
	return discover.PluginOptions{
		Context: r.context(), ProjectRoot: r.set.ProjectRoot, Env: r.env,
		Settings: func(ctx context.Context) (json.RawMessage, error) { return r.pluginSettings(ctx, id) },
		Timeout:  r.set.DiscoveryTimeout, Limits: r.discoverLimits(), Confine: r.confiner.Programs(confine.Plugins), Evaluator: r.deps.Evaluator,
	}
}

// pluginSettings returns the settings of one plugin, expanded; nil if there are
// none.
func (r *run) pluginSettings(ctx context.Context, id string) (json.RawMessage, error) {
	for _, n := range r.set.RawNamed("plugins.settings") {
		if n.Name == id {
			return expand.JSON(n.JSON(), func(text string) (string, error) { return r.expander.Secret(ctx, text) })
		}
	}
	return nil, nil
}

// commandOptions returns the options of the discovery and call commands. A
// variable that is not set disables only this source, when it is used.
func (s *Session) commandOptions(envErr error) discover.CommandOptions {
	return discover.CommandOptions{
		Discovery: s.set.DiscoveryCommand, Call: s.set.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if envErr != nil {
				return nil, envErr
			}
			return s.expander.Command(c)
		},
		Context: s.context(), ProjectRoot: s.set.ProjectRoot, Env: s.env,
		Timeout: s.set.DiscoveryTimeout, Limits: s.discoverLimits(), Confine: s.confiner.Programs(confine.Discovery), Outputs: s.cached.OfOutput(registry.SourceCommand, ""),
		Evaluator: s.deps.Evaluator,
	}
}

// builtinOptions returns the options of the built-in tools.
func (s *Session) builtinOptions() builtin.Options {
	set := s.set
	o := builtin.Options{Workspace: set.Workspace, Env: s.env, ShellTimeout: orEndless(set.ShellTimeout), ShellMaxTimeout: orEndless(set.ShellMaxTimeout),
		MaxOutput: shellOutput(set), Protected: s.protectedPaths(), Fetch: s.fetchOptions(),
		Session: s.fact("sessionKey"), Agent: s.fact("agentId"), Began: s.deps.Start, Keeper: s.deps.Keeper}
	if d, err := s.deps.Folders.State(); err == nil {
		o.StateDir = d.Path
		o.Protected = append(o.Protected, d.Path)
	}
	return o
}

// shellOutput is how much run_shell_command keeps of stdout and of stderr: half
// of the limit each, so that its report is not cut again.
func shellOutput(set *settings.Settings) int64 {
	shell := &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Aliases: []string{"bash", "exec"}}}
	limit := set.Limits.Output
	if m := toolSettingsOf(set, shell).MaxOutput; m != nil {
		limit = *m
	}
	const labels = 1 << 10 // the other lines of the report
	return max(limit/2-labels, limit/4, 1)
}
