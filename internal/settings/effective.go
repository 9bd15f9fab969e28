package settings

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

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
	} else if set.typ == typeRaw && set.merge == mergeUnite {
		n = united(all)
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
	list := m.list(name)
	if name == bannedKey {
		list = m.banned()
	}
	for _, e := range list.Entries {
		out.items = append(out.items, &node{kind: kindString, text: e.Value})
	}
	return out
}

// united puts the lists of objects of lists together, by their keys. What has
// another form is shown as the last place has it.
func united(all []entry) *node {
	out := &node{kind: kindObject}
	for _, e := range all {
		if e.node.kind != kindObject {
			return all[len(all)-1].node
		}
		for _, f := range e.node.fields {
			i := slices.IndexFunc(out.fields, func(have field) bool { return have.name == f.name })
			switch {
			case i < 0:
				out.fields = append(out.fields, f)
			case f.value.kind == kindList && out.fields[i].value.kind == kindList:
				out.fields[i].value = &node{kind: kindList, items: slices.Concat(out.fields[i].value.items, f.value.items)}
			default:
				out.fields[i].value = f.value
			}
		}
	}
	return out
}

// UnknownKeyError tells that a name is neither a setting nor a group of them.
type UnknownKeyError struct {
	Key  string
	Near []string // names that may be meant
}

func (e *UnknownKeyError) Error() string {
	msg := fmt.Sprintf("unknown setting %q", e.Key)
	if len(e.Near) > 0 {
		msg += fmt.Sprintf("; did you mean %q?", e.Near[0])
	}
	return msg
}

// Find returns the effective values of one setting, by its name or twin, of a
// group such as policy, or of one entry such as mcpServers.NAME. A setting that
// has no value gives none; the error is an [*UnknownKeyError].
func (s *Settings) Find(key string) ([]Value, error) {
	if s.merged == nil {
		return nil, &UnknownKeyError{Key: key}
	}
	x := s.merged.index
	set := x.byName[key]
	name := key
	if set != nil {
		name = set.name
	}
	var out []Value
	for _, v := range s.Effective() {
		if isBelow(v.Key, name) {
			out = append(out, v)
		}
	}
	if len(out) > 0 || set != nil || x.groups[key] {
		return out, nil
	}
	return nil, &UnknownKeyError{Key: key, Near: registry.Near(key, x.keys())}
}

// keys lists the names and twins of all settings, sorted.
func (x *index) keys() []string {
	var out []string
	for name, s := range x.byName {
		if !s.foreign {
			out = append(out, name)
		}
	}
	return sorted(out)
}
