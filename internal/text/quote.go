package text

import (
	"strconv"
	"strings"
)

const (
	// maxQuoted and maxEscaped are the maximum bytes of a text that are shown.
	maxQuoted  = 200
	maxEscaped = 1000
)

// Quote returns a foreign word or line in double quotes without invisible
// characters, at most its first 200 bytes.
func Quote(s string) string { return strconv.Quote(Valid(Clip(s, maxQuoted))) }

// Escape returns a message that contains foreign text without invisible
// characters, at most its first 1,000 bytes. Double quotes are unchanged.
func Escape(s string) string {
	q := strconv.Quote(Valid(Head(s, maxEscaped)))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
