package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// tighten removes the project's values of settings that a project may only tighten
// if they allow more than those of earlier scopes, and reports each.
func (m *merged) tighten() []registry.Diagnostic {
	var out []registry.Diagnostic
	base := m.beforeProject()
	for i := range m.index.Rows {
		row := &m.index.Rows[i]
		m.entries[row] = slices.DeleteFunc(m.entries[row], func(e layers.Setting) bool {
			if e.Origin.Scope != ScopeProject {
				return false
			}
			was, at := base.before(row)
			loose := row.Looser != nil && row.Looser(e.Value, was)
			switch {
			case loose && (row.Secret || row.FilesOnly):
				out = append(out, notForProjects(row.Name, e.Origin))
			case loose:
				out = append(out, looserThan(row.Name, e.Origin, was, at))
			}
			return loose
		})
		if row.Name == serversOfSandbox {
			out = append(out, m.tightenServers(row, base)...)
		}
	}
	return out
}

// beforeProject returns the settings of the system and of the user, with which the
// project's settings are compared.
func (m *merged) beforeProject() *merged {
	out := &merged{index: m.index, entries: map[*table.Row][]layers.Setting{}}
	for row, all := range m.entries {
		out.entries[row] = slices.DeleteFunc(slices.Clone(all), func(e layers.Setting) bool { return e.Origin.Scope >= ScopeProject })
	}
	return out
}

// For returns the settings whose env, inheritEnv and sandbox hold for a program that a setting of
// this scope names. Those of a project hold for the programs of the project alone: they could
// keep a program of the person's from its own files, or lead it to other ones. It returns s if
// there is no difference.
func (s *Settings) For(scope Scope) *Settings {
	if scope == ScopeProject || s.merged == nil {
		return s
	}
	own := &merged{index: s.merged.index, entries: map[*table.Row][]layers.Setting{}}
	for row, all := range s.merged.entries {
		if row.Name != "env" && row.Name != "inheritEnv" && !strings.HasPrefix(row.Name, table.Sandbox) {
			continue
		}
		own.entries[row] = slices.DeleteFunc(slices.Clone(all), func(e layers.Setting) bool { return e.Origin.Scope == ScopeProject })
	}
	same := true
	for row, all := range own.entries {
		same = same && len(all) == len(s.merged.entries[row])
	}
	if same {
		return s
	}
	out := *s
	out.merged, out.Env, out.InheritEnv = own, own.pairs("env"), own.node("inheritEnv").Is(jsonx.True)
	return &out
}

// before returns the value of a setting and its origin.
func (m *merged) before(row *table.Row) (*jsonx.Value, Origin) {
	if e, ok := m.last(row.Name); ok {
		return e.Value, e.Origin
	}
	if row.Inherits != "" {
		return m.before(m.index.Row(row.Inherits))
	}
	return row.DefaultValue(), Origin{}
}

const serversOfSandbox = "sandbox.servers"

// tightenServers is tighten for the entries of sandbox.servers. For a server
// that is not confined at all, any entry is tighter.
func (m *merged) tightenServers(row *table.Row, base *merged) []registry.Diagnostic {
	var out []registry.Diagnostic
	known := map[string]Named{}
	for _, n := range base.named(row.Name) {
		known[n.Name] = n
	}
	for i, e := range m.entries[row] {
		if e.Origin.Scope != ScopeProject {
			continue
		}
		node := *e.Value
		node.Members = slices.DeleteFunc(slices.Clone(node.Members), func(f jsonx.Member) bool {
			d := base.looserServer(row, e.Origin, f, known[f.Name])
			if d != nil {
				out = append(out, *d)
			}
			return d != nil
		})
		m.entries[row][i].Value = &node
	}
	return out
}

// looserServer returns a diagnostic if an entry confines a server less than before;
// otherwise nil.
func (m *merged) looserServer(row *table.Row, origin Origin, now jsonx.Member, was Named) *registry.Diagnostic {
	mode, at := m.before(m.index.Row(table.SandboxMode))
	if was.Value != nil {
		at = was.Origin
		if own := was.Value.Get("mode"); own != nil {
			mode = own
		}
	}
	for i := range row.Fields {
		field := &row.Fields[i]
		before := field.DefaultValue()
		if field.Name == "mode" {
			before = mode
		} else if mode.Text() == table.SandboxOff {
			continue
		} else if was.Value != nil && was.Value.Get(field.Name) != nil {
			before = was.Value.Get(field.Name)
		}
		value := now.Value.Get(field.Name)
		if value != nil && field.Looser(value, before) {
			origin.Line, origin.Col = value.Place()
			d := looserThan(row.Name+"."+now.Name+"."+field.Name, origin, before, at)
			return &d
		}
	}
	return nil
}

func notForProjects(key string, origin Origin) registry.Diagnostic {
	return registry.Diagnostic{Severity: registry.SeverityWarning, Code: "setting_not_for_projects",
		Message: fmt.Sprintf("%s: %s is ignored, because a project cannot set it", origin, key),
		Hint:    "set it in your user settings or in a file of --settings"}
}

func looserThan(key string, origin Origin, was *jsonx.Value, at Origin) registry.Diagnostic {
	value := "empty"
	if was.Kind != jsonx.Null {
		value = string(was.JSON())
	}
	return registry.Diagnostic{Severity: registry.SeverityWarning, Code: "sandbox_loosened",
		Message: fmt.Sprintf("%s: %s is ignored, because a project can only tighten the sandbox; without it the value is %s (%s)", origin, key, value, at),
		Hint:    "set it in your user settings or in a file of --settings"}
}

// Setting returns the effective value of a setting that is replaced as a whole; its
// name is empty. Its Value is null if the setting has neither a value nor a default.
func (s *Settings) Setting(key string) Named {
	if s.merged == nil {
		return Named{Value: table.NewIndex().Row(key).DefaultValue()}
	}
	e, ok := s.merged.last(key)
	if !ok {
		return Named{Value: s.merged.index.Row(key).DefaultValue()}
	}
	return Named{Value: e.Value, Origin: e.Origin}
}
