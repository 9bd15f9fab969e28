package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

var errPerClient = errors.New("each client has its own process of the server")

// credentials returns what calls of a tool authenticate with, for the cache of results:
// the expanded settings of its server or program, secrets that it inherits, and the login.
func (r *run) credentials(ctx context.Context, t *registry.Tool) (string, error) {
	if !t.OfServer() {
		return r.programCredentials(ctx, t)
	}
	if i := slices.IndexFunc(r.set.APIs, func(a settings.API) bool { return a.Name == t.Server }); i >= 0 {
		return r.apiCredentials(ctx, r.set.APIs[i])
	}
	i := slices.IndexFunc(r.set.Servers, func(s settings.Server) bool { return s.Name == t.Server })
	if i < 0 {
		return "", nil
	}
	if r.set.Servers[i].PerClient && !caller.IsPerson(ctx) {
		return "", errPerClient
	}
	s, err := r.expander.Server(ctx, r.set.Servers[i])
	if err != nil {
		return "", err
	}
	all := []any{s.Command, s.Args, pairValues(s.Env), s.Cwd, s.URL, s.HTTPURL, pairValues(s.Headers), r.inheritedSecrets(s.InheritEnv)}
	if s.URL+s.HTTPURL != "" {
		account, err := oauth.New(s, r.logins(r.deps.Folders.State), nil).For(r.clientOf(ctx, s)).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

func (r *run) programCredentials(ctx context.Context, t *registry.Tool) (string, error) {
	if t.Source == registry.SourceBuiltin {
		return "", nil
	}
	env, err := values.ToolEnviron(ctx, r.set, r.expander, nil)
	if err != nil {
		return "", err
	}
	own, err := r.pluginSettings(ctx, t.Plugin)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%#v", []any{env, string(own), r.inheritedSecrets(r.set.InheritEnv)}), nil
}

// inheritedSecrets returns the entries of our environment whose names indicate secrets, if
// a program inherits all of it.
func (r *run) inheritedSecrets(inherits bool) []string {
	if !inherits {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(r.deps.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !secret.Named(name)
	})
	slices.Sort(out)
	return out
}

// pairValues returns pairs as "NAME=value".
func pairValues(pairs []settings.Pair) []string {
	out := make([]string, len(pairs))
	for i, p := range pairs {
		out[i] = p.Name + "=" + p.Value
	}
	return out
}
