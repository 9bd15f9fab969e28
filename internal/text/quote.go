package text

import (
	"strconv"
	"strings"
)

const (
	// maxQuoted and maxEscaped are how many bytes of a text are shown.
	maxQuoted  = 200
	maxEscaped = 1000
)

// Quote shows a foreign word or line in double quotes, with nothing invisible in
// it, at most its first 200 bytes.
func Quote(s string) string { return strconv.Quote(Valid(Clip(s, maxQuoted))) }

// Escape shows a message that holds foreign text with nothing invisible in it, at
// most its first 1,000 bytes. Double quotes stay as they are.
func Escape(s string) string {
	q := strconv.Quote(Valid(Head(s, maxEscaped)))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
