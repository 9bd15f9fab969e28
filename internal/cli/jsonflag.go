package cli

import (
	"cmp"
	"strconv"
	"strings"
)

// wantsJSON reports whether a command line or the environment requests JSON. It
// does not parse the command line, because a mistake in it, which has to be
// reported in JSON too, stops the parser. The last flag wins.
func wantsJSON(argv []string, variable string) bool {
	wanted, _ := strconv.ParseBool(cmp.Or(variable, "false")) // invalid values are reported elsewhere
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
