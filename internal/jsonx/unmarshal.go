package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Unmarshal is like [json.Unmarshal], but its errors are for people: they name JSON's types,
// not Go's, and the place of a mistake.
func Unmarshal(data []byte, v any) error { return Explain(data, json.Unmarshal(data, v)) }

// DecodeKnown is like [Unmarshal] for a v that must have a field for each key.
func DecodeKnown(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return Explain(data, dec.Decode(v))
}

// Explain returns an error of [json.Unmarshal] about data in the words of [Unmarshal].
func Explain(data []byte, err error) error {
	if err == nil {
		return nil
	}
	if syntax := Check(data, Options{}); syntax != nil {
		return syntax
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	place := "it"
	if wrong.Field != "" {
		place = fmt.Sprintf("%.100q", wrong.Field)
	}
	kind, number, isNumber := strings.Cut(wrong.Value, " ") // such as "number 1.5"
	is := article(kind)
	if isNumber && len(number) <= 40 {
		is = number
	}
	return fmt.Errorf("%s is %s, not %s", place, is, wanted(wrong.Type, isNumber))
}

func article(kind string) string {
	switch kind {
	case "bool":
		return "a boolean"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + kind
}

// wanted returns the JSON type that a Go type has; isNumber is set for a number that does
// not fit.
func wanted(t reflect.Type, isNumber bool) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem(), isNumber)
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	if isNumber {
		return "an integer in range"
	}
	return "an integer"
}
