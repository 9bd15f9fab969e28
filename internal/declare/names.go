package declare

import (
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

// Names maps each name as declared in a format to the registered name. It is
// one to one: two tools never share a declared name. What a tool is called
// depends on the set of names alone, not on their order. A name that the
// format takes is declared as it is; another one is cleaned, and where that is
// ambiguous gets "_" and 6 hex digits of the hash of the registered name.
func Names(format string, defs []registry.Definition) (map[string]string, error) {
	f, err := Lookup(format)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(defs))
	for i, declared := range f.rule.assign(defs) {
		if declared != "" {
			out[declared] = defs[i].Name
		}
	}
	return out, nil
}

// Original returns the registered name behind a name as declared in a format.
// With format "" it looks in every format and answers where all that know the
// name agree.
func Original(format string, defs []registry.Definition, name string) (string, bool) {
	formats := Formats()
	if format != "" {
		f, err := Lookup(format)
		if err != nil {
			return "", false
		}
		formats = []Format{f}
	}
	found := ""
	for _, f := range formats {
		i := slices.Index(f.rule.assign(defs), name)
		if i < 0 || name == "" {
			continue
		}
		if found != "" && found != defs[i].Name {
			return "", false
		}
		found = defs[i].Name
	}
	return found, found != ""
}
