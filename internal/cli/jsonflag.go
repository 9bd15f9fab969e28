package cli

import (
	"cmp"
	"strconv"
	"strings"
)

// wantsJSON reports whether a command line or the environment asks for JSON, read
// without parsing the line: a mistake in it ends the parsing before or after the
// flag is seen, and is to be reported in JSON too. The last word of several counts.
func wantsJSON(argv []string, variable string) bool {
	wanted, _ := strconv.ParseBool(cmp.Or(variable, "false")) // other values are reported elsewhere
	for _, word := range argv {
		name, value, given := strings.Cut(word, "=")
		switch {
		case word == "--":
			return wanted
		case name == "--jq":
			wanted = true
		case name == "--json":
			on, err := strconv.ParseBool(value)
			wanted = !given || on || err != nil
		}
	}
	return wanted
}
