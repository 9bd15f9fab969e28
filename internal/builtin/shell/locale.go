package shell

import (
	"runtime"
	"slices"
	"strings"
)

// guardLocale returns the environment with a UTF-8 locale, because the analysis of
// command lines assumes UTF-8. In some other encodings, a byte of a character can be a
// backslash.
func guardLocale(env []string) []string {
	if runtime.GOOS == "windows" { // its shells read UTF-16
		return env
	}
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "LC_ALL=") })
	return append(out, "LC_ALL=C.UTF-8")
}
