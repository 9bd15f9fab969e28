package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// apiOptions returns the options for an API of the settings.
func (c *Connections) apiOptions(api settings.API) openapi.Options {
	logins := c.Logins()
	return openapi.Options{
		API: api, Expand: c.expander.API, ProjectRoot: c.set.ProjectRoot, Version: c.deps.Version,
		Limits:     openapi.Limits{Document: c.set.Limits.Document, Result: c.set.Limits.Result, Schema: c.set.Limits.Schema, Tools: c.set.Limits.Tools},
		AllowHosts: c.set.FetchAllow.Values(), Proxy: proxyOf(c.deps.Environ),
		Memory: c.cached.OfAPI(api), Paths: c.files.Paths,
		Files: func(call registry.Call, pointer, name string) (string, []byte, error) {
			return c.files.Read(call, pointer, name, c.set.Limits.Document)
		},
		Auth: func(expanded settings.Server) openapi.Authorizer { return c.OAuthClient(expanded, logins) },
		Warn: c.deps.Warn, Logger: c.deps.Log,
	}
}

// apiCredentials returns what the requests to an API authenticate with.
func (r *run) apiCredentials(ctx context.Context, api settings.API) (string, error) {
	a, err := r.expander.API(ctx, api)
	if err != nil {
		return "", err
	}
	all := []any{a.Spec, a.URL, pairValues(a.Headers), authValues(a)}
	if a.OAuth != nil {
		account, err := oauth.New(openapi.LoginServer(a), &oauth.Store{Open: r.deps.Folders.State}, nil).Account()
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// LoginServer returns an API with the setting oauth as the server of a login, expanded. The
// error is an *InputError or a *settings.Error.
func (c *Connections) LoginServer(ctx context.Context, api settings.API) (settings.Server, error) {
	if api.Err != nil {
		return settings.Server{}, api.Err
	}
	if api.OAuth == nil {
		return settings.Server{}, &InputError{Err: fmt.Errorf("API %q has no auth.oauth (%s); only APIs with it have logins", api.Name, api.Origin)}
	}
	expanded, err := c.expander.API(ctx, api)
	return openapi.LoginServer(expanded), err
}

// APIInfos describes the APIs of a registry. Their tools are the registered ones.
func APIInfos(ctx context.Context, reg *registry.Registry, apis []*openapi.Source) []mcpclient.Info {
	var out []mcpclient.Info
	for _, api := range apis {
		a := api.Info()
		info := mcpclient.Info{Name: a.Name, Transport: "openapi", State: mcpclient.StateDisconnected, BaseURL: a.BaseURL, Tools: len(reg.ByServer(a.Name)),
			ConnectMs: a.Duration.Milliseconds(), Origin: api.Settings().Origin.String()}
		switch {
		case a.State == openapi.Failed:
			info.State, info.Error = mcpclient.StateFailed, a.Err.Error()
			if errors.Is(a.Err, registry.ErrNeedsLogin) {
				info.State = mcpclient.StateNeedsLogin
			}
		case a.State == openapi.Ready && api.NeedsLogin(ctx):
			info.State = mcpclient.StateNeedsLogin
		case a.State == openapi.Ready && !a.CachedAt.IsZero():
			info.State, info.CachedAt, info.AgeMs = mcpclient.StateCached, &a.CachedAt, max(time.Since(a.CachedAt).Milliseconds(), 0)
		case a.State == openapi.Ready:
			info.State = mcpclient.StateConnected
		}
		out = append(out, info)
	}
	return out
}

// authValues returns the ways to authenticate with their values.
func authValues(a settings.API) []string {
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
