package sources

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// Logins are the logins to servers and APIs, those of the person and those of clients.
type Logins struct {
	Programs  *programs.Set
	Shared    *store.Store // of the session; nil if it has none
	PerClient bool         // see engine.Options

	opening sync.Mutex
	opened  *store.Store // see clientStore; nil until it is needed
}

// close closes the store of clients' logins if it was opened.
func (l *Logins) close() {
	if l.opened != nil {
		l.opened.Close()
	}
}

// store returns the store of logins. Those of clients are in the store of serve, if there is one.
func (l *Logins) store(folder func() (*state.Dir, error)) *oauth.Store {
	out := &oauth.Store{Open: folder}
	if l.Programs.Settings.Serve.Store.Value != "" {
		out.Clients = func(ctx context.Context) (oauth.Place, error) {
			shared, err := l.clientStore(ctx)
			return sharedLogins{shared}, err
		}
	}
	return out
}

// clientStore returns the store of serve, which may not be in use otherwise.
func (l *Logins) clientStore(ctx context.Context) (*store.Store, error) {
	if l.Shared != nil {
		return l.Shared, nil
	}
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.opened == nil {
		var err error
		if l.opened, err = OpenStore(ctx, l.Programs.Settings.Serve, l.Programs.Expander); err != nil {
			return nil, err
		}
	}
	return l.opened, nil
}

// clientOf returns the client whose login calls of a server use; "" if it is the person's.
func (l *Logins) clientOf(ctx context.Context, server settings.Server) string {
	if l.PerClient && server.LoginPerClient() {
		return caller.Token(ctx)
	}
	return ""
}

// Logins returns the store of logins. It opens the folder now, because servers connect
// concurrently.
func (c *Connections) Logins() *oauth.Store {
	dir, err := c.opts.Programs.Folders.State()
	return c.opts.Logins.store(func() (*state.Dir, error) { return dir, err })
}

// OAuthClient returns a client for an expanded server. It reads nothing until
// it is used.
func (c *Connections) OAuthClient(server settings.Server, logins *oauth.Store) *oauth.Client {
	return oauth.New(server, logins, func(err error) {
		c.opts.Programs.Warn(registry.Warning("login_unkept", registry.MCPPrefix+server.Name, err.Error(), ""))
	})
}

// Remote returns a server of the settings that uses HTTP. The error is a
// *NoServerError, an *settings.InputError or a *document.Error.
func (c *Connections) Remote(name string) (settings.Server, error) {
	switch server := c.opts.Programs.Settings.Server(name); {
	case server == nil:
		return settings.Server{}, &NoServerError{name, c.opts.Programs.Settings.EntryNames()}
	case server.Err != nil:
		return settings.Server{}, server.Err
	case server.URL == "" && server.HTTPURL == "":
		return settings.Server{}, &settings.InputError{Err: fmt.Errorf("server %q is a program (%s); only servers with a url have logins", name, server.Origin)}
	default:
		return *server, nil
	}
}

// apiClient returns the login to an expanded API. It reads nothing until it is used.
func (c *Connections) apiClient(api settings.API, logins *oauth.Store) *oauth.Client {
	return oauth.ForAPI(api, logins, func(err error) {
		c.opts.Programs.Warn(registry.Warning("login_unkept", registry.APIPrefix+api.Name, err.Error(), ""))
	})
}

// LoginTo returns the login to the server or API with a name: that of a client of serve, or,
// if client is "", that of the person. The error is a *NoServerError, an *settings.InputError or a
// *document.Error.
func (c *Connections) LoginTo(ctx context.Context, name, client string) (*oauth.Client, error) {
	entry := c.opts.Programs.Settings.API(name)
	if entry == nil {
		server, err := c.Remote(name)
		if err == nil {
			err = CheckClient(server, client)
		}
		if err == nil {
			server, err = c.opts.Programs.Expander.Server(ctx, server)
		}
		return c.OAuthClient(server, c.Logins()).For(client), err
	}
	switch {
	case client != "":
		return nil, CheckClient(entry.Server, client)
	case entry.Err != nil:
		return nil, entry.Err
	case entry.OAuth == nil:
		return nil, &settings.InputError{Err: fmt.Errorf("API %q has no auth.oauth (%s); only APIs with it have logins", name, entry.Origin)}
	}
	api, err := c.opts.Programs.Expander.API(ctx, *entry)
	return c.apiClient(api, c.Logins()), err
}

// CheckClient returns an *settings.InputError if a client of serve has no login of its own to a server; ""
// is the person, who can have one to any.
func CheckClient(server settings.Server, client string) error {
	switch {
	case client == "":
		return nil
	case client == caller.Stdio || client == caller.Local:
		return &settings.InputError{Err: fmt.Errorf("clients without a token (%s) use your own login", client), Hint: "leave out --client"}
	case !server.LoginPerClient():
		return &settings.InputError{
			Err:  fmt.Errorf("server %q has one login, which all clients use (%s)", server.Name, server.Origin),
			Hint: "set oauth.per: client in its settings",
		}
	}
	return nil
}

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
		server, err = c.opts.Programs.Expander.Server(ctx, server)
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
		return "", nil, &settings.InputError{Err: fmt.Errorf("server %q needs no login: its settings have an Authorization header (%s)", name, server.Origin)}
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
