package settings

import (
	"runtime"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
)

// Environment composes the environment of a child: the minimum that a program
// needs of environ, or all of it with inherit, and the pairs, already expanded,
// over it. Each name stands once, the last value counts.
func Environment(environ []string, pairs []Pair, inherit bool) []string {
	if !inherit {
		environ = process.BaseEnv(environ)
	}
	out := make([]string, 0, len(environ)+len(pairs))
	at := make(map[string]int, cap(out))
	put := func(name, entry string) {
		if i, ok := at[envKey(name)]; ok {
			out[i] = entry
			return
		}
		at[envKey(name)] = len(out)
		out = append(out, entry)
	}
	for _, e := range environ {
		if name, _, ok := cutVariable(e); ok {
			put(name, e)
		}
	}
	for _, p := range pairs {
		put(p.Name, p.Name+"="+p.Value)
	}
	return out
}

// cutVariable cuts "K=V". Windows has names that begin with "=".
func cutVariable(entry string) (name, value string, ok bool) {
	if entry == "" {
		return "", "", false
	}
	i := strings.Index(entry[1:], "=")
	if i < 0 {
		return "", "", false
	}
	return entry[:i+1], entry[i+2:], true
}

// envKey folds the case of a variable's name where the system does.
func envKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
