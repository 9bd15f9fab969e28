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
)

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
		return fmt.Errorf("expected %s, got %d", bounds(f.Least, f.Most, of), n)
	}
	return nil
}

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	return s != "" && len(s) <= 400 && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}
