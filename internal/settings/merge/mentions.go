package merge

import (
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Mention is a name in the settings, such as one of a tool.
type Mention struct {
	Setting string // such as excludeTools, or serve.profiles.NAME.rules
	Entry   string // of a setting that merges by name; otherwise ""
	Value   string // as written
	Of      table.Names
	Match   table.Match
	Parens  bool // text in parentheses may follow the name
	Origin  layers.Origin
}

// Mentions returns the names in the settings in effect whose rows say what they name, in the order
// of the table.
func (m *Merged) Mentions() []Mention {
	var found mentions
	for i := range m.Index.Rows {
		row := &m.Index.Rows[i]
		if row.Merge == table.ByName {
			for _, n := range m.Named(row.Name) {
				at := Mention{Setting: row.Name, Entry: n.Name, Match: row.Match, Origin: n.Origin}
				found.add(row, at, n.Name, n.Origin.Line, n.Origin.Col)
				at.Setting += "." + n.Name
				found.fields(row, at, n.Value)
			}
			continue
		}
		all := m.entries[row]
		if row.Merge == table.Replace && len(all) > 1 {
			all = all[len(all)-1:]
		}
		for _, e := range all {
			found.value(row, Mention{Setting: row.Name, Match: row.Match, Origin: e.Origin}, e.Value)
		}
	}
	return found
}

// mentions collects names. Mentions passed to its methods say where they are.
type mentions []Mention

func (m *mentions) add(row *table.Row, at Mention, name string, line, col int) {
	at.Value, at.Of, at.Parens = name, row.Names, row.Parens
	at.Origin.Line, at.Origin.Col = line, col
	same := func(have Mention) bool {
		return have.Setting == at.Setting && have.Value == name && have.Of == at.Of && have.Match == at.Match
	}
	if row.Names != table.NoNames && !slices.ContainsFunc(*m, same) {
		*m = append(*m, at)
	}
}

// value collects the names in the value of a setting or of a field.
func (m *mentions) value(row *table.Row, at Mention, n *jsonx.Value) {
	for _, item := range append(slices.Clip(n.Items), n) {
		if line, col := item.Place(); item.Is(jsonx.String) {
			m.add(row, at, item.Text(), line, col)
		} else if item.Is(jsonx.Object) && row.Type == table.Scopes {
			for _, f := range item.Members {
				line, col := f.Place()
				m.add(row, at, f.Name, line, col)
			}
		} else {
			m.fields(row, at, item)
		}
	}
}

// fields collects the names in the fields of an object. Names in list elements are reported for the
// list. Names in a rule that denies or asks ignore case.
func (m *mentions) fields(row *table.Row, at Mention, n *jsonx.Value) {
	setting, decision := at.Setting, n.Get("decision").Text()
	for _, f := range n.Members {
		field := row.Field(f.Name)
		if at.Match = field.Match; decision == "deny" || decision == "ask" {
			at.Match = table.FoldedGlobs
		}
		if at.Setting = setting; row.Type == table.Object || row.Type == table.Named {
			at.Setting += "." + f.Name
		}
		m.value(field, at, f.Value)
	}
}
