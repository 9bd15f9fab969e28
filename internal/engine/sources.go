package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// sources has the sources of one run in the order of registration.
type sources struct {
	*Servers
	builtin    registry.Source
	local      []registry.Source // started for every request; the host's comes first
	plugins    *Plugins
	composites *discover.Composites // nil if there are none

	newComposites func(context.Context) *discover.Composites // reads them again
}

// all returns all sources in the order of registration.
func (s *sources) all() []registry.Source {
	return slices.Concat(s.local, s.sources())
}

// withoutPlugins returns the local sources except plugins if name is that of a
// built-in tool: no plugin can take that name, so a call does not have to wait
// for plugins. It returns nil for other names, and if there are no plugins.
func (s *sources) withoutPlugins(name string) []registry.Source {
	if len(s.plugins.Found) == 0 || builtin.Named(name) == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.local), func(source registry.Source) bool {
		return strings.HasPrefix(source.Name(), registry.PluginPrefix)
	})
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
		server, isServer := registry.ServerOf(h.Source)
		qualified := server + "__" + h.Name
		meant := h.Name == name || h.Name == plain ||
			canonical != "" && h.Source == registry.SourceBuiltin && h.Name == canonical ||
			isServer && (qualified == plain || registry.ValidName(qualified) == plain)
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
	if off := s.offOf(plain); off != nil {
		why, setting := off.Off()
		return &registry.Hidden{Name: plain, Source: off.Source(), Reason: "its server is " + why, Setting: setting}
	}
	return nil
}

// filters converts the settings that exclude tools to filters, in the order in which they
// apply.
func filters(set *settings.Settings, apis []*openapi.Source) []registry.Filter {
	out := []registry.Filter{discover.DisabledFilter(set.PluginsOff.Sourced())}
	if set.NoWorkspace {
		out = append(out, noWorkspaceFilter(set))
	}
	if set.CoreTools.Set {
		out = append(out, registry.CoreToolsFilter(set.CoreTools.Sourced(), originOf(set.CoreTools)))
	}
	out = append(append(out, sourceFilters(set, apis)...),
		registry.PermissionsFilter(deniedPermissions(set)),
		discover.ConditionFilter(),
		registry.OptionalFilter(set.AllowOptional.Sourced()))
	if set.OnlyTools.Set {
		out = append(out, registry.OnlyFilter(set.OnlyTools.Sourced(), originOf(set.OnlyTools)))
	}
	return append(out, registry.ExcludeFilter(set.ExcludeTools.Sourced()))
}

// projectOf returns a function that says of a tool whether its source is named by a project, and
// whether this source replaces a server of the person's.
func projectOf(set *settings.Settings, plugins *Plugins) func(*registry.Tool) (ofProject, replaces bool) {
	sources, replaced, composites := map[string]bool{}, map[string]bool{}, map[string]bool{}
	sources[registry.SourceCommand] = set.DiscoveryCommand.Origin.Scope == settings.ScopeProject
	for i := range plugins.Found {
		sources[registry.PluginPrefix+plugins.Found[i].ID] = plugins.Found[i].Root != ""
	}
	server := func(source string, s settings.Server) {
		sources[source], replaced[source] = s.Origin.Scope == settings.ScopeProject, s.Replaces != nil
	}
	for _, s := range set.Servers {
		server(registry.MCPPrefix+s.Name, s)
	}
	for i := range set.APIs {
		server(registry.APIPrefix+set.APIs[i].Name, set.APIs[i].Server)
	}
	for _, n := range set.RawNamed("composites") {
		composites[n.Name] = n.Origin.Scope == settings.ScopeProject
	}
	return func(t *registry.Tool) (bool, bool) {
		return sources[t.Source] || t.Source == registry.SourceComposite && composites[t.Name], replaced[t.Source]
	}
}

// noWorkspaceFilter hides the built-in tools that need a workspace.
func noWorkspaceFilter(set *settings.Settings) registry.Filter {
	err := &InputError{Err: fmt.Errorf("there is no workspace in %s", set.Workspace), Hint: hintWorkspace}
	return func(t *registry.Tool) *registry.Hidden {
		if t.Source != registry.SourceBuiltin || !builtin.InWorkspace(t.OriginalName()) {
			return nil
		}
		return &registry.Hidden{Reason: err.Error(), Err: err}
	}
}

// hintWorkspace says how to get a workspace.
const hintWorkspace = "change to another folder, or choose one with --root DIR"

// sourceFilters converts what the entries of servers and APIs exclude to filters.
func sourceFilters(set *settings.Settings, apis []*openapi.Source) []registry.Filter {
	var out []registry.Filter
	for _, server := range set.Servers {
		if server.IncludeTools.Set || server.ExcludeTools.Set {
			out = append(out, mcpclient.Filter(server))
		}
	}
	for _, api := range apis {
		if filter := api.Filter(); filter != nil {
			out = append(out, filter)
		}
	}
	return out
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
			return &InputError{Err: fmt.Errorf("unknown preset %q", p),
				Hint: "one of " + strings.Join(builtin.Presets(), ", ") + ", or several with commas"}
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
// tools. Only "full" includes all, and "mcp" those that are not built in.
func InPreset(preset string, t *registry.Tool) bool {
	if preset == "" || t.Source == registry.SourceHost {
		return true
	}
	return slices.ContainsFunc(presets(preset), func(p string) bool {
		return p == "full" || p == builtin.PresetMCP && t.Source != registry.SourceBuiltin ||
			t.Source == registry.SourceBuiltin && builtin.InPreset(p, t.OriginalName())
	})
}

// narrow removes the sources that have no tools in the preset: only "full" and "mcp"
// include tools that are not built in.
func (s *sources) narrow(preset string) {
	given := presets(preset)
	if len(given) == 0 || slices.Contains(given, "full") || slices.Contains(given, builtin.PresetMCP) {
		return
	}
	s.local = slices.DeleteFunc(s.local, func(source registry.Source) bool {
		return source.Name() != registry.SourceBuiltin && source.Name() != registry.SourceHost
	})
	s.on, s.off, s.apis, s.recorded = nil, nil, nil, nil
}

// withReplayed adds the sources of a recording to the local ones. That of the host takes the
// place of today's, in front.
func withReplayed(local, replayed []registry.Source) []registry.Source {
	for _, source := range replayed {
		if source.Name() != registry.SourceHost {
			local = append(local, source)
			continue
		}
		local = slices.DeleteFunc(local, func(s registry.Source) bool { return s.Name() == registry.SourceHost })
		local = slices.Insert(local, 0, source)
	}
	return local
}

// replayedSettings returns the settings of a run that replays a recording: without the
// sources that the recording has in their place.
func replayedSettings(set *settings.Settings, sources []registry.Source) *settings.Settings {
	replayed := *set
	replayed.DiscoveryCommand, replayed.CallCommand = settings.Command{}, settings.Command{}
	replayed.Servers, replayed.APIs = nil, nil
	for _, source := range sources {
		if name, ok := strings.CutPrefix(source.Name(), registry.APIPrefix); ok {
			replayed.APIs = append(replayed.APIs, settings.API{Server: settings.Server{Name: name}})
		} else if name, ok := registry.ServerOf(source.Name()); ok {
			replayed.Servers = append(replayed.Servers, settings.Server{Name: name})
		}
	}
	return &replayed
}

// newSources creates the sources without starting any. host may be nil. replayed are those of a
// recording; with one, no others are created but built-in tools and composites. inside is
// [process.InsideServer].
func newSources(ctx context.Context, o *sourceOptions, c *Connections, preset string, host registry.Source,
	replayed []registry.Source, inside func() (string, bool)) *sources {
	set, reports := o.programs.set, o.programs.reports
	out := &sources{Servers: &Servers{listings: c.listings}, plugins: newPlugins(ctx, o),
		composites: o.composites(ctx), newComposites: o.composites}
	own := o.builtin()
	own.Protected = append(own.Protected, protectedFiles(out.plugins.Found, set.Workspace)...)
	out.builtin = builtin.Source(own)
	if set.NoWorkspace && InPreset(preset, &registry.Tool{Definition: registry.Definition{Name: "read_file", Source: registry.SourceBuiltin}}) {
		reports.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "no_workspace", Source: registry.SourceBuiltin,
			Message: fmt.Sprintf("there is no workspace in %s, so file and shell tools are left out", set.Workspace), Hint: hintWorkspace})
	}
	if host != nil {
		out.local = append(out.local, host)
	}
	out.local = append(out.local, out.builtin)
	if c.gate.tape.Replays() {
		out.local = withReplayed(out.local, replayed)
		out.recorded = c.replayed(ctx, replayed)
		if out.composites != nil {
			out.local = append(out.local, out.composites)
		}
		out.narrow(preset)
		return out
	}
	for _, p := range out.plugins.Found {
		if p.Source != nil {
			out.local = append(out.local, p.Source)
		}
	}
	if out.composites != nil {
		out.local = append(out.local, out.composites)
	}
	if set.DiscoveryCommand.IsSet() || set.DiscoveryCommand.Err != nil {
		out.local = append(out.local, discover.NewCommand(o.command()))
	}
	for _, server := range set.Servers {
		off := OffServer{Server: server, options: c.Options(ctx, server)}
		if !server.IsOff() {
			switch off.skipped = skipped(o.programs, inside, &server); {
			case off.skipped == "" && c.logins.perClient && server.LoginPerClient():
				off.skipped = perClient
			case off.skipped == "":
				out.on = append(out.on, c.links.server(off.options, ""))
				continue
			default:
				reportSkipped(reports, &off)
			}
		}
		out.off = append(out.off, off)
	}
	for _, api := range set.APIs {
		if api.Disabled {
			out.off = append(out.off, OffServer{Server: api.Server, isAPI: true})
			continue
		}
		out.apis = append(out.apis, c.api(api))
	}
	out.narrow(preset)
	return out
}

// reportSkipped reports a skipped server: as a warning if it was given for this run.
func reportSkipped(r *reports, o *OffServer) {
	message := fmt.Sprintf("server %q (%s) is %s", o.Name, o.Origin, o.skipped)
	if o.Origin.Scope == settings.ScopeFlag || o.Origin.Scope == settings.ScopeEnv {
		r.warn("server_skipped", registry.MCPPrefix+o.Name, message, "")
		return
	}
	r.notice(registry.Diagnostic{Severity: registry.SeverityInfo, Code: "server_skipped", Source: registry.MCPPrefix + o.Name, Message: message})
}

// perClient is why a server with oauth.per: client is not part of a registry.
const perClient = "reached only with the login of a client (oauth.per: client)"

// ofClients returns the function that makes the sources of a client: those of all, and the servers
// that are reached with its own logins, at their places in the settings. It returns nil if there
// are no such servers.
func (s *sources) ofClients(c *Connections) func(ctx context.Context, client string) *sources {
	isOwn := func(off OffServer) bool { return off.skipped == perClient }
	if !slices.ContainsFunc(s.off, isOwn) {
		return nil
	}
	return func(ctx context.Context, client string) *sources {
		out, servers := *s, *s.Servers
		out.Servers = &servers
		servers.on, servers.off = nil, slices.DeleteFunc(slices.Clone(s.off), isOwn)
		for _, entry := range c.programs.set.Servers {
			named := func(name string) bool { return name == entry.Name }
			if i := slices.IndexFunc(s.on, func(server *mcpclient.Source) bool { return named(server.Settings().Name) }); i >= 0 {
				servers.on = append(servers.on, s.on[i])
			} else if slices.ContainsFunc(s.off, func(off OffServer) bool { return isOwn(off) && named(off.Name) }) {
				servers.on = append(servers.on, c.serverFor(ctx, entry, client))
			}
		}
		if s.composites != nil { // whether all steps of one are known depends on the tools
			out.composites = s.newComposites(ctx)
			out.local = slices.Clone(s.local)
			out.local[slices.Index(out.local, registry.Source(s.composites))] = out.composites
		}
		return &out
	}
}

// Listed collects the tools that servers list, before anything is cut off or renamed, for
// [Session.Check]. The zero value is ready to use.
type Listed struct {
	tools []registry.Tool
	seen  map[string]bool // fingerprints, because a registry may be built twice
}

// before returns a filter that collects tools and then applies another, which may be nil.
func (l *Listed) before(next registry.Filter) registry.Filter {
	l.seen = map[string]bool{}
	return func(t *registry.Tool) *registry.Hidden {
		if t.OfServer() {
			if key := t.Fingerprint(); !l.seen[key] {
				l.seen[key] = true
				l.tools = append(l.tools, *t)
			}
		}
		if next == nil {
			return nil
		}
		return next(t)
	}
}
