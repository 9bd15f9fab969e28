package merge

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Value is one effective setting for `toolreg settings show`.
type Value struct {
	Key    string          // canonical dotted name; names chosen by the user, as in mcpServers.NAME, as written
	JSON   json.RawMessage // with secrets masked
	Origin layers.Origin   // for combined values, the origin in the last scope
	Others []layers.Origin // for combined values, the origins in earlier scopes
}

// Effective lists every setting that has a value, defaults included, in the
// order of the table of settings, with secrets masked.
func (m *Merged) Effective() []Value {
	var out []Value
	for i := range m.Index.Rows {
		out = append(out, m.effective(&m.Index.Rows[i])...)
	}
	if secrets := m.Secrets(nil); len(secrets) > 0 {
		hide(out, secret.NewReplacer(secrets))
	}
	return out
}

// hide masks secrets in the texts of values that are set.
func hide(values []Value, r *strings.Replacer) {
	for i := range values {
		n, err := jsonx.Parse(values[i].JSON, jsonx.Options{})
		if err != nil || values[i].Origin == (layers.Origin{}) {
			continue
		}
		n.Walk("", func(_ string, part *jsonx.Value) {
			if text := r.Replace(part.Text()); part.Is(jsonx.String) && text != part.Text() {
				*part = *jsonx.NewString(text)
			}
		})
		values[i].JSON = n.JSON()
	}
}

func (m *Merged) effective(row *table.Row) []Value {
	all := m.entries[row]
	switch {
	case row.Foreign:
		return nil
	case len(all) == 0 && row.Default == "":
		return nil
	case len(all) == 0:
		return []Value{{Key: row.Name, JSON: json.RawMessage(row.Default)}}
	case row.Merge == table.ByName:
		var out []Value
		for _, e := range m.Named(row.Name) {
			out = append(out, Value{Key: row.Name + "." + e.Name,
				JSON: row.OfEntry(e.Name).Masked(e.Value), Origin: e.Origin})
		}
		return out
	}
	last, out := all[len(all)-1], Value{Key: row.Name}
	if row.Merge == table.Unite {
		for _, e := range all[:len(all)-1] {
			out.Others = append(out.Others, e.Origin)
		}
	}
	n := last.Value
	if row.Type == table.Strings {
		n = jsonx.NewStrings(m.List(row.Name).Values())
	} else if row.Name == RulesKey {
		n = unite(m.Rules())
	} else if row.Merge == table.Unite {
		n = unite(all)
	}
	out.JSON, out.Origin = row.Masked(n), last.Origin
	return []Value{out}
}

// unite combines lists, and objects of lists by key. For values of other forms, it returns that of
// the last scope.
func unite(all []layers.Setting) *jsonx.Value {
	if all[0].Value.Kind == jsonx.Array {
		out := jsonx.NewArray()
		for _, e := range all {
			out.Items = append(out.Items, e.Value.Items...)
		}
		return out
	}
	out := &jsonx.Value{Kind: jsonx.Object}
	for _, e := range all {
		if e.Value.Kind != jsonx.Object {
			return all[len(all)-1].Value
		}
		for _, f := range e.Value.Members {
			i := slices.IndexFunc(out.Members, func(have jsonx.Member) bool { return have.Name == f.Name })
			switch {
			case i < 0:
				out.Members = append(out.Members, f)
			case f.Value.Kind == jsonx.Array && out.Members[i].Value.Kind == jsonx.Array:
				out.Members[i].Value = &jsonx.Value{Kind: jsonx.Array,
					Items: slices.Concat(out.Members[i].Value.Items, f.Value.Items)}
			default:
				out.Members[i].Value = f.Value
			}
		}
	}
	return out
}

// Find returns the effective values of one setting, by its name or twin, of a
// group such as policy, or of one entry such as mcpServers.NAME. A setting
// without a value gives an empty result; the error is a [*table.UnknownKeyError].
func (m *Merged) Find(key string) ([]Value, error) {
	x := m.Index
	row := x.Row(key)
	name := key
	if row != nil {
		name = row.Name
	}
	var out []Value
	for _, v := range m.Effective() {
		if v.Key == name || strings.HasPrefix(v.Key, name+".") {
			out = append(out, v)
		}
	}
	if len(out) > 0 || row != nil || x.IsGroup(key) {
		return out, nil
	}
	return nil, &table.UnknownKeyError{Key: key, Near: registry.Near(key, x.Keys())}
}

// Masked returns the value as [Named.JSON] does, with secrets masked.
func (m *Merged) Masked(setting string, n Named) json.RawMessage {
	return m.Index.Row(setting).OfEntry(n.Name).Masked(n.Value)
}

// Secrets returns the texts that are masked wherever they appear: secrets in the settings of every
// scope that are telling ([table.Secret]), expanded by lookup, and values of variables that the
// settings mention and whose names look secret. It runs no commands and reads no files of
// references. A name that the settings give to something, such as a server, is excluded, because
// messages need it.
func (m *Merged) Secrets(lookup expand.Lookup) (out []string) {
	names := map[string]bool{}
	for i := range m.Index.Rows {
		row := &m.Index.Rows[i]
		out = append(out, m.secrets(row, lookup, func(string) bool { return true })...)
		if row.Merge == table.ByName {
			for _, n := range m.Named(row.Name) {
				names[n.Name] = true
			}
		}
	}
	return slices.DeleteFunc(out, func(text string) bool { return names[text] })
}

// SecretsOf is Secrets for one entry of a setting that merges by name.
func (m *Merged) SecretsOf(setting, entry string, lookup expand.Lookup) []string {
	return m.secrets(m.Index.Row(setting), lookup, func(name string) bool { return name == entry })
}

func (m *Merged) secrets(row *table.Row, lookup expand.Lookup, wanted func(entry string) bool) (out []string) {
	variable := func(name string) (string, bool) {
		value, err := lookup.Value(name)
		if err == nil && secret.Named(name) {
			out = append(out, value)
		}
		return value, err == nil
	}
	found := func(s table.Secret) {
		kind, target := secret.Reference(s.Text)
		if value, err := lookup.Value(target); kind == "env" && err == nil {
			out = append(out, value)
		} else if kind == "" && s.Telling {
			out = append(out, s.Text)
		}
	}
	for _, e := range m.entries[row] {
		value := e.Value.Clone()
		value.Walk("", func(_ string, n *jsonx.Value) {
			if n.Is(jsonx.String) {
				text, _ := expand.Text(n.Text(), variable) // "" if a variable is not set
				n.Token = jsonx.Quote(text)
			}
		})
		if row.Merge != table.ByName {
			row.Secrets(value, found)
			continue
		}
		for _, named := range value.Members {
			if wanted(named.Name) {
				row.OfEntry(named.Name).Secrets(named.Value, found)
			}
		}
	}
	return out
}
