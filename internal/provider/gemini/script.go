package gemini

import (
	"math"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// truthy reports whether a value is true in a JavaScript condition. A missing value
// is not.
func truthy(n *jsonx.Value) bool {
	if n == nil {
		return false
	}
	switch n.Kind {
	case jsonx.Null, jsonx.False:
		return false
	case jsonx.String:
		return n.Token != `""`
	case jsonx.Number:
		f, _ := strconv.ParseFloat(n.Token, 64) // infinite if out of range, which is true
		return f != 0
	}
	return true
}

// String returns the result of JavaScript's String() for a JSON value. Values of an
// enum are declared with it.
func String(n *jsonx.Value) string {
	switch n.Kind {
	case jsonx.String:
		return n.Text()
	case jsonx.Number:
		return scriptNumber(n.Token)
	case jsonx.Object:
		return "[object Object]"
	case jsonx.Array:
		parts := make([]string, len(n.Items))
		for i, v := range n.Items {
			if !v.Is(jsonx.Null) {
				parts[i] = String(v)
			}
		}
		return strings.Join(parts, ",")
	}
	return n.Token
}

// scriptNumber formats a JSON number as JavaScript would after parsing it
// (ECMA-262, Number::toString): the shortest digits of the same double, with an
// exponent from 1e21 and below 1e-6.
func scriptNumber(token string) string {
	f, _ := strconv.ParseFloat(token, 64)
	switch {
	case f == 0:
		return "0" // for -0, too
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	digits, exponent, _ := strings.Cut(s, "e")
	return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}
