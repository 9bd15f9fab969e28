package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
