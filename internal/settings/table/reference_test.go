package table

import (
	"fmt"
	"strings"
)

// referenceTable returns the table of settings in Markdown, for the documentation.
func referenceTable() string {
	var b strings.Builder
	b.WriteString("| key | also | type | default | variable | meaning |\n|---|---|---|---|---|---|\n")
	for _, s := range all() {
		if s.Foreign {
			continue
		}
		writeRow(&b, &s, "")
		for i := range s.Fields {
			writeRow(&b, &s.Fields[i], fieldPrefix(&s))
			for j := range s.Fields[i].Fields {
				writeRow(&b, &s.Fields[i].Fields[j], fieldPrefix(&s)+fieldPrefix(&s.Fields[i]))
			}
		}
	}
	return b.String()
}

func fieldPrefix(s *Row) string {
	switch s.Type {
	case Named:
		return s.Name + ".NAME."
	case Objects:
		return s.Name + "[]."
	}
	return s.Name + "."
}

func writeRow(b *strings.Builder, s *Row, prefix string) {
	variable := ""
	if prefix == "" {
		variable = s.Variable()
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", prefix+s.Name, code(s.Twin), typeName(s), code(s.Default), code(variable),
		strings.ReplaceAll(s.Doc, "|", `\|`))
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func typeName(s *Row) string {
	switch s.Type {
	case Choice:
		return strings.Join(s.Choices, ", ")
	case Network:
		return "none, loopback, all or a list of hosts"
	case Raw:
		return "any"
	case RawNamed, Named, Object:
		return "object"
	}
	return [...]string{String: "string", Bool: "boolean", Int: "whole number", Duration: "duration", Size: "size",
		Command: "command", Strings: "list of strings", Pairs: "object of strings", Objects: "list of objects", Calls: "list of calls"}[s.Type]
}
