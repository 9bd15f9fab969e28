package merge

import (
	"slices"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Secrets returns what is masked wherever it appears: the secrets in the settings of every scope that
// are telling ([table.Secret]), expanded by lookup, and the values of variables that the settings mention
// and whose names indicate secrets. It runs no commands and reads no files that references name. A name
// that the settings give to something, such as a server, is not among them, because messages need it.
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
