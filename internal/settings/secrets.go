package settings

import (
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Secret is a text in the settings that the table declares to be a secret, or a reference to one.
type Secret struct {
	Name string // of the field, header or variable
	Text string
	// Declared says that the table names the field; otherwise it is one of several, such as a
	// variable of a program, and only its name says what it is.
	Declared bool
}

// Secrets returns what the settings have in rows that are secret, in every scope.
func (s *Settings) Secrets() (out []Secret) {
	if s.merged == nil {
		return nil
	}
	add := func(row *table.Row, text string, declared bool) {
		out = append(out, Secret{row.Name, text, declared})
	}
	rows := s.merged.index.Rows
	for i := range rows {
		row := &rows[i]
		for _, e := range s.merged.entries[row] {
			if row.Merge != table.ByName {
				row.Secrets(e.node, true, add)
				continue
			}
			for _, named := range e.node.Members {
				entry := entryRow(row, named.Name)
				entry.Secrets(named.Value, entry == row, add)
			}
		}
	}
	return out
}
