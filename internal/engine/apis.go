package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

// api creates the source of an API of the settings.
func (c *Connections) api(api settings.API) *openapi.Source {
	set, p := c.programs.set, c.programs
	logins := c.Logins()
	o := openapi.Options{
		API: api, Expand: p.expander.API, ProjectRoot: set.ProjectRoot, Version: c.all.Version,
		Limits:     openapi.Limits{Document: set.Limits.Document, Result: set.Limits.Result, Schema: set.Limits.Schema, Tools: set.Limits.Tools},
		AllowHosts: set.FetchAllow.Values(), Proxy: proxyOf(p.environ),
		Memory: c.listings.OfAPI(api),
		Auth:   func(expanded settings.API) openapi.Authorizer { return c.apiClient(expanded, logins) },
		Warn:   p.reports.add, Logger: p.reports.log,
	}
	if allowed, isSet := set.Permissions["filesystem"]; allowed || !isSet {
		o.Paths = c.files.Paths
		o.Files = func(call registry.Call, pointer, name string) (string, []byte, error) {
			return c.files.Read(call, pointer, name, set.Limits.Document)
		}
	}
	if api.Origin.Scope == settings.ScopeProject && set.Project != nil {
		o.Granted = c.granted
	}
	for _, earlier := range c.earlier {
		o.Unasked = o.Unasked || earlier.Info().State == openapi.Ready && sameAPI(earlier.Settings(), api)
	}
	source := openapi.New(o)
	c.apis = append(c.apis, source)
	return source
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
	for _, f := range c.programs.set.Project.Covered {
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

// apiClient returns the login to an expanded API. It reads nothing until it is used.
func (c *Connections) apiClient(api settings.API, logins *oauth.Store) *oauth.Client {
	return oauth.ForAPI(api, logins, func(err error) { c.programs.reports.warn("login_unkept", registry.APIPrefix+api.Name, err.Error(), "") })
}

// LoginTo returns the login to the server or API with a name: that of a client of serve, or,
// if client is "", that of the person. The error is a *NoServerError, an *InputError or a
// *settings.Error.
func (c *Connections) LoginTo(ctx context.Context, name, client string) (*oauth.Client, error) {
	entry := c.programs.set.API(name)
	if entry == nil {
		server, err := c.Remote(name)
		if err == nil {
			err = CheckClient(server, client)
		}
		if err == nil {
			server, err = c.programs.expander.Server(ctx, server)
		}
		return c.OAuthClient(server, c.Logins()).For(client), err
	}
	switch {
	case client != "":
		return nil, CheckClient(entry.Server, client)
	case entry.Err != nil:
		return nil, entry.Err
	case entry.OAuth == nil:
		return nil, &InputError{Err: fmt.Errorf("API %q has no auth.oauth (%s); only APIs with it have logins", name, entry.Origin)}
	}
	api, err := c.programs.expander.API(ctx, *entry)
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
		return &InputError{
			Err:  fmt.Errorf("server %q has one login, which all clients use (%s)", server.Name, server.Origin),
			Hint: "set oauth.per: client in its settings",
		}
	}
	return nil
}
