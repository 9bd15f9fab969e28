package engine

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/settings"
)

// apiOptions returns the options for an API of the settings.
func (c *Connections) apiOptions(api settings.API) openapi.Options {
	logins := c.Logins()
	return openapi.Options{
		API: api, Expand: c.expander.API, ProjectRoot: c.set.ProjectRoot, Version: c.deps.Version,
		Limits:     openapi.Limits{Document: c.set.Limits.Document, Result: c.set.Limits.Result, Schema: c.set.Limits.Schema, Tools: c.set.Limits.Tools},
		AllowHosts: c.set.FetchAllow.Values(), Proxy: proxyOf(c.deps.Environ),
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
		account, err := oauth.New(a.Server, &oauth.Store{Open: r.deps.Folders.State}, nil).Account()
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
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
