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
func (l *logins) credentials(ctx context.Context, t *registry.Tool) (string, error) {
	set := l.programs.set
	if !t.OfServer() {
		return l.programs.credentials(ctx, t)
	}
	if api := set.API(t.Server); api != nil {
		return l.ofAPI(ctx, *api)
	}
	server := set.Server(t.Server)
	switch {
	case server == nil:
		return "", nil
	case server.PerClient && !caller.IsPerson(ctx):
		return "", errPerClient
	}
	s, err := l.programs.expander.Server(ctx, *server)
	if err != nil {
		return "", err
	}
	all := []any{s.Command, s.Args, values.Pairs(s.Env), s.Cwd, s.URL, s.HTTPURL, values.Pairs(s.Headers), l.programs.inheritedSecrets(s.InheritEnv)}
	if s.URL+s.HTTPURL != "" {
		account, err := oauth.New(s, l.store(l.programs.folders.State), nil).For(l.clientOf(ctx, s)).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// ofAPI returns what the requests to an API authenticate with.
func (l *logins) ofAPI(ctx context.Context, api settings.API) (string, error) {
	a, err := l.programs.expander.API(ctx, api)
	if err != nil {
		return "", err
	}
	all := []any{a.Spec, a.URL, values.Pairs(a.Headers), values.Auth(a)}
	if a.OAuth != nil {
		account, err := oauth.ForAPI(a, l.store(l.programs.folders.State), nil).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

func (p *programs) credentials(ctx context.Context, t *registry.Tool) (string, error) {
	if t.Source == registry.SourceBuiltin {
		return "", nil
	}
	env, err := values.ToolEnviron(ctx, p.set, p.expander, nil)
	if err != nil {
		return "", err
	}
	own, err := p.pluginSettings(ctx, t.Plugin)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%#v", []any{env, string(own), p.inheritedSecrets(p.set.InheritEnv)}), nil
}

// inheritedSecrets returns the entries of our environment whose names indicate secrets, if
// a program inherits all of it.
func (p *programs) inheritedSecrets(inherits bool) []string {
	if !inherits {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(p.environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !secret.Named(name)
	})
	slices.Sort(out)
	return out
}
