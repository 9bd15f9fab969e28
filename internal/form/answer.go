package form

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Read converts what a person typed to the field's value. Numbers keep their digits.
// Choices are given by value, title or number in the list, and several are separated by
// commas. Two quotes ("") are the empty text. The error says what is expected, so that
// the person can be asked again.
func (f *Field) Read(typed string) (json.RawMessage, error) {
	if !utf8.ValidString(typed) {
		return nil, errors.New("that is not valid UTF-8")
	}
	value, err := f.readAnswer(strings.TrimSpace(typed))
	if err != nil {
		return nil, err
	}
	return value, f.Check(value)
}

func (f *Field) readAnswer(typed string) (json.RawMessage, error) {
	switch f.Kind {
	case Number, Integer:
		if !isNumber(typed) {
			return nil, fmt.Errorf("that is not a number; expected %s", f.Expects())
		}
		return json.RawMessage(typed), nil
	case Boolean:
		switch strings.ToLower(typed) {
		case "y", "yes", "true":
			return json.RawMessage("true"), nil
		case "n", "no", "false":
			return json.RawMessage("false"), nil
		}
		return nil, errors.New("answer yes or no")
	case Choice:
		value, err := f.option(typed)
		return json.RawMessage(jsonx.Quote(value)), err
	case Choices:
		return f.readChoices(typed)
	case List:
		return f.readList(typed)
	case JSON:
		return readJSON(typed)
	}
	if typed == `""` {
		typed = ""
	}
	return json.RawMessage(jsonx.Quote(typed)), nil
}

// readChoices parses a list. A value that contains a comma can be given only
// alone, or by its number.
func (f *Field) readChoices(typed string) (json.RawMessage, error) {
	if value, err := f.option(typed); err == nil {
		return json.Marshal([]string{value})
	}
	chosen := []string{}
	for word := range strings.SplitSeq(typed, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		value, err := f.option(word)
		if err != nil {
			return nil, err
		}
		if slices.Contains(chosen, value) {
			return nil, fmt.Errorf("%q was chosen twice", value)
		}
		chosen = append(chosen, value)
	}
	return json.Marshal(chosen)
}

// readJSON parses any JSON that is valid in params.
func readJSON(typed string) (json.RawMessage, error) {
	if err := jsonx.Check([]byte(typed), jsonx.Options{Strict: true}); err != nil {
		return nil, fmt.Errorf("that is not JSON: %w", err)
	}
	return json.RawMessage(typed), nil
}

// readList parses a list: JSON, or items separated by commas.
func (f *Field) readList(typed string) (json.RawMessage, error) {
	if strings.HasPrefix(typed, "[") {
		return readJSON(typed)
	}
	list := []json.RawMessage{}
	for word := range strings.SplitSeq(typed, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		item, err := f.Item.Read(word)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	if len(list) == 0 {
		return nil, errors.New("that is not an item; [] is the empty list")
	}
	return json.Marshal(list)
}

// option finds a choice by value, title or number.
func (f *Field) option(typed string) (string, error) {
	for _, o := range f.Options {
		if o.Value == typed {
			return o.Value, nil
		}
	}
	for _, match := range []func(Option) string{
		func(o Option) string { return o.Title }, func(o Option) string { return o.Value },
	} {
		var found []string
		for _, o := range f.Options {
			if strings.EqualFold(match(o), typed) && typed != "" {
				found = append(found, o.Value)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && f.Numbered() && n >= 1 && n <= len(f.Options) {
		return f.Options[n-1].Value, nil
	}
	return "", fmt.Errorf("%q is not one of the choices", typed)
}

// Numbered reports whether choices can be given by their number in the list. They cannot
// if a value or title looks like a number.
func (f *Field) Numbered() bool {
	return !slices.ContainsFunc(f.Options, func(o Option) bool {
		_, value := strconv.Atoi(o.Value)
		_, title := strconv.Atoi(o.Title)
		return value == nil || title == nil
	})
}

// Show formats a value for a person: texts without quotes, choices by their
// title followed by the value.
func (f *Field) Show(value json.RawMessage) string {
	switch f.Kind {
	case Boolean:
		if string(value) == "true" {
			return "yes"
		}
		return "no"
	case Number, Integer, List, JSON:
		return string(value)
	case Choices:
		var list []string
		if json.Unmarshal(value, &list) == nil {
			for i := range list {
				list[i] = f.showOption(list[i])
			}
			return strings.Join(list, ", ")
		}
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return f.showOption(s)
}

func (f *Field) showOption(value string) string {
	for _, o := range f.Options {
		if o.Value == value {
			return o.Label()
		}
	}
	return value
}

// Check returns an error if a value does not fit the field.
func (f *Field) Check(value json.RawMessage) error {
	switch f.Kind {
	case List, JSON: // checked by the schema of the whole
		return nil
	case Number, Integer:
		return f.checkNumber(string(value))
	case Boolean:
		if s := string(value); s != "true" && s != "false" {
			return errors.New("answer yes or no")
		}
		return nil
	case Choices:
		var list []string
		if json.Unmarshal(value, &list) != nil || list == nil {
			return errors.New("that is not a list of choices")
		}
		for _, v := range list {
			if !f.offers(v) {
				return fmt.Errorf("%q is not one of the choices", v)
			}
		}
		return f.checkCount(len(list), "choices")
	}
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return errors.New("that is not text")
	}
	if f.Kind == Choice {
		if !f.offers(s) {
			return fmt.Errorf("%q is not one of the choices", s)
		}
		return nil
	}
	return f.checkText(s)
}

func (f *Field) offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

func (f *Field) checkNumber(s string) error {
	if !isNumber(s) {
		return errors.New("that is not a number")
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsInf(n, 0):
		return errors.New("that number is too large")
	case f.Kind == Integer && strings.ContainsAny(s, ".eE"):
		return fmt.Errorf("that is not an integer; expected %s", f.Expects())
	case f.Minimum != nil && n < *f.Minimum || f.Maximum != nil && n > *f.Maximum:
		return fmt.Errorf("that is out of range; expected %s", f.Expects())
	}
	return nil
}

func (f *Field) checkText(s string) error {
	if err := f.checkCount(utf8.RuneCountInString(s), "characters"); err != nil {
		return err
	}
	if f.pattern != nil && !f.pattern.MatchString(s) {
		return fmt.Errorf("that does not match the pattern %s", f.Pattern)
	}
	if format, ok := formats()[f.Format]; ok && !format.matches(s) {
		return fmt.Errorf("that is not %s", format.what)
	}
	return nil
}

func (f *Field) checkCount(n int, of string) error {
	if f.Least != nil && n < *f.Least || f.Most != nil && n > *f.Most {
		return fmt.Errorf("expected %s, got %d", bounds(f.Least, f.Most, of), n)
	}
	return nil
}

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	return s != "" && len(s) <= 400 && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// format is what a text must be.
type format struct {
	what    string
	matches func(string) bool
}

func formats() map[string]format {
	in := func(layout string) func(string) bool {
		return func(s string) bool { _, err := time.Parse(layout, s); return err == nil }
	}
	return map[string]format{
		"email": {"an e-mail address", func(s string) bool {
			address, err := mail.ParseAddress(s)
			return err == nil && address.Address == s
		}},
		"uri": {"an address such as https://example.com/", func(s string) bool {
			u, err := url.Parse(s)
			return err == nil && u.IsAbs()
		}},
		"date":      {"a date such as 2026-07-28", in(time.DateOnly)},
		"date-time": {"a time such as 2026-07-28T14:30:00Z", in(time.RFC3339)},
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
	what := cmp.Or(formats()[f.Format].what, "text")
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
