package values

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
)

// Environment composes the environment of a child process: the minimum that a
// program needs from environ, or all of environ if inherit is set, overridden by
// pairs, which are already expanded. Each name occurs once, with its last value.
func Environment(environ []string, pairs []settings.Pair, inherit bool) []string {
	if !inherit {
		environ = process.BaseEnv(environ)
	}
	out := make([]string, 0, len(environ)+len(pairs))
	at := make(map[string]int, cap(out))
	put := func(name, entry string) {
		if i, ok := at[expand.Key(name)]; ok {
			out[i] = entry
			return
		}
		at[expand.Key(name)] = len(out)
		out = append(out, entry)
	}
	for _, e := range environ {
		if name, _, ok := expand.Cut(e); ok {
			put(name, e)
		}
	}
	for _, p := range pairs {
		put(p.Name, p.Name+"="+p.Value)
	}
	return out
}

// ToolEnviron returns the environment of commands that tools run, built from
// the settings and the environment of the process. With an error, because the setting env
// refers to a variable that is not set, it has none of that setting.
func ToolEnviron(ctx context.Context, s *settings.Settings, x *Expander, environ []string) ([]string, error) {
	pairs, err := x.Pairs(ctx, "env", s.Env)
	return append(Environment(environ, pairs, s.InheritEnv), process.ChildDepth(environ)), err
}

// Pairs returns pairs as "NAME=value".
func Pairs(pairs []settings.Pair) []string {
	out := make([]string, len(pairs))
	for i, p := range pairs {
		out[i] = p.Name + "=" + p.Value
	}
	return out
}

// Auth returns the ways to authenticate to an API with their values.
func Auth(a settings.API) []string {
	var out []string
	for _, way := range a.Auth {
		switch {
		case way.Basic != nil:
			out = append(out, fmt.Sprintf("%#v", *way.Basic))
		case way.APIKey != nil:
			out = append(out, fmt.Sprintf("%#v", *way.APIKey))
		case way.OAuth != nil:
			out = append(out, fmt.Sprintf("%#v", *way.OAuth))
		default:
			out = append(out, way.Bearer)
		}
	}
	return out
}
