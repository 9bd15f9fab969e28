package text

import (
	"strconv"
	"strings"
)

const (
	// maxQuoted and maxEscaped are the maximum numbers of bytes of a text that are shown.
	maxQuoted  = 200
	maxEscaped = 1000
)

// Quote returns at most the first 200 bytes of an untrusted word or line in double
// quotes, with invisible characters escaped.
func Quote(s string) string { return strconv.Quote(Valid(Clip(s, maxQuoted))) }

// Escape returns at most the first 1,000 bytes of a message that contains untrusted
// text, with invisible characters escaped. Double quotes are unchanged.
func Escape(s string) string {
	q := strconv.Quote(Valid(Head(s, maxEscaped)))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
