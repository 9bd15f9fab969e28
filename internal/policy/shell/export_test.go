package shell

import (
	"maps"
	"slices"
	"strings"
)

// Table is a table of tables.txt, for tests outside the package.
type Table struct {
	Path    string // the program and its subcommands
	Options []string
	table   *table
}

// Has reports whether the table or one above it has an attribute.
func (t Table) Has(attr string) bool { return t.table.has(attr) }

// Tables returns the tables of programs that do not run the command in their
// arguments.
func Tables() []Table {
	var out []Table
	for _, path := range slices.Sorted(maps.Keys(tables.Get().lines)) {
		if strings.HasPrefix(path, "$") {
			continue
		}
		t := tables.Get().table[path]()
		if !t.has("wraps") && !t.has("deny") {
			out = append(out, Table{path, slices.Sorted(maps.Keys(t.options)), t})
		}
	}
	return out
}
