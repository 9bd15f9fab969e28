package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// serverFor returns a server that is reached with the login of a client. Nothing of it is stored.
func (c *Connections) serverFor(ctx context.Context, entry settings.Server, client string) *mcpclient.Source {
	o, logins := c.Options(ctx, entry), c.Logins()
	o.Memory, o.Keep = nil, nil // these do not know clients
	o.Auth = func(expanded settings.Server) wire.Authorizer { return c.OAuthClient(expanded, logins).For(client) }
	return c.links.server(o, client)
}

// Account returns a function that identifies the login that a client has to a server; see
// [oauth.Client.Account].
func (c *Connections) Account(ctx context.Context, name, client string) (func(context.Context) (string, error), error) {
	login, err := c.LoginTo(ctx, name, client)
	if err != nil {
		return nil, err
	}
	return login.Account, nil
}

// RedirectURI returns the setting oauth.redirectUri of a server, expanded; "" if it is not set.
func (c *Connections) RedirectURI(ctx context.Context, name string) (string, error) {
	server, err := c.Remote(name)
	if err == nil {
		server, err = c.programs.expander.Server(ctx, server)
	}
	if err != nil || server.OAuth == nil {
		return "", err
	}
	return server.OAuth.RedirectURI, nil
}

// BeginLogin begins the login of a client to a server; see [oauth.Client.Begin]. The error is that
// of [Connections.LoginTo], or why the server offers no login.
func (c *Connections) BeginLogin(ctx context.Context, name, client, redirect, prefix string) (address string, pending []byte, err error) {
	server, err := c.Remote(name)
	if err == nil {
		err = CheckClient(server, client)
	}
	if err != nil {
		return "", nil, err
	}
	o, logins := c.Options(ctx, server), c.Logins()
	o.Memory, o.Keep, o.OnState = nil, nil, nil
	var login *oauth.Client
	o.Auth = func(expanded settings.Server) wire.Authorizer {
		login = c.OAuthClient(expanded, logins).For(client)
		return oauth.Probe{Client: login} // the answer says where to log in
	}
	source := mcpclient.New(o)
	defer source.Close()
	_, _, err = source.Discover(ctx)
	switch {
	case err != nil && !errors.Is(err, registry.ErrNeedsLogin):
		return "", nil, err
	case login == nil:
		return "", nil, &InputError{Err: fmt.Errorf("server %q needs no login: its settings have an Authorization header (%s)", name, server.Origin)}
	}
	if address, pending, err = login.Begin(ctx, redirect, prefix); err != nil {
		return "", nil, fmt.Errorf("logging in to server %q: %w", name, err)
	}
	return address, pending, nil
}

// FinishLogin ends a login that BeginLogin began; see [oauth.Client.Finish].
func (c *Connections) FinishLogin(ctx context.Context, name, client string, pending []byte, answer url.Values) error {
	login, err := c.LoginTo(ctx, name, client)
	if err == nil {
		err = login.Finish(ctx, pending, answer)
	}
	if err != nil {
		return fmt.Errorf("logging in to server %q: %w", name, err)
	}
	return nil
}
