package rewrite

import (
	"fmt"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// OpenAI's limits on strict schemas (guide to structured outputs, "supported
// schemas").
const (
	maxStrictDepth      = 10
	maxStrictProperties = 5000
	maxStrictEnum       = 1000
	maxStrictText       = 120_000 // characters of names and values
	manyStrictEnum      = 250     // if one enum has more values,
	maxStrictEnumText   = 15_000  // its values may have only so many characters
)

// size is the size of a schema, as far as OpenAI limits it.
type size struct {
	properties int
	values     int // number of enum values
	text       int // characters of names and values
}

// name adds the characters of a name or a value.
func (s *size) name(text string) { s.text += utf8.RuneCountInString(text) }

// enum adds the values of an enum. It returns an error if the enum exceeds its own
// limit.
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

// check returns an error if a limit is exceeded.
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

// keeps reports whether a keyword with this value is in the subset. The subset of
// Anthropic's models has no limits on values (documentation of structured outputs,
// "JSON Schema limitations"), and supports so few patterns that all are removed.
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

// strictFormat reports whether a string format is in OpenAI's subset.
func strictFormat(name string) bool {
	switch name {
	case "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid":
		return true
	}
	return false
}
