package args

import (
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// allowed describes the values that a schema allows, beyond their type. It returns
// "" if all are allowed.
func (d *describer) allowed(s *jsonx.Value, typ schemaType) string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if values := typ.values(); len(typ.enum) > 0 || typ.isList() && len(typ.items.enum) > 0 {
		add(strings.Join(values, ", "))
	}
	add(between(number(s, "minimum"), number(s, "maximum"), ""))
	add(prefixed("more than ", number(s, "exclusiveMinimum")))
	add(prefixed("less than ", number(s, "exclusiveMaximum")))
	add(prefixed("a multiple of ", number(s, "multipleOf")))
	if least := number(s, "minLength"); least == "1" && number(s, "maxLength") == "" {
		add("not empty")
	} else {
		add(between(least, number(s, "maxLength"), " characters"))
	}
	add(between(number(s, "minItems"), number(s, "maxItems"), " items"))
	if s.Get("uniqueItems").Is(jsonx.True) {
		add("unique items")
	}
	add(s.Get("format").Text())
	add(prefixed("matches ", s.Get("pattern").Text()))
	return strings.Join(parts, "; ")
}

func number(s *jsonx.Value, keyword string) string {
	if v := s.Get(keyword); v.Is(jsonx.Number) {
		return v.Token
	}
	return ""
}

func between(least, most, unit string) string {
	switch {
	case least != "" && most != "":
		return least + " to " + most + unit
	case least != "":
		return "at least " + least + unit
	case most != "":
		return "at most " + most + unit
	}
	return ""
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
