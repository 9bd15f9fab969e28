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
func Names(format string, registered []string) (map[string]string, error) {
	f, err := Lookup(format)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(registered))
	for i, declared := range f.rule.assign(registered) {
		if declared != "" {
			out[declared] = registered[i]
		}
	}
	return out, nil
}

// OriginalNames is [Names] for names that a model or a person gives. With format
// "" it holds those of every format, "" for one that formats do not agree on. An
// unknown format has none.
func OriginalNames(format string, registered []string) map[string]string {
	out := map[string]string{}
	for _, f := range Formats() {
		if format != "" && f.Name != format {
			continue
		}
		for i, declared := range f.rule.assign(registered) {
			if declared == "" {
				continue
			}
			original := registered[i]
			if other, ok := out[declared]; ok && other != original {
				original = ""
			}
			out[declared] = original
		}
	}
	return out
}

// Keeps reports whether the format declares a name as it is, whatever other
// tools there are.
func (f Format) Keeps(name string) bool { return name == "" || f.rule.fit(name) == name }

// names returns what each definition is declared as among all registered names,
// "" for one without a name or with that of an earlier one.
func (f Format) names(defs []registry.Definition, opts Options) []string {
	own := make([]string, len(defs))
	for i := range defs {
		own[i] = defs[i].Name
	}
	all := slices.Concat(opts.Registered, own)
	rule := f.rule
	if f.Name == "gemini" && opts.GeminiReference {
		rule = anyName()
	}
	declared := make(map[string]string, len(all))
	for i, name := range rule.assign(all) {
		if name != "" {
			declared[all[i]] = name
		}
	}
	for i, name := range own {
		own[i] = declared[name]
		delete(declared, name)
	}
	return own
}
