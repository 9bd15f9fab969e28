// Package merge merges the layers of a run by the rules in their rows: which value of a setting is
// in effect, what a project may not loosen, and what its overrides add to the person's. It also
// returns the result as written, for showing it.
package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Merged has the values that the scopes in effect set: a list for each setting, earliest scope
// first.
type Merged struct {
	Index   *table.Index
	entries map[*table.Row][]layers.Setting
	Faults  layers.Faults
}

// Of merges layers, lowest precedence first.
func Of(x *table.Index, all []*layers.Layer) *Merged {
	m := &Merged{Index: x, entries: map[*table.Row][]layers.Setting{}, Faults: layers.Faults{}}
	for i, l := range all {
		maps.Copy(m.Faults, l.Faults)
		for _, e := range l.Settings {
			e.Layer = i
			m.Add(e)
		}
	}
	return m
}

// All returns the values of all scopes, in the order of the table.
func (m *Merged) All() iter.Seq[layers.Setting] {
	return func(yield func(layers.Setting) bool) {
		for i := range m.Index.Rows {
			for _, e := range m.entries[&m.Index.Rows[i]] {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Of returns the values of a setting, earliest scope first.
func (m *Merged) Of(row *table.Row) []layers.Setting { return m.entries[row] }

// Add adds a value, which takes precedence over all others of its setting.
func (m *Merged) Add(s layers.Setting) { m.entries[s.Row] = append(m.entries[s.Row], s) }

// AddFirst adds a value over which all others of its setting take precedence.
func (m *Merged) AddFirst(s layers.Setting) {
	m.entries[s.Row] = slices.Insert(slices.Clip(m.entries[s.Row]), 0, s)
}

// AddNamed adds entries of a setting that merges by name.
func (m *Merged) AddNamed(key string, entries []Named) {
	for _, n := range entries {
		m.Add(layers.Setting{Row: m.Index.Row(key), Key: key, Origin: n.Origin,
			Value: &jsonx.Value{Kind: jsonx.Object, Members: []jsonx.Member{{Name: n.Name, Value: n.Value}}}})
	}
}

// With returns a copy of m to which [Merged.Add] was applied.
func (m *Merged) With(s layers.Setting) *Merged {
	out := &Merged{Index: m.Index, entries: maps.Clone(m.entries), Faults: m.Faults}
	out.entries[s.Row] = slices.Clip(out.entries[s.Row])
	out.Add(s)
	return out
}

// Remove removes all values of a setting.
func (m *Merged) Remove(row *table.Row) { delete(m.entries, row) }

// Without returns m without the values for which drop is true; m itself if there are none.
func (m *Merged) Without(drop func(layers.Setting) bool) *Merged {
	out, dropped := &Merged{Index: m.Index,
		entries: make(map[*table.Row][]layers.Setting, len(m.entries)), Faults: m.Faults}, false
	for row, all := range m.entries {
		out.entries[row] = slices.DeleteFunc(slices.Clone(all), drop)
		dropped = dropped || len(out.entries[row]) < len(all)
	}
	if !dropped {
		return m
	}
	return out
}

// Last returns the effective value of a setting that is replaced as a whole.
func (m *Merged) Last(name string) (layers.Setting, bool) {
	all := m.entries[m.Index.Row(name)]
	if len(all) == 0 {
		return layers.Setting{}, false
	}
	return all[len(all)-1], true
}

const bannedKey = "shell.banned"

// List merges a list setting by its rule. A project's list of banned commands adds to the default
// or to the list of the other scopes, which replaces the default.
func (m *Merged) List(name string) layers.List {
	row := m.Index.Row(name)
	all := m.entries[row]
	if row.Merge != table.Unite && len(all) > 1 {
		all = all[len(all)-1:]
	}
	var out layers.List
	for _, e := range all {
		out.Set = true
		out.Add(layers.ToList(e.Value, e.Origin).Entries)
	}
	if name == bannedKey &&
		!slices.ContainsFunc(all, func(e layers.Setting) bool { return e.Origin.Scope != layers.ScopeProject }) {
		out.Add(layers.ToList(row.DefaultValue(), layers.Origin{}).Entries)
	}
	return out
}

// Named is one entry of a setting that merges by name, unexpanded, with secrets
// in the clear.
type Named struct {
	Name   string
	Origin layers.Origin
	Value  *jsonx.Value
	// Added is what the project's entry adds to an override of an earlier scope. Value has both
	// combined, and Own is the earlier one alone. Both are nil if Value comes from one file.
	Own   *jsonx.Value
	Added *Named
	// Problems are the mistakes in an entry of a setting whose entries are used apart from each other.
	Problems []document.Problem
}

// Problem returns a mistake in an entry of a setting, at a JSON pointer.
func (n Named) Problem(setting, pointer, message, hint string) document.Problem {
	at, key, v := n.At(pointer), setting+"."+n.Name, n.Value
	for token := range jsonx.Tokens(pointer) {
		if v.Is(jsonx.Array) {
			key += "[" + token + "]"
		} else {
			key += "." + token
		}
		v = v.Step(token)
	}
	return at.Problem(key+": "+message, hint)
}

// JSON returns the value: members in file order, numbers as written.
func (n Named) JSON() json.RawMessage { return n.Value.JSON() }

// At returns the origin of the value that a JSON pointer names, or of the nearest
// enclosing value.
func (n Named) At(pointer string) layers.Origin {
	if n.Added != nil && valueAt(n.Own, pointer) == nil && valueAt(n.Added.Value, pointer) != nil {
		return n.Added.At(pointer)
	}
	o := n.Origin
	if pointer != "" && o.Line > 0 {
		o.Line, o.Col = n.Value.Locate(pointer).Place()
	}
	return o
}

// valueAt returns the value that a JSON pointer names; nil if there is none.
func valueAt(v *jsonx.Value, pointer string) *jsonx.Value {
	for token := range jsonx.Tokens(pointer) {
		if v = v.Step(token); v == nil {
			break
		}
	}
	return v
}

// Named merges by name: a later entry replaces an earlier one in its position, or adds to it.
func (m *Merged) Named(name string) []Named { return m.each(name, func(was, now Named) {}) }

// each is Named. It calls replacing for each entry that an earlier scope has too.
func (m *Merged) each(name string, replacing func(was, now Named)) []Named {
	var out []Named
	at := map[string]int{}
	for _, e := range m.entries[m.Index.Row(name)] {
		for _, f := range e.Value.Members {
			o := e.Origin
			o.Line, o.Col = f.Place()
			n := Named{Name: f.Name, Origin: o, Value: f.Value, Problems: m.Faults[f.Value]}
			if name == overridesKey {
				n.Name = registry.NameIn(f.Name)
			}
			i, ok := at[n.Name]
			if !ok {
				at[n.Name] = len(out)
				out = append(out, n)
				continue
			}
			if replacing(out[i], n); addsTo(name, out[i], n) {
				n, _ = withAdded(out[i], n)
			}
			out[i] = n
		}
	}
	return out
}

// Replaced returns the entries of the system and of the person that entries of a project
// replace, by name. The server of mcpServerCommand is the entry mcp, and an API may replace a server.
func (m *Merged) Replaced(key string) map[string]Named {
	out := map[string]Named{}
	if key == table.ServersKey {
		for _, e := range m.entries[m.Index.Row("mcpServerCommand")] {
			if e.Origin.Scope < layers.ScopeProject {
				out["mcp"] = Named{Name: "mcp", Origin: e.Origin, Value: jsonx.NewObject()}
			}
		}
	}
	if key == table.APIsKey {
		for _, n := range m.Named(table.ServersKey) {
			if n.Origin.Scope < layers.ScopeProject {
				out[n.Name] = n
			}
		}
	}
	m.each(key, func(was, now Named) {
		switch {
		case now.Origin.Scope != layers.ScopeProject:
			delete(out, now.Name)
		case was.Origin.Scope < layers.ScopeProject:
			out[now.Name] = was
		}
	})
	return out
}

// RulesKey is the setting policy.rules, a list to which all scopes add.
const RulesKey = "policy.rules"

// Rules returns the lists of rules of all scopes in the order in which they are tried: those of
// --settings files first (last file first), then system, user, project.
func (m *Merged) Rules() []layers.Setting {
	rank := func(e layers.Setting) int {
		if e.Origin.Scope == layers.ScopeFile {
			return -1 - e.Layer
		}
		return e.Layer
	}
	return slices.SortedStableFunc(slices.Values(m.entries[m.Index.Row(RulesKey)]),
		func(a, b layers.Setting) int { return cmp.Compare(rank(a), rank(b)) })
}

const overridesKey = "overrides"

// addsTo reports whether an entry adds to an earlier one instead of replacing it: a project's
// override removes nothing from overrides of the person and the system.
func addsTo(setting string, was, now Named) bool {
	return setting == overridesKey && now.Origin.Scope == layers.ScopeProject && was.Origin.Scope < layers.ScopeProject
}

// withAdded returns an override combined with a project's entry of the same name, of which it takes
// only fields that the override lacks. An enum keeps the values that both have. ignored are the
// JSON pointers of fields of the project's entry that have no effect; "" means all.
func withAdded(own, project Named) (out Named, ignored []string) {
	out = Named{Name: own.Name, Origin: own.Origin, Value: own.Value.Clone(), Own: own.Value}
	if own.Value.Get("hidden").Is(jsonx.True) {
		return own, []string{""}
	}
	kept := jsonx.NewObject()
	for _, f := range project.Value.Members {
		switch has := out.Value.Get(f.Name); {
		case f.Name == "params" && has.Is(jsonx.Object):
			var params *jsonx.Value
			params, ignored = addParams(has, f.Value, ignored)
			kept.Members = append(kept.Members, jsonx.Member{Name: f.Name, Pos: f.Pos, Value: params})
		case has != nil:
			ignored = append(ignored, "/"+f.Name)
		default:
			out.Value.Members, kept.Members = append(out.Value.Members, f), append(kept.Members, f)
		}
	}
	out.Added = &Named{Name: project.Name, Origin: project.Origin, Value: kept}
	return out, ignored
}

// addParams adds a project's params to those of an override. It returns the effective part of the
// project's, and appends the pointers of the rest to ignored.
func addParams(own, project *jsonx.Value, ignored []string) (kept *jsonx.Value, _ []string) {
	kept = jsonx.NewObject()
	for _, p := range project.Members {
		pointer, has := "/params/"+jsonx.EscapeToken(p.Name), own.Get(p.Name)
		switch {
		case has == nil:
			own.Members, kept.Members = append(own.Members, p), append(kept.Members, p)
			continue
		case has.Get("const") != nil || has.Get("hidden").Is(jsonx.True):
			ignored = append(ignored, pointer)
			continue
		}
		added := jsonx.NewObject()
		for _, f := range p.Value.Members {
			if f = addField(has, f); f.Value == nil {
				ignored = append(ignored, pointer+"/"+jsonx.EscapeToken(f.Name))
				continue
			}
			has.Set(f.Name, f.Value)
			added.Members = append(added.Members, f)
		}
		kept.Members = append(kept.Members, jsonx.Member{Name: p.Name, Pos: p.Pos, Value: added})
	}
	return kept, ignored
}

// addField returns what a project's field adds to the settings of one param. Its Value is nil if
// that is nothing.
func addField(own *jsonx.Value, f jsonx.Member) jsonx.Member {
	has := own.Get(f.Name)
	switch {
	case f.Name == "enum" && has.Is(jsonx.Array) && f.Value.Is(jsonx.Array):
		both := *f.Value
		both.Items = slices.DeleteFunc(slices.Clone(f.Value.Items),
			func(item *jsonx.Value) bool { return !listHas(has, item) })
		if f.Value = &both; len(both.Items) == 0 {
			f.Value = nil
		}
	case has != nil, f.Name == "const" && (own.Get("default") != nil || own.Get("name") != nil),
		f.Name == "hidden" && own.Get("name") != nil, f.Name == "name" && own.Get("hidden") != nil:
		f.Value = nil
	}
	return f
}

func listHas(list, value *jsonx.Value) bool {
	text := jsonx.Canonical(value.JSON())
	return slices.ContainsFunc(list.Items, func(item *jsonx.Value) bool { return jsonx.Canonical(item.JSON()) == text })
}

// IgnoredOverrides reports parts of the project's overrides without effect, because earlier scopes
// override the same tool.
func (m *Merged) IgnoredOverrides() []registry.Diagnostic {
	var out []registry.Diagnostic
	m.each(overridesKey, func(was, now Named) {
		if !addsTo(overridesKey, was, now) {
			return
		}
		_, ignored := withAdded(was, now)
		for _, pointer := range ignored {
			out = append(out, registry.Warning("override_ignored", "", fmt.Sprintf(
				"%s: overrides.%s%s is ignored, because %s overrides it and a project can only add to that",
				now.At(pointer), now.Name, strings.ReplaceAll(pointer, "/", "."), was.At(pointer)), ""))
		}
	})
	return out
}
