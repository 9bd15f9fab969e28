package shell

import (
	"runtime"
	"slices"
	"strings"
)

// guardLocale returns the environment with a locale in UTF-8, in which the analysis reads
// command lines. In some others, a byte of a character is a backslash.
func guardLocale(env []string) []string {
	if runtime.GOOS == "windows" { // its shells read UTF-16
		return env
	}
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "LC_ALL=") })
	return append(out, "LC_ALL=C.UTF-8")
}
