package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on params and schemas from outside (spec section 9).
const (
	MaxParamsBytes = 64 << 20 // one call's params
	MaxSchemaBytes = 1 << 20  // one schema
	MaxDepth       = 100      // nesting of params and schemas
	maxExponent    = 1000     // of a number; larger ones cost time and memory to compare
)

// DecodeParams checks that data is one JSON object fit to be params: valid
// UTF-8, no duplicate keys, nothing behind it, bounded in size, depth and
// exponents (spec section 8.1). Empty input means {}. It returns the object's
// bytes as they came, without a byte order mark. The error is an *ArgsError.
func DecodeParams(tool string, data []byte) (json.RawMessage, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if len(data) == 0 {
		return json.RawMessage("{}"), nil
	}
	if len(data) > MaxParamsBytes {
		return nil, Invalid(tool, "", "params of %d bytes are over the limit of %d", len(data), MaxParamsBytes)
	}
	if err := CheckJSON(data); err != nil {
		e := Invalid(tool, err.Pointer, "params are not valid JSON: %s", err.Message)
		return nil, e
	}
	if data[0] != '{' {
		return nil, Invalid(tool, "", "params must be a JSON object, not %s", jsonKind(data[0]))
	}
	return json.RawMessage(data), nil
}

// JSONError tells what is wrong with a JSON text and where.
type JSONError struct {
	Pointer string
	Offset  int64 // bytes from the start
	Message string
}

func (e *JSONError) Error() string { return e.Message }

// CheckJSON reports what makes data unfit as one strict JSON value: invalid
// UTF-8, duplicate keys, trailing text, nesting over MaxDepth, numbers with
// absurd exponents. nil means none of these.
func CheckJSON(data []byte) *JSONError {
	if off := invalidUTF8(data); off >= 0 {
		return &JSONError{Offset: int64(off), Message: fmt.Sprintf("invalid UTF-8 at byte %d", off)}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	c := jsonChecker{dec: dec, data: data}
	if err := c.value("", 0); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return c.fail("", "text behind the JSON value at %s", c.position())
	}
	return nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

type jsonChecker struct {
	dec  *json.Decoder
	data []byte
}

func (c *jsonChecker) fail(pointer, format string, args ...any) *JSONError {
	return &JSONError{Pointer: pointer, Offset: c.dec.InputOffset(), Message: fmt.Sprintf(format, args...)}
}

func (c *jsonChecker) position() string {
	before := c.data[:min(int(c.dec.InputOffset()), len(c.data))]
	line := bytes.Count(before, []byte("\n")) + 1
	col := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, col)
}

func (c *jsonChecker) value(pointer string, depth int) *JSONError {
	tok, err := c.dec.Token()
	if err != nil {
		return c.syntax(pointer, err)
	}
	switch t := tok.(type) {
	case json.Number:
		if !saneNumber(t.String()) {
			return c.fail(pointer, "number %.40s has an exponent over %d", t, maxExponent)
		}
	case json.Delim:
		if depth >= MaxDepth {
			return c.fail(pointer, "nesting deeper than %d", MaxDepth)
		}
		if t == '{' {
			return c.object(pointer, depth)
		}
		return c.array(pointer, depth)
	}
	return nil
}

func (c *jsonChecker) object(pointer string, depth int) *JSONError {
	seen := map[string]bool{}
	for c.dec.More() {
		tok, err := c.dec.Token()
		if err != nil {
			return c.syntax(pointer, err)
		}
		key, ok := tok.(string)
		if !ok {
			return c.fail(pointer, "an object key must be a string (%s)", c.position())
		}
		at := pointer + "/" + escapePointer(key)
		if seen[key] {
			return c.fail(at, "duplicate key %q at %s", key, c.position())
		}
		seen[key] = true
		if err := c.value(at, depth+1); err != nil {
			return err
		}
	}
	return c.end(pointer)
}

func (c *jsonChecker) array(pointer string, depth int) *JSONError {
	for i := 0; c.dec.More(); i++ {
		if err := c.value(pointer+"/"+strconv.Itoa(i), depth+1); err != nil {
			return err
		}
	}
	return c.end(pointer)
}

func (c *jsonChecker) end(pointer string) *JSONError {
	if _, err := c.dec.Token(); err != nil {
		return c.syntax(pointer, err)
	}
	return nil
}

func (c *jsonChecker) syntax(pointer string, err error) *JSONError {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.fail(pointer, "it ends too early, at %s", c.position())
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	return c.fail(pointer, "%s, at %s", msg, c.position())
}

// saneNumber reports whether a JSON number's exponent is small enough to
// compute with.
func saneNumber(s string) bool {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return true
	}
	e, err := strconv.Atoi(strings.TrimLeft(s[i+1:], "+"))
	return err == nil && e <= maxExponent && e >= -maxExponent
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

func jsonKind(first byte) string {
	switch first {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
