package declare

import "github.com/toolreg/toolreg/internal/registry"

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

// OriginalNames is [Names] for names that a model or a person gives. With format
// "" it holds those of every format, "" for one that formats do not agree on. An
// unknown format has none.
func OriginalNames(format string, defs []registry.Definition) map[string]string {
	out := map[string]string{}
	for _, f := range Formats() {
		if format != "" && f.Name != format {
			continue
		}
		for i, declared := range f.rule.assign(defs) {
			if declared == "" {
				continue
			}
			original := defs[i].Name
			if other, ok := out[declared]; ok && other != original {
				original = ""
			}
			out[declared] = original
		}
	}
	return out
}
