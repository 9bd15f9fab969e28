package merge

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Tighten removes the project's values of settings that a project may only tighten
// if they allow more than those of earlier scopes, and reports each.
func (m *Merged) Tighten() []registry.Diagnostic {
	var out []registry.Diagnostic
	// Of the system and the user.
	base := m.Without(func(e layers.Setting) bool { return e.Origin.Scope >= layers.ScopeProject })
	for i := range m.Index.Rows {
		row := &m.Index.Rows[i]
		m.entries[row] = slices.DeleteFunc(m.entries[row], func(e layers.Setting) bool {
			if e.Origin.Scope != layers.ScopeProject {
				return false
			}
			was, at := base.before(row)
			loose := row.Looser != nil && row.Looser(e.Value, was)
			switch {
			case loose && !strings.HasPrefix(row.Name, "sandbox."):
				out = append(out, registry.Warning("setting_not_for_projects", "",
					fmt.Sprintf("%s: %s is ignored, because a project cannot set it", e.Origin, row.Name), hintElsewhere))
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

// before returns the value of a setting and its origin.
func (m *Merged) before(row *table.Row) (*jsonx.Value, layers.Origin) {
	if e, ok := m.Last(row.Name); ok {
		return e.Value, e.Origin
	}
	if row.Inherits != "" {
		return m.before(m.Index.Row(row.Inherits))
	}
	return row.DefaultValue(), layers.Origin{}
}

const serversOfSandbox = "sandbox.servers"

// tightenServers is Tighten for the entries of sandbox.servers. For a server that is not confined,
// any entry is tighter.
func (m *Merged) tightenServers(row *table.Row, base *Merged) []registry.Diagnostic {
	var out []registry.Diagnostic
	known := map[string]Named{}
	for _, n := range base.Named(row.Name) {
		known[n.Name] = n
	}
	for i, e := range m.entries[row] {
		if e.Origin.Scope != layers.ScopeProject {
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
		for j, f := range node.Members { // settings that it does not have stay as they are
			if was := known[f.Name].Value; was != nil {
				node.Members[j].Value = was.Clone()
				for _, field := range f.Value.Members {
					node.Members[j].Value.Set(field.Name, field.Value)
				}
			}
		}
		m.entries[row][i].Value = &node
	}
	return out
}

// looserServer returns a diagnostic if an entry confines a server less than the earlier one;
// otherwise nil.
func (m *Merged) looserServer(row *table.Row, origin layers.Origin, now jsonx.Member, was Named) *registry.Diagnostic {
	mode, at := m.before(m.Index.Row(table.SandboxMode))
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

// hintElsewhere says where to put a setting that a project cannot set.
const hintElsewhere = "set it in your user settings or in a file of --settings"

func looserThan(key string, origin layers.Origin, was *jsonx.Value, at layers.Origin) registry.Diagnostic {
	value := "empty"
	if was.Kind != jsonx.Null {
		value = string(was.JSON())
	}
	return registry.Warning("sandbox_loosened", "", fmt.Sprintf(
		"%s: %s is ignored, because a project can only tighten the sandbox; without it the value is %s (%s)",
		origin, key, value, at), hintElsewhere)
}

// OverPerson describes how a project's settings change those of the system and of the person, for
// the trust question: values and entries that they replace, questions where the person's defaults
// deny, and composites that call a tool which the person has hidden. Settings that allow more than
// the defaults are listed separately. builtin returns the name of the built-in tool with a name or
// an alias, or "" if there is none.
func OverPerson(x *table.Index, below []*layers.Layer, project *layers.Layer, builtin func(name string) string) []string {
	if project == nil {
		return nil
	}
	own, both := Of(x, below), Of(x, append(slices.Clip(below), project))
	place := func(line int32) string { return fmt.Sprintf("%s:%d", project.File, line) }
	var out []string
	for _, e := range project.Settings {
		row := e.Row
		was, set := own.Last(row.Name)
		switch {
		case row.Looser != nil, row.Name == overridesKey, row.Name == serversOfSandbox: // loosens nothing
		case row.Merge == table.ByName:
			replaced := both.Replaced(row.Name)
			for _, entry := range e.Value.Members {
				if was, ok := replaced[entry.Name]; ok {
					out = append(out, fmt.Sprintf("%s: %s.%s replaces the one of %s",
						place(entry.Line), row.Name, document.Printable(entry.Name), was.Origin))
				}
			}
		case row.Merge == table.Replace && set && (row.Loosens == nil || !row.Loosens(e.Value)):
			if now, before := row.Masked(e.Value), row.Masked(was.Value); !bytes.Equal(now, before) {
				out = append(out, fmt.Sprintf("%s: %s = %s replaces %s of %s", e.Origin, row.Name, now, before, was.Origin))
			}
		}
		switch row.Name {
		case RulesKey:
			if at := own.deniesByDefault(); at != "" {
				for _, rule := range e.Value.Items {
					if rule.Get("decision").Text() == "ask" {
						out = append(out, fmt.Sprintf("%s: policy.rules = %s, also where the default of %s denies",
							place(rule.Line), row.Masked(rule), at))
					}
				}
			}
		case "composites":
			out = append(out, own.stepsOnHidden(e.Value, place, builtin)...)
		}
	}
	return out
}

// deniesByDefault returns where a default for a category denies; "" if none does.
func (m *Merged) deniesByDefault() string {
	for i := range m.Index.Rows {
		if row := &m.Index.Rows[i]; strings.HasPrefix(row.Name, "policy.defaults.") {
			if e, ok := m.Last(row.Name); ok && e.Value.Text() == "deny" {
				return e.Origin.String()
			}
		}
	}
	return ""
}

// stepsOnHidden describes the steps of composites that call tools which an override hides.
func (m *Merged) stepsOnHidden(composites *jsonx.Value, place func(line int32) string, builtin func(name string) string) []string {
	var out []string
	for _, n := range m.Named(overridesKey) {
		if !n.Value.Get("hidden").Is(jsonx.True) {
			continue
		}
		for _, c := range composites.Members {
			if script := c.Value.Get("script"); script != nil {
				out = append(out, fmt.Sprintf("%s: composites.%s is a script, which can call %s, which the override of %s hides",
					place(script.Line), document.Printable(c.Name), document.Printable(n.Name), n.Origin))
			}
			for _, step := range c.Value.Get("steps").Elements() {
				tool := step.Get("tool").Text()
				name := registry.NameIn(tool)
				if sameTool(cmp.Or(builtin(name), name), cmp.Or(builtin(n.Name), n.Name)) {
					out = append(out,
						fmt.Sprintf("%s: composites.%s calls %s, which the override of %s hides",
							place(step.Line), document.Printable(c.Name), document.Printable(tool), n.Origin))
				}
			}
		}
	}
	return out
}

// sameTool reports whether two names may refer to the same tool: one of them may have its server as
// a prefix.
func sameTool(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a != "" && (a == b || strings.HasSuffix(a, "__"+b) || strings.HasSuffix(b, "__"+a))
}
