package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// Limits on untrusted params and schemas.
const (
	MaxParamsBytes = 16 << 20 // one call's params
	MaxSchemaBytes = 1 << 20  // one schema
	MaxDepth       = 100      // nesting of params and schemas
	maxExponent    = 1000     // exponents of numbers; comparing larger numbers takes too much time and memory
)

// DecodeParams checks that data is one JSON object that can be used as params: valid UTF-8, no
// duplicate keys, no trailing data, and within the limits on size, depth and exponents. Empty
// input, null and an empty list mean {}, and a string that contains an object means that object. It
// returns the bytes of the object unchanged, without a byte order mark. The error is an *ArgsError.
func DecodeParams(tool string, data []byte) (json.RawMessage, error) {
	if len(data) > MaxParamsBytes { // only the beginning may have been read
		return nil, Invalid(tool, "", "params are larger than the limit of %d bytes", MaxParamsBytes)
	}
	data = bytes.TrimSpace(text.WithoutMark(data))
	if len(data) == 0 || string(data) == "null" {
		return json.RawMessage("{}"), nil
	}
	if err := CheckJSON(data); err != nil {
		return nil, Invalid(tool, err.Pointer, "params are not valid JSON: %s", err.Message)
	}
	if jsonx.IsEmptyList(data) {
		return json.RawMessage("{}"), nil
	}
	if text, ok := jsonx.Text(data); ok && strings.HasPrefix(strings.TrimSpace(text), "{") {
		// Some models write an object so.
		return DecodeParams(tool, []byte(text))
	}
	if data[0] != '{' {
		return nil, Invalid(tool, "", "params must be a JSON object, not %s", jsonx.KindOf(data))
	}
	if err := CheckSurrogates(data); err != nil {
		return nil, Invalid(tool, "", "params are not valid JSON: %v", err)
	}
	return json.RawMessage(data), nil
}

// CheckSurrogates returns an error if a string in valid JSON has half of a surrogate pair, such as
// "\ud83d". That is not valid text, and programs replace it when they read it.
func CheckSurrogates(data []byte) error {
	half := func(i int, from, to uint64) bool { // whether an escape in a range begins at i
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return false
		}
		n, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 32)
		return err == nil && n >= from && n <= to
	}
	for i := 0; ; {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 {
			return nil
		}
		i += next
		switch high := half(i, 0xd800, 0xdbff); {
		case high && half(i+6, 0xdc00, 0xdfff):
			i += 12
		case high || half(i, 0xdc00, 0xdfff):
			return fmt.Errorf("%s at byte %d is half of a surrogate pair", data[i:i+6], i)
		default:
			i += 2
		}
	}
}

// MendSurrogates replaces halves of surrogate pairs in valid JSON by U+FFFD. APIs of models refuse
// a request that has one, and so every later request of the conversation.
func MendSurrogates(data json.RawMessage) json.RawMessage {
	if CheckSurrogates(data) == nil {
		return data
	}
	v, err := jsonx.Parse(data, jsonx.Options{})
	if err != nil {
		return data
	}
	return v.AppendTo(nil)
}

// CheckJSON checks that data is one strict JSON value. It returns an error for
// invalid UTF-8, duplicate keys, trailing data, nesting over [MaxDepth] and numbers
// with too large exponents.
func CheckJSON(data []byte) *jsonx.SyntaxError {
	return jsonx.Check(data, jsonx.Options{Depth: MaxDepth, Strict: true, Number: numberFault})
}

// numberFault says what is wrong with a JSON number; "" if nothing is.
func numberFault(token string) string {
	i := strings.IndexAny(token, "eE")
	if i < 0 {
		return ""
	}
	if e, err := strconv.Atoi(strings.TrimLeft(token[i+1:], "+")); err == nil && e <= maxExponent && e >= -maxExponent {
		return ""
	}
	return fmt.Sprintf("number %.40s has an exponent over %d", token, maxExponent)
}
