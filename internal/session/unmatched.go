package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// named is a name or glob of tools or servers that a setting has.
type named struct {
	setting string // such as excludeTools
	value   string
	origin  string // file:line, a variable or a flag
}

// noticeUnmatched warns of names in the settings that match nothing in the
// registry: a rule that silently matches nothing fails open. Tools that another
// setting hides count as known. Where a source failed or is switched off a name
// could be one of its tools, so that only probable typing errors are reported.
func (s *Session) noticeUnmatched(ctx context.Context, reg *registry.Registry) {
	if s.opts.Preset != "" {
		return // it leaves sources out
	}
	s.checkServerLists(reg)
	tools, servers := s.namesOfTools(ctx), s.namedServers()
	if len(tools)+len(servers) == 0 {
		return
	}
	failed := func(r registry.SourceReport) bool { return r.State == registry.StateFailed }
	complete := len(s.sources.off) == 0 && !slices.ContainsFunc(reg.Reports(), failed)
	known := s.knownNames()
	for _, n := range tools {
		if !s.isOfAbsent(reg, n.value) {
			s.checkName(n, known, "tool", complete)
		}
	}
	for _, n := range servers {
		s.checkName(n, s.serverNames(), "server", true)
	}
}

// isOfAbsent reports whether a name speaks of a server that is switched off or
// failed, whose tools nobody knows.
func (s *Session) isOfAbsent(reg *registry.Registry, name string) bool {
	if server := s.sources.serverOf(name); server != nil && sourceError(reg, server) != nil {
		return true
	}
	return slices.ContainsFunc(s.sources.off, func(off OffServer) bool { return strings.HasPrefix(name, off.Name+"__") })
}

// checkName warns where a name matches none of the known ones.
func (s *Session) checkName(n named, known []string, what string, complete bool) {
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
	s.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "name_unmatched",
		Message: fmt.Sprintf("%s: %s: %q matches no %s", n.origin, n.setting, n.value, what), Hint: hint})
}

// namesOfTools lists the names of tools that the settings have.
func (s *Session) namesOfTools(ctx context.Context) []named {
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
	list("excludeTools", s.set.ExcludeTools)
	list("allowedTools", s.set.AllowedTools)
	list("coreTools", s.set.CoreTools)
	list("tools.only", s.set.OnlyTools)
	for _, r := range s.set.Rules {
		add("policy.rules", r.Tool, r.Origin.String())
	}
	for i := range s.set.ToolOptions {
		add("toolOptions", s.set.ToolOptions[i].Pattern, s.set.ToolOptions[i].Origin.String())
	}
	set, _, err := ReadHooks(ctx, s.set, s.expander, s.deps.Environ)
	if err == nil && set != nil { // mistakes in hooks are reported where they run
		for i := range set.Hooks {
			for _, name := range set.Hooks[i].Tools {
				add("hooks", name, set.Hooks[i].Origin)
			}
		}
	}
	return out
}

// namedServers lists the names of servers that rules have.
func (s *Session) namedServers() []named {
	var out []named
	for _, r := range s.set.Rules {
		if r.Server != "" && r.Server != "*" {
			out = append(out, named{"policy.rules", r.Server, r.Origin.String()})
		}
	}
	return out
}

// knownNames are all names by which the tools of all sources could be meant,
// those that are hidden too.
func (s *Session) knownNames() []string {
	var out []string
	for _, source := range s.sources.all() {
		given := s.loader.Given(source)
		for i := range given {
			out = append(out, given[i].Spellings()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkServerLists warns of entries of includeTools and excludeTools of servers
// that no tool of theirs has.
func (s *Session) checkServerLists(reg *registry.Registry) {
	for _, server := range s.sources.servers {
		if sourceError(reg, server) != nil {
			continue
		}
		given := s.loader.Given(server)
		names := make([]string, len(given))
		for i := range given {
			names[i] = given[i].ServerTool
		}
		for _, set := range s.set.Servers {
			if registry.MCPPrefix+set.Name != server.Name() {
				continue
			}
			for _, e := range set.IncludeTools.Entries {
				name, _, _ := strings.Cut(e.Value, "(")
				s.checkName(named{"includeTools of server " + set.Name, strings.TrimSpace(name), e.Origin.String()}, names, "tool of it", true)
			}
			for _, e := range set.ExcludeTools.Entries {
				s.checkName(named{"excludeTools of server " + set.Name, e.Value, e.Origin.String()}, names, "tool of it", true)
			}
		}
	}
}
