package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// named is a name or glob of tools or servers in a setting.
type named struct {
	setting string // such as excludeTools
	value   string
	origin  string // file:line, a variable or a flag
}

// matcher compares the names in the settings with the tools and servers that
// exist.
type matcher struct {
	*run
	sources *sources
	loader  *registry.Loader
	notice  func(registry.Diagnostic)
}

// check warns about names in the settings that match nothing in the registry,
// because a rule that silently matches nothing fails open. Tools that another
// setting hides are known. If a source failed or is turned off, a name could be
// one of its tools, so that only probable typos are reported.
func (m *matcher) check(ctx context.Context, reg *registry.Registry) {
	if m.opts.Preset != "" {
		return // a preset omits sources
	}
	m.checkServerLists(reg)
	tools, servers := append(m.namesOfTools(ctx), m.unusedOverrides(reg)...), m.namedServers()
	if len(tools)+len(servers)+len(m.set.AllowOptional.Entries) == 0 {
		return
	}
	failed := func(r registry.SourceReport) bool { return r.State == registry.StateFailed }
	complete := len(m.sources.off) == 0 && !slices.ContainsFunc(reg.Reports(), failed)
	known := m.knownNames()
	for _, n := range tools {
		if !m.isOfAbsent(reg, n.value) {
			m.checkName(n, known, "tool", complete)
		}
	}
	for _, e := range m.set.AllowOptional.Entries {
		m.checkName(named{"tools.allow", registry.Folded(e.Value), e.Origin.String()}, m.allowable(known), "tool and no plugin", complete)
	}
	for _, n := range servers {
		m.checkName(n, m.sources.serverNames(), "server", true)
	}
}

// isOfAbsent reports whether a name refers to a server that is turned off or
// failed, so that its tools are unknown.
func (m *matcher) isOfAbsent(reg *registry.Registry, name string) bool {
	if server := m.sources.serverOf(name); server != nil && sourceError(reg, server) != nil {
		return true
	}
	return slices.ContainsFunc(m.sources.off, func(off OffServer) bool { return strings.HasPrefix(name, off.Name+"__") })
}

// checkName warns if a name matches none of the known ones.
func (m *matcher) checkName(n named, known []string, what string, complete bool) {
	if slices.Contains(known, n.value) {
		return
	}
	pattern := strings.ToLower(n.value)
	if slices.ContainsFunc(known, func(k string) bool { return registry.MatchName(pattern, strings.ToLower(k)) }) {
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
	m.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "name_unmatched",
		Message: fmt.Sprintf("%s: %s: %q matches no %s", n.origin, n.setting, n.value, what), Hint: hint})
}

// namesOfTools returns the names of tools that occur in the settings.
func (m *matcher) namesOfTools(ctx context.Context) []named {
	var out []named
	add := func(setting, value, origin string) {
		value, _, _ = strings.Cut(value, "(") // run_shell_command(git)
		if value = strings.TrimSpace(value); value != "" && value != "*" {
			out = append(out, named{setting, value, origin})
		}
	}
	list := func(setting string, l settings.List) {
		for _, e := range l.Entries {
			add(setting, e.Value, e.Origin.String())
		}
	}
	list("excludeTools", m.set.ExcludeTools)
	list("allowedTools", m.set.AllowedTools)
	list("coreTools", m.set.CoreTools)
	list("tools.only", m.set.OnlyTools)
	list("search.always", m.set.Search.Always)
	for _, r := range m.set.Rules {
		add("policy.rules", r.Tool, r.Origin.String())
	}
	for i := range m.set.ToolOptions {
		add("toolOptions", m.set.ToolOptions[i].Pattern, m.set.ToolOptions[i].Origin.String())
	}
	set, _, err := ReadHooks(ctx, m.set, m.expander, m.deps.Environ)
	if err == nil && set != nil { // errors in hooks are reported when they run
		for i := range set.Hooks {
			for _, name := range set.Hooks[i].Tools {
				add("hooks", name, set.Hooks[i].Origin)
			}
		}
	}
	return out
}

// unusedOverrides lists the overrides that changed no tool of a registry.
func (m *matcher) unusedOverrides(reg *registry.Registry) []named {
	entries := m.set.RawNamed("overrides")
	if len(entries) == 0 {
		return nil
	}
	used := map[string]bool{}
	for _, t := range reg.Tools() {
		if t.Reshaped != nil {
			used[t.Reshaped.Origin] = true
		}
	}
	var out []named
	for _, n := range entries {
		if origin := n.Origin.String(); !used[origin] {
			out = append(out, named{"overrides", n.Name, origin})
		}
	}
	return out
}

// namedServers returns the names of servers that occur in rules and in
// sandbox.servers.
func (m *matcher) namedServers() []named {
	var out []named
	for _, r := range m.set.Rules {
		if r.Server != "" && r.Server != "*" {
			out = append(out, named{"policy.rules", r.Server, r.Origin.String()})
		}
	}
	for _, n := range m.set.RawNamed("sandbox.servers") {
		out = append(out, named{"sandbox.servers", n.Name, n.Origin.String()})
	}
	return out
}

// knownNames returns all names of the tools of all sources, including hidden
// ones.
func (m *matcher) knownNames() []string {
	var out []string
	for _, source := range m.sources.all() {
		given := m.loader.Given(source)
		for i := range given {
			out = append(out, given[i].Spellings()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allowable returns the valid values of tools.allow: tools, plugins and
// group:plugins.
func (m *matcher) allowable(tools []string) []string {
	out := append(slices.Clone(tools), registry.GroupPlugins)
	for _, p := range m.sources.plugins {
		out = append(out, p.ID)
	}
	return out
}

// checkServerLists warns about entries of a server's includeTools and
// excludeTools that match none of its tools.
func (m *matcher) checkServerLists(reg *registry.Registry) {
	for _, server := range m.sources.servers {
		if sourceError(reg, server) != nil {
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
			for _, e := range set.IncludeTools.Entries {
				name, _, _ := strings.Cut(e.Value, "(")
				m.checkName(named{"includeTools of server " + set.Name, strings.TrimSpace(name), e.Origin.String()}, names, "tool of it", true)
			}
			for _, e := range set.ExcludeTools.Entries {
				m.checkName(named{"excludeTools of server " + set.Name, e.Value, e.Origin.String()}, names, "tool of it", true)
			}
		}
	}
}
