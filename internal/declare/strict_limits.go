package declare

import (
	"fmt"
	"unicode/utf8"
)

// OpenAI's published limits on strict schemas (guide to structured outputs,
// "supported schemas").
const (
	maxStrictDepth      = 10
	maxStrictProperties = 5000
	maxStrictEnum       = 1000
	maxStrictText       = 120_000 // characters of names and values
	manyStrictEnum      = 250     // values of one enum, beyond which
	maxStrictEnumText   = 15_000  // characters of its values are bounded
)

// overLimit says which limit a schema exceeds, "" where none.
func (s *stricter) overLimit() string {
	switch {
	case s.properties > maxStrictProperties:
		return fmt.Sprintf("it has %d properties, %d are the limit", s.properties, maxStrictProperties)
	case s.enums > maxStrictEnum:
		return fmt.Sprintf("it has %d enum values, %d are the limit", s.enums, maxStrictEnum)
	case s.text > maxStrictText:
		return fmt.Sprintf("its names and values have %d characters, %d are the limit", s.text, maxStrictText)
	}
	return ""
}

// enum counts the values of an enum.
func (s *stricter) enum(values []*node) (why string) {
	text := 0
	for _, v := range values {
		text += characters(v.text())
	}
	s.enums += len(values)
	s.text += text
	if len(values) > manyStrictEnum && text > maxStrictEnumText {
		return fmt.Sprintf("an enum of %d values has %d characters, %d are the limit", len(values), text, maxStrictEnumText)
	}
	return ""
}

func characters(s string) int { return utf8.RuneCountInString(s) }

// strictKeyword reports whether OpenAI's subset has a keyword.
func strictKeyword(name string) bool {
	switch name {
	case "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
		"$ref", "$defs", "definitions", "title", "description", "pattern", "format",
		"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems":
		return true
	}
	return false
}

// strictFormat reports whether OpenAI's subset has a string format.
func strictFormat(name string) bool {
	switch name {
	case "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid":
		return true
	}
	return false
}
