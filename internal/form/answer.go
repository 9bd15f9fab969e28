package form

import (
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

// Read turns what a person typed into the field's value. Numbers keep their
// digits. Choices are named by their value, their title or their number in the
// list, several separated by commas; "" typed as two quotes is an empty text.
// The error says what is wanted, to be asked again.
func (f *Field) Read(typed string) (json.RawMessage, error) {
	if !utf8.ValidString(typed) {
		return nil, errors.New("that is no valid UTF-8")
	}
	value, err := f.read(strings.TrimSpace(typed))
	if err != nil {
		return nil, err
	}
	return value, f.Check(value)
}

func (f *Field) read(typed string) (json.RawMessage, error) {
	switch f.Kind {
	case Number, Integer:
		if !isNumber(typed) {
			return nil, fmt.Errorf("that is no number; %s is wanted", f.Expects())
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
	}
	if typed == `""` {
		typed = ""
	}
	return json.RawMessage(jsonx.Quote(typed)), nil
}

// readChoices reads a list. A value that itself holds a comma can be named
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
			return nil, fmt.Errorf("%q is chosen twice", value)
		}
		chosen = append(chosen, value)
	}
	return json.Marshal(chosen)
}

// option finds a choice by value, title or number.
func (f *Field) option(typed string) (string, error) {
	for _, o := range f.Options {
		if o.Value == typed {
			return o.Value, nil
		}
	}
	for _, match := range []func(Option) string{func(o Option) string { return o.Title }, func(o Option) string { return o.Value }} {
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
	return "", fmt.Errorf("%q is none of the choices", typed)
}

// Numbered reports whether choices can be named by their number in the list:
// not where a value or a title looks like one.
func (f *Field) Numbered() bool {
	return !slices.ContainsFunc(f.Options, func(o Option) bool {
		_, value := strconv.Atoi(o.Value)
		_, title := strconv.Atoi(o.Title)
		return value == nil || title == nil
	})
}

// Check tells why a value does not fit the field, nil if it does.
func (f *Field) Check(value json.RawMessage) error {
	switch f.Kind {
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
			return errors.New("that is no list of choices")
		}
		for _, v := range list {
			if !f.offers(v) {
				return fmt.Errorf("%q is none of the choices", v)
			}
		}
		return f.checkCount(len(list), "choices")
	}
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return errors.New("that is no text")
	}
	if f.Kind == Choice {
		if !f.offers(s) {
			return fmt.Errorf("%q is none of the choices", s)
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
		return errors.New("that is no number")
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsInf(n, 0):
		return errors.New("that number is too large")
	case f.Kind == Integer && strings.ContainsAny(s, ".eE"):
		return fmt.Errorf("that is no whole number; %s is wanted", f.Expects())
	case f.Minimum != nil && n < *f.Minimum || f.Max != nil && n > *f.Max:
		return fmt.Errorf("that is out of range; %s is wanted", f.Expects())
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
	ok := true
	switch f.Format {
	case "email":
		address, err := mail.ParseAddress(s)
		ok = err == nil && address.Address == s
	case "uri":
		u, err := url.Parse(s)
		ok = err == nil && u.IsAbs()
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		ok = err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		ok = err == nil
	}
	if !ok {
		return fmt.Errorf("that is not %s", formats()[f.Format])
	}
	return nil
}

func (f *Field) checkCount(n int, of string) error {
	if f.Least != nil && n < *f.Least || f.Most != nil && n > *f.Most {
		return fmt.Errorf("%s wanted, that has %d", bounds(f.Least, f.Most, of), n)
	}
	return nil
}

func formats() map[string]string {
	return map[string]string{
		"email": "an e-mail address", "uri": "an address such as https://example.com/",
		"date": "a date such as 2026-07-28", "date-time": "a time such as 2026-07-28T14:30:00Z",
	}
}

// Expects says in words what the field takes, such as "a whole number from 1 to
// 10". It holds none of the server's words.
func (f *Field) Expects() string {
	switch f.Kind {
	case Number, Integer:
		what := "a number"
		if f.Kind == Integer {
			what = "a whole number"
		}
		switch {
		case f.Minimum != nil && f.Max != nil:
			return fmt.Sprintf("%s from %v to %v", what, *f.Minimum, *f.Max)
		case f.Minimum != nil:
			return fmt.Sprintf("%s, at least %v", what, *f.Minimum)
		case f.Max != nil:
			return fmt.Sprintf("%s, at most %v", what, *f.Max)
		}
		return what
	case Boolean:
		return "yes or no"
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

func bounds(least, most *int, of string) string {
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

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	return s != "" && len(s) <= 400 && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// Show returns a value for a person to read: texts without quotes, choices by
// their title with the value behind it.
func (f *Field) Show(value json.RawMessage) string {
	switch f.Kind {
	case Boolean:
		if string(value) == "true" {
			return "yes"
		}
		return "no"
	case Number, Integer:
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
