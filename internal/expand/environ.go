package expand

import (
	"runtime"
	"slices"
	"strings"
)

// Environ maps the [Key] of each variable's name to its value. A nil Environ is
// empty.
type Environ map[string]string

// NewEnviron returns the variables in a list of "K=V" entries. For duplicate names
// the last entry wins.
func NewEnviron(entries []string) Environ {
	e := make(Environ, len(entries))
	for _, entry := range entries {
		if name, value, ok := Cut(entry); ok {
			e[Key(name)] = value
		}
	}
	return e
}

// Lookup returns the value of a variable and whether it is set.
func (e Environ) Lookup(name string) (string, bool) {
	value, ok := e[Key(name)]
	return value, ok
}

// Get returns the value of a variable; "" if it is not set.
func (e Environ) Get(name string) string { return e[Key(name)] }

// Home returns the user's home folder; "" if the environment has none.
func (e Environ) Home() string {
	if runtime.GOOS == "windows" {
		return e.Get("USERPROFILE")
	}
	return e.Get("HOME")
}

// Find returns the value of one variable in a list of "K=V" entries and whether
// it is set. For duplicate names the last entry wins.
func Find(entries []string, name string) (string, bool) {
	for _, entry := range slices.Backward(entries) {
		if n, value, ok := Cut(entry); ok && Key(n) == Key(name) {
			return value, true
		}
	}
	return "", false
}

// Cut splits an entry "K=V". On Windows names may begin with "=".
func Cut(entry string) (name, value string, ok bool) {
	if entry == "" {
		return "", "", false
	}
	i := strings.Index(entry[1:], "=")
	if i < 0 {
		return "", "", false
	}
	return entry[:i+1], entry[i+2:], true
}

// Key folds the case of a variable's name if the system ignores it.
func Key(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
