package sources

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

// ErrPerClient is the error of [Logins.Credentials] for a server of which each client has its own process.
var ErrPerClient = errors.New("each client has its own process of the server")

// Credentials returns what calls of a tool authenticate with, for the cache of results:
// the expanded settings of its server or program, secrets that it inherits, and the login.
func (l *Logins) Credentials(ctx context.Context, t *registry.Tool) (string, error) {
	set := l.Programs.Settings
	if !t.OfServer() {
		return l.ofProgram(ctx, t)
	}
	if api := set.API(t.Server); api != nil {
		return l.ofAPI(ctx, *api)
	}
	server := set.Server(t.Server)
	switch {
	case server == nil:
		return "", nil
	case server.PerClient && !caller.IsPerson(ctx):
		return "", ErrPerClient
	}
	s, err := l.Programs.Expander.Server(ctx, *server)
	if err != nil {
		return "", err
	}
	all := []any{s.Command, s.Args, values.Pairs(s.Env), s.Cwd, s.URL, s.HTTPURL, values.Pairs(s.Headers), l.inheritedSecrets(s.InheritEnv)}
	if s.URL+s.HTTPURL != "" {
		account, err := oauth.New(s, l.store(l.Programs.Folders.State), nil).For(l.clientOf(ctx, s)).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// ofAPI returns what the requests to an API authenticate with.
func (l *Logins) ofAPI(ctx context.Context, api settings.API) (string, error) {
	a, err := l.Programs.Expander.API(ctx, api)
	if err != nil {
		return "", err
	}
	all := []any{a.Spec, a.URL, values.Pairs(a.Headers), values.Auth(a)}
	if a.OAuth != nil {
		account, err := oauth.ForAPI(a, l.store(l.Programs.Folders.State), nil).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// ofProgram returns what a tool that is run here authenticates with.
func (l *Logins) ofProgram(ctx context.Context, t *registry.Tool) (string, error) {
	p := l.Programs
	if t.Source == registry.SourceBuiltin {
		return "", nil
	}
	env, err := values.ToolEnviron(ctx, p.Settings, p.Expander, nil)
	if err != nil {
		return "", err
	}
	own, err := p.PluginSettings(ctx, t.Plugin)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%#v", []any{env, string(own), l.inheritedSecrets(p.Settings.InheritEnv)}), nil
}

// inheritedSecrets returns the entries of our environment whose names indicate secrets, if
// a program inherits all of it.
func (l *Logins) inheritedSecrets(inherits bool) []string {
	if !inherits {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(l.Programs.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !secret.Named(name)
	})
	slices.Sort(out)
	return out
}
