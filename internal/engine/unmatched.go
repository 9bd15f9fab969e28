package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/engine/rules"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// nameCheck compares the names in the settings with those that exist.
type nameCheck struct {
	*finder
	registry *registry.Registry
}

// checkNames warns about names in the settings that match nothing in the whole registry. Tools that
// another setting hides do exist. If a source failed or is turned off, a name may be one of its tools,
// so only probable typos are reported.
func (f *finder) checkNames(reg *registry.Registry) {
	if f.preset != "" {
		return // a preset omits sources
	}
	m := &nameCheck{f, reg}
	complete := len(m.sources.Off) == 0 && len(m.registry.Failed()) == 0
	tools := sync.OnceValue(m.tools)
	called := sync.OnceValue(func() []string { return m.knownNames((*registry.Definition).Called) })
	shell := sync.OnceValue(m.shellTool)
	for _, n := range m.set.Merged().Mentions() {
		entry, inParens := n.Value, false
		if n.Parens {
			n.Value, _, inParens = strings.Cut(entry, "(") // run_shell_command(git)
		}
		if n.Of != table.Servers && n.Of != table.Sources && n.Of != table.Plugins {
			n.Value = registry.NameIn(n.Value)
		}
		if n.Value == "" || n.Value == "*" {
			continue
		}
		switch n.Of {
		case table.Tools:
			if n.Match == table.FoldedGlobs && mentioned(n, called()) || mentioned(n, tools()) { // what denies knows more names
				if inParens && !mentioned(n, shell()) {
					m.reports.notice(registry.Warning("name_unmatched", "", fmt.Sprintf(
						"%s: %s: %q: only commands of the shell tool can be in parentheses",
						n.Origin, n.Setting, entry), "use a rule in policy.rules with path or when"))
				}
			} else if !m.isOfAbsent(n.Value) {
				m.checkName(n, tools(), "tool", complete)
			}
		case table.Upstream:
			if !m.isOfAbsent(n.Value) {
				m.checkName(n, m.upstream(), "tool", complete)
			}
		case table.Optional:
			m.checkName(n, slices.Concat(tools(), []string{registry.GroupPlugins}, m.plugins()),
				"tool or plugin", complete)
		case table.Servers:
			m.checkName(n, m.sources.Names(), "server", true)
		case table.Sources:
			m.checkName(n, m.knownSources(), "source", true)
		case table.Plugins:
			m.checkName(n, m.plugins(), "plugin", true)
		case table.OwnTools:
			if known, ok := m.toolsOf(n.Entry); ok {
				m.checkName(n, known, "tool of the server", true)
			}
		case table.Operations:
			if known, ok := m.operationsOf(n.Entry); ok {
				m.checkName(n, known, "operation", true)
			}
		}
	}
}

// mentioned reports whether a name in the settings matches a known one.
func mentioned(n merge.Mention, known []string) bool {
	return slices.ContainsFunc(known, func(known string) bool {
		switch n.Match {
		case table.Exact:
			return n.Value == known
		case table.FoldedGlobs:
			return text.MatchNameFold(n.Value, known)
		default:
			return text.MatchName(n.Value, known)
		}
	})
}

// isOfAbsent reports whether a name may be a tool of a server that is turned off or failed, so that
// it cannot be checked.
func (m *nameCheck) isOfAbsent(name string) bool {
	server := m.sources.Of(name)
	return server != nil && m.registry.Failure(server.Name()) != nil || m.sources.FindDisabled(name) != nil
}

// checkName warns if a name matches none of the known ones.
func (m *nameCheck) checkName(n merge.Mention, known []string, what string, complete bool) {
	if mentioned(n, known) {
		return
	}
	near := registry.Near(n.Value, known)
	if !complete && len(near) == 0 {
		return
	}
	hint := ""
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	} else if strings.ContainsRune(n.Value, '(') {
		hint = "only excludeTools, allowedTools, coreTools and tools.only have commands in parentheses; a rule has command"
	}
	m.reports.notice(registry.Warning("name_unmatched", "",
		fmt.Sprintf("%s: %s: %q matches no %s", n.Origin, n.Setting, n.Value, what), hint))
}

// tools returns the names by which the settings can refer to tools, including hidden ones.
func (m *nameCheck) tools() []string {
	known := m.knownNames((*registry.Definition).Spellings)
	for _, t := range m.registry.Tools() {
		known = append(known, t.Spellings()...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

func (m *nameCheck) shellTool() []string {
	isShell := func(name string) bool { return name == rules.ShellTool }
	known := m.knownNames(func(d *registry.Definition) []string {
		if names := d.Called(); slices.ContainsFunc(names, isShell) {
			return names
		}
		return nil
	})
	for _, t := range m.registry.Tools() {
		if names := t.Called(); isShell(t.Upstream().Name) || slices.ContainsFunc(names, isShell) {
			known = append(known, names...)
		}
	}
	return known
}

// knownSources returns the names of all sources, including those that are turned
// off.
func (m *nameCheck) knownSources() []string {
	out := []string{registry.SourceBuiltin, registry.SourceHost, registry.SourceCommand, registry.SourceComposite}
	for _, p := range m.sources.Plugins.Found {
		out = append(out, registry.PluginPrefix+p.ID)
	}
	for _, source := range m.sources.InUse() {
		out = append(out, source.Name())
	}
	for _, off := range m.sources.Off {
		out = append(out, off.Source())
	}
	return out
}

// knownNames returns all names of the tools of all sources, including hidden
// ones.
func (m *nameCheck) knownNames(of func(*registry.Definition) []string) []string {
	var out []string
	for _, source := range m.sources.All() {
		given := m.loader.Given(source)
		for i := range given {
			out = append(out, of(&given[i].Definition)...)
		}
	}
	return out
}

// upstream returns the names by which an override can refer to its tool, also those that a
// conflict has changed.
func (m *nameCheck) upstream() []string {
	out := m.knownNames((*registry.Definition).OverrideNames)
	for _, t := range m.registry.Tools() {
		out = append(out, t.Upstream().Name)
	}
	for _, h := range m.registry.Hidden() {
		out = append(out, h.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plugins returns the ids of all plugins, whether they are used or not.
func (m *nameCheck) plugins() []string {
	var out []string
	for _, p := range m.sources.Plugins.Found {
		out = append(out, p.ID)
	}
	return out
}

// operationsOf returns the operations of an API; false if they are unknown.
func (m *nameCheck) operationsOf(api string) ([]string, bool) {
	for _, a := range m.sources.APIs() {
		if a.Settings().Name == api && m.registry.Failure(a.Name()) == nil {
			return a.Names(), true
		}
	}
	return nil, false
}

// toolsOf returns the tools of a server, as it names them; false if they are unknown.
func (m *nameCheck) toolsOf(server string) ([]string, bool) {
	for _, source := range m.sources.All() {
		if source.Name() != registry.MCPPrefix+server || m.registry.Failure(source.Name()) != nil {
			continue
		}
		given := m.loader.Given(source)
		names := make([]string, len(given))
		for i := range given {
			names[i] = given[i].ServerTool
		}
		return names, true
	}
	return nil, false
}

// resolveComposites quarantines composites with a step that names an unknown tool, and returns the
// registry without them. All sources must be loaded. If a failed source may have the tool, or a
// setting hides it, there is only a diagnostic.
func (f *finder) resolveComposites(ctx context.Context, reg *registry.Registry) *registry.Registry {
	if f.sources.Composites == nil || f.preset != "" { // a preset omits tools
		return reg
	}
	failed := reg.Failed()
	excused := func(p document.Problem, err error) bool {
		var code, hint string
		if missing, ok := errors.AsType[*registry.NotFoundError](err); ok &&
			missing.Hidden != nil && missing.Hidden.Err == nil {
			code = "composite_step_hidden"
		} else if len(failed) > 0 {
			code, hint = "composite_unresolved", failed[0]+" failed and may be the source of the tool"
		} else {
			return false
		}
		f.reports.notice(registry.Warning(code, registry.SourceComposite, p.String(), hint))
		return true
	}
	resolve := func(name string) error { // the error says which setting hides the tool of a step
		_, err := reg.LookupStep(name)
		if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && missing.Hidden == nil {
			missing.Hidden = f.sources.Hidden(reg, name)
		}
		return err
	}
	// Quarantining a composite affects those that use it as a step.
	for f.sources.Composites.Resolve(resolve, excused) {
		f.loader.Renew(ctx, f.sources.Composites)
		f.mu.Lock()
		f.forget()
		f.mu.Unlock()
		reg = f.loadStep(ctx, step{name: stepAll, sources: f.sources.All()})
	}
	return reg
}
