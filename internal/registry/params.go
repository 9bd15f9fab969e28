package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Limits on untrusted params and schemas.
const (
	MaxParamsBytes = 16 << 20 // one call's params
	MaxSchemaBytes = 1 << 20  // one schema
	MaxDepth       = 100      // nesting of params and schemas
	maxExponent    = 1000     // exponents of numbers; comparing larger numbers takes too much time and memory
)

// DecodeParams checks that data is one JSON object that can be used as params:
// valid UTF-8, without duplicate keys and trailing data, and within the limits on
// size, depth and exponents. Empty input and null mean {}. It returns the bytes of the
// object unchanged, without a byte order mark. The error is an *ArgsError.
func DecodeParams(tool string, data []byte) (json.RawMessage, error) {
	if len(data) > MaxParamsBytes { // only the beginning may have been read
		return nil, Invalid(tool, "", "params are larger than the limit of %d bytes", MaxParamsBytes)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if len(data) == 0 || string(data) == "null" {
		return json.RawMessage("{}"), nil
	}
	if err := CheckJSON(data); err != nil {
		return nil, Invalid(tool, err.Pointer, "params are not valid JSON: %s", err.Message)
	}
	if data[0] != '{' {
		return nil, Invalid(tool, "", "params must be a JSON object, not %s", jsonx.KindOf(data))
	}
	return json.RawMessage(data), nil
}

// CheckJSON checks that data is one strict JSON value. It returns an error for
// invalid UTF-8, duplicate keys, trailing data, nesting over [MaxDepth] and numbers
// with too large exponents.
func CheckJSON(data []byte) *jsonx.SyntaxError {
	return jsonx.Check(data, jsonx.Options{Depth: MaxDepth, Strict: true, Number: numberFault})
}

// numberFault says what is wrong with a JSON number; "" if nothing is.
func numberFault(token string) string {
	if saneNumber(token) {
		return ""
	}
	return fmt.Sprintf("number %.40s has an exponent over %d", token, maxExponent)
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
