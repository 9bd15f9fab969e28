package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// DefaultFormat is the format that is used if none is given.
const DefaultFormat = "gemini"

// Formats returns all formats, the default first. The caller owns the slice.
func Formats() []Format {
	return []Format{
		geminiFormat(), geminiInteractions(), openai(), openaiResponses(), anthropic(), bedrock(), mistral(),
		mcp(), jsonSchema(), prompt(), typescriptFormat(),
	}
}

// Lookup returns the format with a name; "" means [DefaultFormat]. The error is
// an *UnknownFormatError.
func Lookup(name string) (Format, error) {
	name = cmp.Or(name, DefaultFormat)
	names := make([]string, 0, 10)
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, &UnknownFormatError{Name: name, Near: registry.Near(name, names), Known: names}
}

// CallFormats returns the formats in which models call tools. The caller owns the slice.
func CallFormats() []Format {
	return slices.DeleteFunc(Formats(), func(f Format) bool { return f.decode == nil })
}

// LookupCallFormat returns the format with a name, if it has calls.
func LookupCallFormat(name string) (Format, error) {
	var names []string
	for _, f := range CallFormats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("unknown format %q for a model's calls; use one of %s", name, strings.Join(names, ", "))
}

// UnknownFormatError reports that no format has a name.
type UnknownFormatError struct {
	Name  string
	Near  []string // similar names, best first
	Known []string // all names
}

func (e *UnknownFormatError) Error() string {
	if len(e.Near) > 0 {
		return fmt.Sprintf("unknown declaration format %q; did you mean %s?", e.Name, strings.Join(e.Near, ", "))
	}
	return fmt.Sprintf("unknown declaration format %q; use one of %s", e.Name, strings.Join(e.Known, ", "))
}

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
