package declare

import (
	"math"
	"strconv"
	"strings"
)

// truthy says whether JavaScript takes a value as true in a condition; a
// missing one is not.
func truthy(n *node) bool {
	if n == nil {
		return false
	}
	switch n.kind {
	case kindNull, kindFalse:
		return false
	case kindString:
		return n.token != `""`
	case kindNumber:
		f, _ := strconv.ParseFloat(n.token, 64) // out of range is infinite, which is true
		return f != 0
	}
	return true
}

// scriptString returns what JavaScript's String() makes of a JSON value.
func scriptString(n *node) string {
	switch n.kind {
	case kindString:
		return n.text()
	case kindNumber:
		return scriptNumber(n.token)
	case kindObject:
		return "[object Object]"
	case kindArray:
		parts := make([]string, len(n.items))
		for i, v := range n.items {
			if v.kind != kindNull {
				parts[i] = scriptString(v)
			}
		}
		return strings.Join(parts, ",")
	}
	return n.token
}

// scriptNumber prints a JSON number as JavaScript would after reading it
// (ECMA-262, Number::toString): the shortest digits that give the same double,
// with an exponent from 1e21 up and below 1e-6.
func scriptNumber(token string) string {
	f, _ := strconv.ParseFloat(token, 64)
	switch {
	case f == 0:
		return "0" // of either sign
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
