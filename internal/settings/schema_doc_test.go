package settings

import (
	"fmt"
	"strings"
)

// referenceTable returns the table of settings in Markdown, for the documentation.
func referenceTable() string {
	var b strings.Builder
	b.WriteString("| key | also | type | default | variable | meaning |\n|---|---|---|---|---|---|\n")
	for _, s := range table() {
		if s.foreign {
			continue
		}
		writeRow(&b, &s, "")
		for i := range s.fields {
			writeRow(&b, &s.fields[i], fieldPrefix(&s))
			for j := range s.fields[i].fields {
				writeRow(&b, &s.fields[i].fields[j], fieldPrefix(&s)+s.fields[i].name+".")
			}
		}
	}
	return b.String()
}

func fieldPrefix(s *setting) string {
	switch s.typ {
	case typeNamed:
		return s.name + ".NAME."
	case typeObjects:
		return s.name + "[]."
	}
	return s.name + "."
}

func writeRow(b *strings.Builder, s *setting, prefix string) {
	variable := ""
	if prefix == "" {
		variable = s.variable()
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", prefix+s.name, code(s.twin), typeName(s), code(s.def), code(variable),
		strings.ReplaceAll(s.doc, "|", `\|`))
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func typeName(s *setting) string {
	switch s.typ {
	case typeChoice:
		return strings.Join(s.choices, ", ")
	case typeRaw:
		return "any"
	case typeRawNamed, typeNamed, typeObject:
		return "object"
	}
	return [...]string{typeString: "string", typeBool: "boolean", typeInt: "whole number", typeDuration: "duration", typeSize: "size",
		typeCommand: "command", typeStrings: "list of strings", typePairs: "object of strings", typeObjects: "list of objects"}[s.typ]
}
