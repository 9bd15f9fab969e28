// Package tool has what the built-in tools share: decoding the params of a
// call, and the wording of results.
package tool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/registry"
)

// Failed returns the result of a call that was made and failed.
func Failed(text string) registry.Result {
	return registry.ErrorResult(registry.ErrorExecution, text)
}

// Misfit returns a failed result for params that are well formed but do not
// match the file or object, for example an edit of text that the file does not
// contain. Repeating the call cannot help.
func Misfit(text string) registry.Result {
	return registry.ErrorResult(registry.ErrorValidation, text)
}

// Count formats a number of things: "1 file", "2 files".
func Count(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "y"):
		thing = thing[:len(thing)-1] + "ies"
	case strings.HasSuffix(thing, "ch"):
		thing += "es"
	default:
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// Size formats a size for people.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// OneLine returns a file name that fits on one line. A name with control
// characters is quoted, so that it cannot look like several lines.
func OneLine(name string) string {
	for _, r := range name {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}

// RuneIndex returns the byte offset of the n-th character, or len(s) if s has
// fewer.
func RuneIndex(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
