package settings

import "encoding/json"

// Value is one effective setting for `toolreg settings show`.
type Value struct {
	Key    string          // canonical dotted name; NAME of mcpServers.NAME as written
	JSON   json.RawMessage // with secrets masked
	Origin Origin          // of a list that several places add to, the last of them
}

// Effective lists every setting that has a value, defaults included, in the
// order of the table of settings, with secrets masked.
func (s *Settings) Effective() []Value {
	if s.merged == nil {
		return nil
	}
	var out []Value
	rows := s.merged.index.rows
	for i := range rows {
		out = append(out, s.merged.effective(&rows[i])...)
	}
	return out
}

func (m *merged) effective(set *setting) []Value {
	all := m.entries[set]
	switch {
	case set.foreign:
		return nil
	case len(all) == 0 && set.def == "":
		return nil
	case len(all) == 0:
		return []Value{{Key: set.name, JSON: json.RawMessage(set.def)}}
	case set.merge == mergeByName:
		var out []Value
		for _, e := range m.named(set.name) {
			out = append(out, Value{Key: set.name + "." + e.name, JSON: show(m.entrySetting(set, e.name), e.node), Origin: e.origin})
		}
		return out
	}
	last := all[len(all)-1]
	n := last.node
	if set.typ == typeStrings {
		n = m.listNode(set.name)
	} else if set.name == rulesKey {
		n = m.ruleNode()
	}
	return []Value{{Key: set.name, JSON: show(set, n), Origin: last.origin}}
}

// entrySetting is the setting that describes one entry of a named setting.
func (m *merged) entrySetting(set *setting, name string) *setting {
	if set.secret {
		return set
	}
	if len(set.fields) > 0 {
		return &setting{name: name, typ: typeObject, fields: set.fields}
	}
	return set.field(name)
}

func (m *merged) listNode(name string) *node {
	out := &node{kind: kindList}
	for _, e := range m.list(name).Entries {
		out.items = append(out.items, &node{kind: kindString, text: e.Value})
	}
	return out
}
