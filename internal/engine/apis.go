package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

// apiOptions returns the options for an API of the settings.
func (c *Connections) apiOptions(api settings.API) openapi.Options {
	logins := c.Logins()
	o := openapi.Options{
		API: api, Expand: c.expander.API, ProjectRoot: c.set.ProjectRoot, Version: c.deps.Version,
		Limits:     openapi.Limits{Document: c.set.Limits.Document, Result: c.set.Limits.Result, Schema: c.set.Limits.Schema, Tools: c.set.Limits.Tools},
		AllowHosts: c.set.FetchAllow.Values(), Proxy: proxyOf(c.deps.Environ),
		Memory: c.cached.OfAPI(api),
		Auth:   func(expanded settings.API) openapi.Authorizer { return c.apiClient(expanded, logins) },
		Warn:   c.deps.Warn, Logger: c.deps.Log,
	}
	if allowed, isSet := c.set.Permissions["filesystem"]; allowed || !isSet {
		o.Paths = c.files.Paths
		o.Files = func(call registry.Call, pointer, name string) (string, []byte, error) {
			return c.files.Read(call, pointer, name, c.set.Limits.Document)
		}
	}
	if api.Origin.Scope == settings.ScopeProject && c.set.Project != nil {
		o.Granted = c.granted
	}
	if c.opts.Earlier != nil {
		for _, earlier := range c.opts.Earlier.Servers.APIs() {
			o.Unasked = o.Unasked || earlier.Info().State == openapi.Ready && sameAPI(earlier.Settings(), api)
		}
	}
	return o
}

// sameAPI reports whether two entries say the same, wherever they are.
func sameAPI(a, b settings.API) bool {
	for _, s := range []*settings.API{&a, &b} {
		s.Origin.Line, s.Origin.Col, s.TrustOrigin = 0, 0, settings.Origin{}
		s.Include, s.Exclude = settings.List{}, settings.List{}
		s.Headers = withoutPlaces(s.Headers)
	}
	return reflect.DeepEqual(a, b)
}

// granted returns an error if a grant for the project does not cover a file of a document
// with this content.
func (c *Connections) granted(path, sum string) error {
	path = trust.Real(path)
	for _, f := range c.set.Project.Covered {
		switch {
		case f.Path != path || f.Sum == "":
		case f.Sum == sum:
			return nil
		default:
			return errors.New("it has just changed; run the command again")
		}
	}
	return errors.New("trust in this project does not cover it; write the reference as $ref: NAME")
}

// apiCredentials returns what the requests to an API authenticate with.
func (r *run) apiCredentials(ctx context.Context, api settings.API) (string, error) {
	a, err := r.expander.API(ctx, api)
	if err != nil {
		return "", err
	}
	all := []any{a.Spec, a.URL, pairValues(a.Headers), authValues(a)}
	if a.OAuth != nil {
		account, err := oauth.ForAPI(a, r.logins(r.deps.Folders.State), nil).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// apiClient returns the login to an expanded API. It reads nothing until it is used.
func (c *Connections) apiClient(api settings.API, logins *oauth.Store) *oauth.Client {
	return oauth.ForAPI(api, logins, func(err error) { c.warn("login_unkept", registry.APIPrefix+api.Name, err.Error(), "") })
}

// LoginTo returns the login to the server or API with a name: that of a client of serve, or,
// if client is "", that of the person. The error is a *NoServerError, an *InputError or a
// *settings.Error.
func (c *Connections) LoginTo(ctx context.Context, name, client string) (*oauth.Client, error) {
	i := slices.IndexFunc(c.set.APIs, func(a settings.API) bool { return a.Name == name })
	if i < 0 {
		server, err := c.Remote(name)
		if err == nil {
			err = CheckClient(server, client)
		}
		if err == nil {
			server, err = c.expander.Server(ctx, server)
		}
		return c.OAuthClient(server, c.Logins()).For(client), err
	}
	api := c.set.APIs[i]
	switch {
	case client != "":
		return nil, CheckClient(api.Server, client)
	case api.Err != nil:
		return nil, api.Err
	case api.OAuth == nil:
		return nil, &InputError{Err: fmt.Errorf("API %q has no auth.oauth (%s); only APIs with it have logins", name, api.Origin)}
	}
	api, err := c.expander.API(ctx, api)
	return c.apiClient(api, c.Logins()), err
}

// CheckClient returns an *InputError if a client of serve has no login of its own to a server; ""
// is the person, who can have one to any.
func CheckClient(server settings.Server, client string) error {
	switch {
	case client == "":
		return nil
	case client == caller.Stdio || client == caller.Local:
		return &InputError{Err: fmt.Errorf("clients without a token (%s) use your own login", client), Hint: "leave out --client"}
	case !server.LoginPerClient():
		return &InputError{Err: fmt.Errorf("server %q has one login, which all clients use (%s)", server.Name, server.Origin), Hint: "set oauth.per: client in its settings"}
	}
	return nil
}

// APITransport stands in [mcpclient.Info] for the transport of an API.
const APITransport = "openapi"

// APIInfos describes the APIs of a registry. Their tools are the registered ones.
func APIInfos(ctx context.Context, reg *registry.Registry, apis []*openapi.Source) []mcpclient.Info {
	var out []mcpclient.Info
	for _, api := range apis {
		a := api.Info()
		info := mcpclient.Info{Name: a.Name, Transport: APITransport, State: mcpclient.StateDisconnected, BaseURL: a.BaseURL, Tools: len(reg.ByServer(a.Name)),
			ConnectMs: a.Duration.Milliseconds(), Origin: api.Settings().Origin.String()}
		err := a.Err
		if a.State == openapi.Ready {
			err = api.NeedsLogin(ctx)
		}
		switch {
		case errors.Is(err, registry.ErrNeedsLogin):
			info.State, info.Error = mcpclient.StateNeedsLogin, err.Error()
		case err != nil:
			info.State, info.Error = mcpclient.StateFailed, err.Error()
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
