package rewrite

import (
	"fmt"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// OpenAI's documented limits on strict schemas (guide to structured outputs,
// "supported schemas").
const (
	maxStrictDepth      = 10
	maxStrictProperties = 5000
	maxStrictEnum       = 1000
	maxStrictText       = 120_000 // characters of names and values
	manyStrictEnum      = 250     // number of values of one enum above which
	maxStrictEnumText   = 15_000  // the characters of its values are limited
)

// size has the quantities that OpenAI limits.
type size struct {
	properties int
	values     int // of enums
	text       int // characters of names and values
}

// name counts the characters of a name or a value.
func (s *size) name(text string) { s.text += utf8.RuneCountInString(text) }

// enum counts the values of an enum. The error says that there are too many.
func (s *size) enum(values []*jsonx.Value) error {
	text := size{}
	for _, v := range values {
		text.name(v.Text())
	}
	s.values += len(values)
	s.text += text.text
	if len(values) > manyStrictEnum && text.text > maxStrictEnumText {
		return fmt.Errorf("an enum of %d values has %d characters, but the limit is %d", len(values), text.text, maxStrictEnumText)
	}
	return nil
}

// check returns which limit is exceeded.
func (s *size) check() error {
	switch {
	case s.properties > maxStrictProperties:
		return fmt.Errorf("it has %d properties, but the limit is %d", s.properties, maxStrictProperties)
	case s.values > maxStrictEnum:
		return fmt.Errorf("it has %d enum values, but the limit is %d", s.values, maxStrictEnum)
	case s.text > maxStrictText:
		return fmt.Errorf("its names and values have %d characters, but the limit is %d", s.text, maxStrictText)
	}
	return nil
}

// keeps reports whether the subset has a keyword with this value. That of
// Anthropic's models has no limits on values (documentation of structured
// outputs, "JSON Schema limitations") and supports only few patterns, so none
// is kept.
func (s *stricter) keeps(m jsonx.Member) bool {
	switch m.Name {
	case "format":
		return strictFormat(m.Value.Text()) || s.grammar && m.Value.Text() == "uri"
	case "default":
		return s.grammar
	case "pattern", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems":
		return !s.grammar
	case "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
		"$ref", "$defs", "definitions", "title", "description":
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
