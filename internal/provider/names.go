package provider

import (
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

// Names maps each declared name in a format to the registered name. Declared names
// are unique. They depend only on the set of names, not on their order. A name that
// the format accepts is declared unchanged. Other names are cleaned and, if the
// result is ambiguous, get "_" and 6 hex digits of the hash of the registered name.
func Names(format string, registered []string) (map[string]string, error) {
	f, err := Lookup(format)
	if err != nil {
		return nil, err
	}
	return OriginalNames(f.Name, registered), nil
}

// OriginalNames is [Names] for names given by a model or a person. If format is "",
// it has the names of all formats; a name that means different tools in different
// formats is mapped to "". For an unknown format it returns nil.
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

// Keeps reports whether the format declares a name unchanged, regardless of
// other tools.
func (f Format) Keeps(name string) bool { return name == "" || f.rule.fit(name) == name }

// names returns the declared name of each definition among all registered names, or
// "" if a definition has no name or the name of an earlier one.
func (f Format) names(defs []registry.Definition, opts Options) []string {
	own := make([]string, len(defs))
	for i := range defs {
		own[i] = defs[i].Name
	}
	all := slices.Concat(opts.Registered, own)
	rule := f.rule
	if f.Name == "gemini" && opts.GeminiReference {
		rule = nameRule{extra: ".-", max: 64} // that accepts every registered name
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
