package form

import (
	"fmt"
	"strconv"
)

func formats() map[string]string {
	return map[string]string{
		"email": "an e-mail address", "uri": "an address such as https://example.com/",
		"date": "a date such as 2026-07-28", "date-time": "a time such as 2026-07-28T14:30:00Z",
	}
}

// Expects describes what the field accepts, such as "an integer from 1 to 10". It
// contains no text from the server.
func (f *Field) Expects() string {
	switch f.Kind {
	case Number, Integer:
		return f.expectsNumber()
	case Boolean:
		return "yes or no"
	case List:
		return "items separated by commas, or a JSON list; each " + f.Item.Expects()
	case JSON:
		return "JSON"
	case Choice:
		return "one of these"
	case Choices:
		if f.Least == nil && f.Most == nil {
			return "any of these, separated by commas"
		}
		return bounds(f.Least, f.Most, "of these") + ", separated by commas"
	}
	what := "text"
	if format := formats()[f.Format]; format != "" {
		what = format
	}
	if f.Least != nil || f.Most != nil {
		what += ", " + bounds(f.Least, f.Most, "characters")
	}
	if f.Pattern != "" {
		what += ", matching the pattern"
	}
	return what
}

func (f *Field) expectsNumber() string {
	what := "a number"
	if f.Kind == Integer {
		what = "an integer"
	}
	switch {
	case f.Minimum != nil && f.Maximum != nil:
		return fmt.Sprintf("%s from %s to %s", what, digits(*f.Minimum), digits(*f.Maximum))
	case f.Minimum != nil:
		return fmt.Sprintf("%s, at least %s", what, digits(*f.Minimum))
	case f.Maximum != nil:
		return fmt.Sprintf("%s, at most %s", what, digits(*f.Maximum))
	}
	return what
}

// digits formats a number without an exponent unless that is too long.
func digits(n float64) string {
	if s := strconv.FormatFloat(n, 'f', -1, 64); len(s) <= 20 {
		return s
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

func bounds(least, most *int, of string) string {
	if least != nil && most == nil && *least == 1 && of == "characters" {
		return "not empty"
	}
	switch {
	case least != nil && most != nil && *least == *most:
		return fmt.Sprintf("%d %s", *least, of)
	case least != nil && most != nil:
		return fmt.Sprintf("%d to %d %s", *least, *most, of)
	case least != nil:
		return fmt.Sprintf("at least %d %s", *least, of)
	}
	return fmt.Sprintf("at most %d %s", *most, of)
}
