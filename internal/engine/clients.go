package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// perClient is why a server with oauth.per: client is not part of a registry.
const perClient = "reached only with the login of a client (oauth.per: client)"

// clients has the finders of clients that have logins of their own to some servers
// (oauth.per: client). What one of them is offered, no other one sees. The zero value has none.
type clients struct {
	newSources func(ctx context.Context, client string) *sources // nil: no server has a login for each client

	mu      sync.Mutex
	finders map[string]*finder // by the name of the client
}

// of returns the finder for the caller of ctx: that of its client, if there are servers with a
// login for each client.
func (f *finder) of(ctx context.Context) *finder {
	client := caller.Token(ctx)
	if client == "" || f.clients.newSources == nil {
		return f
	}
	f.clients.mu.Lock()
	defer f.clients.mu.Unlock()
	own := f.clients.finders[client]
	if own == nil {
		from := f.clients.newSources(context.WithoutCancel(ctx), client)
		own = &finder{run: f.run, names: f.names, cached: f.cached, sources: from, loader: f.loader, renewer: renewer{f.run, from, f.loader, f.cached.Records}, ofClient: true}
		if f.clients.finders == nil {
			f.clients.finders = map[string]*finder{}
		}
		f.clients.finders[client] = own
	}
	return own
}

// all returns the finder and those of clients.
func (f *finder) all() []*finder {
	f.clients.mu.Lock()
	defer f.clients.mu.Unlock()
	return append(slices.Collect(maps.Values(f.clients.finders)), f)
}

// HasClients reports whether clients have logins of their own to some servers, so that each is
// offered something else.
func (s *Session) HasClients() bool { return s.Tools.finder.clients.newSources != nil }

// ServersFor returns the servers and APIs that the caller of ctx can use, see
// [Options.ClientLogins].
func (s *Session) ServersFor(ctx context.Context) *Servers {
	return s.Tools.finder.of(ctx).sources.Servers
}

// Forget ends the sessions with servers that were made with logins of a client, and forgets what
// they listed. A later request begins anew.
func (s *Session) Forget(client string) {
	all := &s.Tools.finder.clients
	all.mu.Lock()
	own := all.finders[client]
	delete(all.finders, client)
	all.mu.Unlock()
	if own == nil {
		return
	}
	for _, server := range own.sources.on {
		if server.Settings().LoginPerClient() {
			s.loader.Release(server)
			s.Connections.unlink(server.Settings().Name, client)
			_ = server.Close() // its error says nothing about the next session
		}
	}
	s.gate.forget()
}

// ofClients returns the function that makes the sources of a client: those of all, and the servers
// that are reached with its own logins, at their places in the settings. It returns nil if there
// are no such servers.
func (s *sources) ofClients(c *Connections) func(ctx context.Context, client string) *sources {
	isOwn := func(off OffServer) bool { return off.skipped == perClient }
	if !slices.ContainsFunc(s.off, isOwn) {
		return nil
	}
	return func(ctx context.Context, client string) *sources {
		out, servers := *s, *s.Servers
		out.Servers = &servers
		servers.on, servers.off = nil, slices.DeleteFunc(slices.Clone(s.off), isOwn)
		for _, entry := range c.set.Servers {
			named := func(name string) bool { return name == entry.Name }
			if i := slices.IndexFunc(s.on, func(server *mcpclient.Source) bool { return named(server.Settings().Name) }); i >= 0 {
				servers.on = append(servers.on, s.on[i])
			} else if slices.ContainsFunc(s.off, func(off OffServer) bool { return isOwn(off) && named(off.Name) }) {
				servers.on = append(servers.on, c.serverFor(ctx, entry, client))
			}
		}
		if s.composites != nil { // whether all steps of one are known depends on the tools
			out.composites = s.newComposites(ctx)
			out.local = slices.Clone(s.local)
			out.local[slices.Index(out.local, registry.Source(s.composites))] = out.composites
		}
		return &out
	}
}

// serverFor returns a server that is reached with the login of a client. Nothing of it is stored.
func (c *Connections) serverFor(ctx context.Context, entry settings.Server, client string) *mcpclient.Source {
	o, logins := c.Options(ctx, entry), c.Logins()
	o.Memory, o.Keep = nil, nil // these do not know clients
	o.Auth = func(expanded settings.Server) wire.Authorizer { return c.OAuthClient(expanded, logins).For(client) }
	return c.server(o, client)
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
		server, err = c.expander.Server(ctx, server)
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

// logins returns the store of logins. Those of clients are in the store of serve, if there is one.
func (r *run) logins(folder func() (*state.Dir, error)) *oauth.Store {
	out := &oauth.Store{Open: folder}
	if r.set.Serve.Store.Value != "" {
		out.Clients = func(ctx context.Context) (oauth.Place, error) {
			shared, err := r.clientStore(ctx)
			return sharedLogins{shared}, err
		}
	}
	return out
}

// clientStore returns the store of serve, which may not be in use otherwise.
func (r *run) clientStore(ctx context.Context) (*store.Store, error) {
	if r.store != nil {
		return r.store, nil
	}
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.opened == nil {
		var err error
		if r.opened, err = openStore(ctx, r.set.Serve, r.expander); err != nil {
			return nil, err
		}
	}
	return r.opened, nil
}

// clientOf returns the client whose login calls of a server use; "" if it is the person's.
func (r *run) clientOf(ctx context.Context, server settings.Server) string {
	if r.opts.ClientLogins && server.LoginPerClient() {
		return caller.Token(ctx)
	}
	return ""
}
