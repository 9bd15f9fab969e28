package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Decode decodes the params of a call into a P, a struct whose json tags name
// every property of the tool's schema. Names are case-sensitive. Unknown names
// and wrong types are rejected with an *ArgsError. Absent params are the same
// as {}.
func Decode[P any](tool string, call registry.Call) (P, error) {
	var p P
	err := decode(tool, call, &p, reflect.TypeFor[P]())
	return p, err
}

// decode decodes the params of a call into p, which points to a struct of type
// t.
func decode(tool string, call registry.Call, p any, t reflect.Type) error {
	raw := bytes.TrimSpace(call.Params)
	if len(raw) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(raw))
	var wrong *json.UnmarshalTypeError
	if err := dec.Decode(&given); errors.As(err, &wrong) {
		return registry.Invalid(tool, "", "params are not a JSON object")
	} else if err != nil {
		return registry.Invalid(tool, "", "params are not valid JSON: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return registry.Invalid(tool, "", "there is text after the params")
	}
	known := properties(t)
	for name := range given {
		if !known[name] {
			return registry.Invalid(tool, pointerTo(name), "unknown param")
		}
	}
	if err := json.Unmarshal(raw, p); err != nil {
		message := jsonx.Explain(raw, err).Error()
		if !errors.As(err, &wrong) {
			return registry.Invalid(tool, "", "%s", message)
		}
		_, message, _ = strings.Cut(message, " is ") // after the name, which the pointer has
		return registry.Invalid(tool, pointerTo(wrong.Field), "is %s", message)
	}
	return nil
}

// properties returns the JSON names of the fields of a struct.
func properties(t reflect.Type) map[string]bool {
	out := map[string]bool{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		out[name] = true
	}
	return out
}

func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Integer is an integer as JSON Schema defines it: 3, 3.0 and 3e0 are equal.
type Integer int

// UnmarshalJSON rejects fractions and numbers beyond 2^53.
func (n *Integer) UnmarshalJSON(text []byte) error {
	s := string(text)
	if s == "null" {
		return nil
	}
	if i, err := strconv.Atoi(s); err == nil {
		*n = Integer(i)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return fmt.Errorf("%s is not an integer in range", s)
	}
	*n = Integer(f)
	return nil
}

// OrDefault returns *n, or standard if n is nil.
func (n *Integer) OrDefault(standard int) int {
	if n == nil {
		return standard
	}
	return int(*n)
}

// OrTrue returns the value of an optional switch that defaults to true.
func OrTrue(b *bool) bool { return b == nil || *b }

// EncodeParams encodes params for a revised call, without escaping HTML
// characters.
func EncodeParams(p any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encoding params: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
