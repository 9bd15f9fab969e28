package settings

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// merged holds what the scopes in effect have set: for each setting its entries,
// earliest scope first.
type merged struct {
	index   *table.Index
	entries map[*table.Row][]layers.Setting
	faults  layers.Faults
}

func merge(x *table.Index, all []*layers.Layer) *merged {
	m := &merged{index: x, entries: map[*table.Row][]layers.Setting{}, faults: layers.Faults{}}
	for i, l := range all {
		maps.Copy(m.faults, l.Faults)
		for _, e := range l.Settings {
			e.Layer = i
			m.entries[e.Row] = append(m.entries[e.Row], e)
		}
	}
	return m
}

// last returns the effective value of a setting that is replaced as a whole.
func (m *merged) last(name string) (layers.Setting, bool) {
	all := m.entries[m.index.Row(name)]
	if len(all) == 0 {
		return layers.Setting{}, false
	}
	return all[len(all)-1], true
}

// list merges a list setting by its rule.
func (m *merged) list(name string) List {
	row := m.index.Row(name)
	all := m.entries[row]
	if row.Merge != table.Unite && len(all) > 1 {
		all = all[len(all)-1:]
	}
	var out List
	for _, e := range all {
		out.Set = true
		for _, item := range toList(e.Value, e.Origin).Entries {
			if !slices.ContainsFunc(out.Entries, func(have Entry) bool { return have.Value == item.Value }) {
				out.Entries = append(out.Entries, item)
			}
		}
	}
	return out
}

// Named is one entry of a setting that merges by name, unexpanded, with secrets
// in the clear.
type Named struct {
	Name   string
	Origin Origin
	Value  *jsonx.Value
	// Added is what the project's entry adds to an override of an earlier scope; Value has both,
	// and Own is the earlier one alone. Both are nil if Value is the entry of one file.
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

// Masked returns the value as [Named.JSON] does, with secrets masked.
func (s *Settings) Masked(setting string, n Named) json.RawMessage {
	return entryRow(s.merged.index.Row(setting), n.Name).Masked(n.Value)
}

// JSON returns the value: members in file order, numbers as written.
func (n Named) JSON() json.RawMessage { return n.Value.JSON() }

// At returns the origin of the value that a JSON pointer names, or of the nearest
// enclosing value.
func (n Named) At(pointer string) Origin {
	if n.Added != nil && find(n.Own, pointer) == nil && find(n.Added.Value, pointer) != nil {
		return n.Added.At(pointer)
	}
	o := n.Origin
	if pointer != "" && o.Line > 0 {
		o.Line, o.Col = n.Value.Locate(pointer).Place()
	}
	return o
}

// find returns the value that a JSON pointer names; nil if there is none.
func find(v *jsonx.Value, pointer string) *jsonx.Value {
	for token := range jsonx.Tokens(pointer) {
		if v = v.Step(token); v == nil {
			break
		}
	}
	return v
}

// named merges by name: a later entry replaces an earlier one in its position, or adds to it.
func (m *merged) named(name string) []Named { return m.eachNamed(name, func(was, now Named) {}) }

// eachNamed is named. It calls replacing with each entry that an earlier scope has too.
func (m *merged) eachNamed(name string, replacing func(was, now Named)) []Named {
	var out []Named
	at := map[string]int{}
	for _, e := range m.entries[m.index.Row(name)] {
		for _, f := range e.Value.Members {
			o := e.Origin
			o.Line, o.Col = f.Place()
			n := Named{Name: f.Name, Origin: o, Value: f.Value, Problems: m.faults[f.Value]}
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

// RawNamed returns the entries of composites, overrides, toolOptions, context or
// mcpServers, merged by name, in file order.
func (s *Settings) RawNamed(key string) []Named {
	if s.merged == nil {
		return nil
	}
	return s.merged.named(key)
}
