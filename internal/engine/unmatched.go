package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// named is a name or glob of tools or servers in a setting.
type named struct {
	setting string // such as excludeTools
	value   string
	origin  string // file:line, a variable or a flag
	compare comparison
}

// comparison is how a setting compares its names with those that exist. Settings that
// deny or ask ignore case; settings that allow or change something do not.
type comparison int

const (
	exactGlob  comparison = iota // a name or glob
	foldedGlob                   // a name or glob, ignoring case
	exactName                    // a name
)

func (n named) matches(known string) bool {
	switch n.compare {
	case exactName:
		return n.value == known
	case foldedGlob:
		return text.MatchNameFold(n.value, known)
	default:
		return text.MatchName(n.value, known)
	}
}

// ofRule returns how a rule compares its names.
func ofRule(r settings.Rule) comparison {
	if r.Decision == "deny" || r.Decision == "ask" {
		return foldedGlob
	}
	return exactGlob
}

// rulesSetting returns the setting that has a rule.
func rulesSetting(r settings.Rule) string {
	if r.Profile != "" {
		return "serve.profiles." + r.Profile + ".rules"
	}
	return "policy.rules"
}

// nameCheck compares the names in the settings with those that exist.
type nameCheck struct {
	*finder
	registry *registry.Registry
}

// checkNames warns about names in the settings that match nothing in the whole
// registry.
func (f *finder) checkNames(reg *registry.Registry) {
	if f.preset != "" {
		return // a preset omits sources
	}
	(&nameCheck{f, reg}).check()
}

// check warns about names in the settings that match nothing. Tools that another setting
// hides do exist. If a source failed or is turned off, a name may be one of its tools, so
// only probable typos are reported.
func (m *nameCheck) check() {
	m.checkServerLists()
	for _, e := range m.set.PluginsOff.Entries {
		m.checkName(named{"plugins.disabled", e.Value, e.Origin.String(), exactGlob}, m.plugins(), "plugin", true)
	}
	tools, overrides, servers, sources := m.namesOfTools(), m.namedOverrides(), m.namedServers(), m.namedSources()
	if len(tools)+len(overrides)+len(servers)+len(sources)+len(m.set.AllowOptional.Entries) == 0 {
		return
	}
	failed := func(r registry.SourceReport) bool { return r.State == registry.StateFailed }
	complete := len(m.sources.off) == 0 && !slices.ContainsFunc(m.registry.Reports(), failed)
	known := m.knownNames((*registry.Definition).Spellings)
	for _, t := range m.registry.Tools() {
		known = append(known, t.Spellings()...)
	}
	called := append(m.knownNames((*registry.Definition).Called), known...)
	slices.Sort(known)
	known = slices.Compact(known)
	m.checkTools(slices.DeleteFunc(tools, func(n named) bool { // what denies knows more names
		return n.compare == foldedGlob && slices.ContainsFunc(called, n.matches)
	}), known, complete)
	if len(overrides) > 0 {
		known := append(m.knownNames((*registry.Definition).OverrideNames), m.registeredNames()...)
		slices.Sort(known)
		m.checkTools(overrides, slices.Compact(known), complete)
	}
	for _, e := range m.set.AllowOptional.Entries {
		m.checkName(named{"tools.allow", registry.Folded(e.Value), e.Origin.String(), foldedGlob}, m.allowable(known), "tool or plugin", complete)
	}
	for _, n := range servers {
		m.checkName(n, m.sources.names(), "server", true)
	}
	for _, n := range sources {
		m.checkName(n, m.knownSources(), "source", true)
	}
}

// checkTools warns about names that match none of the known tools.
func (m *nameCheck) checkTools(names []named, known []string, complete bool) {
	for _, n := range names {
		if !m.isOfAbsent(n.value) {
			m.checkName(n, known, "tool", complete)
		}
	}
}

// isOfAbsent reports whether a name refers to a server that is turned off or
// failed, so that its tools are unknown.
func (m *nameCheck) isOfAbsent(name string) bool {
	if server := m.sources.Of(name); server != nil && m.failed(server.Name()) {
		return true
	}
	return m.sources.offOf(name) != nil
}

func (m *nameCheck) failed(source string) bool {
	return slices.ContainsFunc(m.registry.Reports(), func(r registry.SourceReport) bool { return r.Name == source && r.Err != nil })
}

// checkName warns if a name matches none of the known ones.
func (m *nameCheck) checkName(n named, known []string, what string, complete bool) {
	if slices.ContainsFunc(known, n.matches) {
		return
	}
	near := registry.Near(n.value, known)
	if !complete && len(near) == 0 {
		return
	}
	hint := ""
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	m.reports.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "name_unmatched",
		Message: fmt.Sprintf("%s: %s: %q matches no %s", n.origin, n.setting, n.value, what), Hint: hint})
}

// namesOfTools returns the names of tools that occur in the settings.
func (m *nameCheck) namesOfTools() []named {
	var out []named
	add := func(setting, value, origin string, compare comparison) {
		value, _, _ = strings.Cut(value, "(") // run_shell_command(git)
		if value = registry.NameIn(value); value != "" && value != "*" {
			out = append(out, named{setting, value, origin, compare})
		}
	}
	list := func(setting string, l settings.List, compare comparison) {
		for _, e := range l.Entries {
			add(setting, e.Value, e.Origin.String(), compare)
		}
	}
	list("excludeTools", m.set.ExcludeTools, foldedGlob)
	list("allowedTools", m.set.AllowedTools, exactGlob)
	list("coreTools", m.set.CoreTools, exactGlob)
	list("tools.only", m.set.OnlyTools, exactGlob)
	list("search.always", m.set.Search.Always, exactGlob)
	for _, r := range m.set.Rules {
		add(rulesSetting(r), r.Tool, r.Origin.String(), ofRule(r))
	}
	for _, l := range m.set.CallLimits {
		add("serve.limits", l.Tool, l.Origin.String(), foldedGlob)
	}
	for _, s := range m.set.Serve.OAuth.Scopes {
		add("serve.oauth.scopes", s.Tool, s.Origin.String(), foldedGlob)
	}
	for _, p := range m.set.Profiles {
		for _, glob := range p.Always {
			add("serve.profiles."+p.Name+".always", glob, p.Origin.String(), exactGlob)
		}
	}
	for i := range m.set.ToolOptions {
		add("toolOptions", m.set.ToolOptions[i].Pattern, m.set.ToolOptions[i].Origin.String(), exactGlob)
	}
	for _, h := range m.set.Hooks {
		for _, name := range h.Tools {
			add("hooks", name, h.Origin.String(), foldedGlob)
		}
	}
	return out
}

// namedOverrides returns the names of overrides.
func (m *nameCheck) namedOverrides() []named {
	var out []named
	for _, n := range m.set.RawNamed("overrides") {
		out = append(out, named{"overrides", n.Name, n.Origin.String(), exactName})
	}
	return out
}

// namedSources returns the sources that occur in rules.
func (m *nameCheck) namedSources() []named {
	var out []named
	for _, r := range m.set.Rules {
		if r.Source != "" && r.Source != "*" {
			out = append(out, named{rulesSetting(r), r.Source, r.Origin.String(), ofRule(r)})
		}
	}
	return out
}

// knownSources returns the names of all sources, including those that are turned
// off.
func (m *nameCheck) knownSources() []string {
	out := []string{registry.SourceBuiltin, registry.SourceHost, registry.SourceCommand, registry.SourceComposite}
	for _, p := range m.sources.plugins.Found {
		out = append(out, registry.PluginPrefix+p.ID)
	}
	for _, source := range m.sources.sources() {
		out = append(out, source.Name())
	}
	for _, off := range m.sources.off {
		out = append(out, off.Source())
	}
	return out
}

// namedServers returns the names of servers that occur in rules and in
// sandbox.servers.
func (m *nameCheck) namedServers() []named {
	var out []named
	for _, r := range m.set.Rules {
		if r.Server != "" && r.Server != "*" {
			out = append(out, named{rulesSetting(r), r.Server, r.Origin.String(), ofRule(r)})
		}
	}
	for _, p := range m.set.Profiles {
		for _, glob := range p.Server {
			out = append(out, named{"serve.profiles." + p.Name + ".server", glob, p.Origin.String(), exactGlob})
		}
	}
	for _, n := range m.set.RawNamed("sandbox.servers") {
		out = append(out, named{"sandbox.servers", n.Name, n.Origin.String(), exactName})
	}
	return out
}

// knownNames returns all names of the tools of all sources, including hidden
// ones.
func (m *nameCheck) knownNames(of func(*registry.Definition) []string) []string {
	var out []string
	for _, source := range m.sources.all() {
		given := m.loader.Given(source)
		for i := range given {
			out = append(out, of(&given[i].Definition)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// registeredNames returns the names that tools have in the registry without their
// overrides, which a conflict may have changed.
func (m *nameCheck) registeredNames() []string {
	var out []string
	for _, t := range m.registry.Tools() {
		out = append(out, t.Upstream().Name)
	}
	for _, h := range m.registry.Hidden() {
		out = append(out, h.Name)
	}
	return out
}

// allowable returns the valid values of tools.allow: tools, plugins and
// group:plugins.
func (m *nameCheck) allowable(tools []string) []string {
	return slices.Concat(tools, []string{registry.GroupPlugins}, m.plugins())
}

// plugins returns the ids of all plugins, whether they are used or not.
func (m *nameCheck) plugins() []string {
	var out []string
	for _, p := range m.sources.plugins.Found {
		out = append(out, p.ID)
	}
	return out
}

// checkServerLists warns about entries of a server's includeTools and excludeTools that
// match none of its tools, and of an API's include and exclude that match no operation.
func (m *nameCheck) checkServerLists() {
	check := func(setting, what string, l settings.List, names []string) {
		for _, e := range l.Entries {
			m.checkName(named{setting, registry.NameIn(e.Value), e.Origin.String(), exactGlob}, names, what, true)
		}
	}
	for _, api := range m.sources.apis {
		if set := api.Settings(); !m.failed(api.Name()) && (set.Include.Set || set.Exclude.Set) {
			names := api.Names()
			check("include of API "+set.Name, "operation", set.Include, names)
			check("exclude of API "+set.Name, "operation", set.Exclude, names)
		}
	}
	for _, server := range m.sources.all() {
		if !strings.HasPrefix(server.Name(), registry.MCPPrefix) || m.failed(server.Name()) {
			continue
		}
		given := m.loader.Given(server)
		names := make([]string, len(given))
		for i := range given {
			names[i] = given[i].ServerTool
		}
		for _, set := range m.set.Servers {
			if registry.MCPPrefix+set.Name != server.Name() {
				continue
			}
			include := settings.List{Entries: slices.Clone(set.IncludeTools.Entries)}
			for i, e := range include.Entries {
				include.Entries[i].Value, _, _ = strings.Cut(e.Value, "(")
			}
			check("includeTools of server "+set.Name, "tool of the server", include, names)
			check("excludeTools of server "+set.Name, "tool of the server", set.ExcludeTools, names)
		}
	}
}

// resolveComposites quarantines composites with a step that names an unknown
// tool, once all sources are loaded, and returns the registry without them. If
// a failed source might have the tool, or a setting hides it, there is only a
// diagnostic.
func (f *finder) resolveComposites(ctx context.Context, reg *registry.Registry) *registry.Registry {
	if f.sources.composites == nil || f.preset != "" { // a preset omits tools
		return reg
	}
	failed := ""
	for _, r := range reg.Reports() {
		if r.State == registry.StateFailed && failed == "" {
			failed = r.Name
		}
	}
	excused := func(p document.Problem, err error) bool {
		code, hint := "composite_unresolved", failed+" failed and may be the source of the tool"
		if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && missing.Hidden != nil && missing.Hidden.Err == nil {
			code, hint = "composite_step_hidden", ""
		} else if failed == "" {
			return false
		}
		f.reports.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: code, Source: registry.SourceComposite, Message: p.String(), Hint: hint})
		return true
	}
	// Quarantining a composite affects those that use it as a step.
	for f.sources.composites.Resolve(func(name string) error { return f.resolveStep(reg, name) }, excused) {
		f.loader.Renew(ctx, f.sources.composites)
		reg = f.reload(ctx)
	}
	return reg
}

// resolveStep returns an error if no tool has the name of a step. If a setting
// hides the tool, the error says so.
func (f *finder) resolveStep(reg *registry.Registry, name string) error {
	_, err := reg.LookupStep(name)
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && missing.Hidden == nil {
		missing.Hidden = f.sources.hidden(reg, name)
	}
	return err
}
