package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

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

// projectOf returns a function that reports whether a project's settings name the source of a tool,
// and whether that source replaces a server, plugin or command of the person's own settings.
func projectOf(set *settings.Settings, plugins *sources.Plugins) func(*registry.Tool) (ofProject, replaces bool) {
	sources, replaced, composites := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, key := range []string{"toolDiscoveryCommand", "toolCallCommand"} {
		merged := set.Merged()
		all := merged.Of(merged.Index.Row(key))
		if n := len(all); n > 0 && all[n-1].Origin.Scope == settings.ScopeProject {
			sources[registry.SourceCommand] = true
			replaced[registry.SourceCommand] = replaced[registry.SourceCommand] || n > 1
		}
	}
	for i := range plugins.Found {
		p := &plugins.Found[i]
		name := registry.PluginPrefix + p.ID
		sources[name] = sources[name] || p.Root != "" && !p.Untrusted && len(p.Problems) == 0
		replaced[name] = replaced[name] || sources[name] && p.Root == ""
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
	err := &settings.InputError{Err: fmt.Errorf("there is no workspace in %s", set.Workspace), Hint: hintWorkspace}
	return func(t *registry.Tool) *registry.Hidden {
		if t.Source != registry.SourceBuiltin || !builtin.InWorkspace(t.OriginalName()) {
			return nil
		}
		return &registry.Hidden{Reason: err.Error(), Err: err}
	}
}

// noticeWorkspace reports that a preset's tools which need a workspace are left out.
func noticeWorkspace(set *settings.Settings, preset string, reports *reports) {
	reader := &registry.Tool{Definition: registry.Definition{Name: "read_file", Source: registry.SourceBuiltin}}
	if set.NoWorkspace && InPreset(preset, reader) {
		reports.notice(registry.Warning("no_workspace", registry.SourceBuiltin,
			fmt.Sprintf("there is no workspace in %s, so file and shell tools are left out", set.Workspace),
			hintWorkspace))
	}
}

// hintWorkspace says how to get a workspace.
const hintWorkspace = "change to another folder, or choose one with --root DIR"

// sourceFilters converts the exclusions in the entries of servers and APIs to filters.
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

func deniedPermissions(set *settings.Settings) map[string]string {
	out := map[string]string{}
	for name, allowed := range set.Permissions {
		if !allowed {
			out[name] = set.DeniedBy[name].String()
		}
	}
	return out
}

// outsidePreset returns a filter of the built-in tools that are not in the preset.
func outsidePreset(preset string) registry.Filter {
	return func(t *registry.Tool) *registry.Hidden {
		if t.Source != registry.SourceBuiltin || InPreset(preset, t) {
			return nil
		}
		return &registry.Hidden{Reason: "it is not in the preset " + preset, Setting: "--preset"}
	}
}

// CheckPreset returns a *settings.InputError if a preset does not exist. "" means no preset and is
// valid.
func CheckPreset(preset string) error {
	for _, p := range presets(preset) {
		if !slices.Contains(builtin.Presets(), p) {
			return &settings.InputError{Err: fmt.Errorf("unknown preset %q", p),
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

// onlyLocal reports whether a preset has only built-in tools and those of the host. That is true of
// all presets but "full" and "mcp".
func onlyLocal(preset string) bool {
	given := presets(preset)
	return len(given) > 0 && !slices.Contains(given, "full") && !slices.Contains(given, builtin.PresetMCP)
}

// replayedSettings returns the settings of a run that replays a recording, without the sources that
// the recording replaces.
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
