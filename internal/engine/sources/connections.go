package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

// Connections connects to the servers of the settings, with their options, logins and cached
// records. It starts none by itself. Its user must call Close.
type Connections struct {
	opts    *Options
	earlier *Connections   // of the session to replace, or nil
	files   *builtin.Files // for calls of APIs
	links   *links
	apis    []*openapi.Source // that were created
}

func newConnections(o *Options, earlier *Connections) *Connections {
	c := &Connections{opts: o, earlier: earlier, links: &links{confiner: o.Programs.Confiner,
		all: map[place]*link{}, shared: map[*link]*mcpclient.Options{}},
		files: builtin.NewFiles(o.Programs.Workspace())}
	if earlier != nil {
		c.links.earlier = earlier.links
	}
	return c
}

// TakeOver makes c the owner of the servers that it shares with the connections of the earlier
// session. It calls released with each.
func (c *Connections) TakeOver(released func(registry.Source)) {
	c.links.takeOver(released)
	c.earlier = nil
}

// Drop ends the sessions with servers that use a client's logins. It calls released with each.
func (c *Connections) Drop(s *Servers, client string, released func(registry.Source)) {
	for _, server := range s.on {
		if server.Settings().LoginPerClient() {
			released(server)
			c.links.remove(place{server.Settings().Name, client})
			_ = server.Close() // its error says nothing about the next session
		}
	}
}

// Release calls released with each server that the earlier connections still own.
func (c *Connections) Release(released func(registry.Source)) { c.links.release(released) }

// Close closes the logins and the files of calls. The servers must be closed before.
func (c *Connections) Close() error {
	if store := c.opts.Logins.opened; store != nil {
		store.Close()
	}
	return c.files.Close()
}

// Options returns the options for connecting to a server of the settings.
func (c *Connections) Options(ctx context.Context, server settings.Server) mcpclient.Options {
	o, p := c.opts.Base(server), c.opts.Programs
	o.Server, o.Memory = server, c.opts.Listings.OfServer(server)
	o.Auth = func(expanded settings.Server) wire.Authorizer { return c.opts.Logins.Client(expanded) }
	o.Confine = p.Confiner.Programs(confine.Server(server.Name))
	o.Keep = c.keep(server, o.ListOnly || o.Guard)
	if p.Settings.StartsOutside(server) {
		o.Folder = p.Folders.Neutral
	} else {
		o.Extra = []string{p.Bytecode()}
	}
	return o
}

// serverFor returns a server that is reached with the login of a client. Nothing of it is stored.
func (c *Connections) serverFor(ctx context.Context, entry settings.Server, client string) *mcpclient.Source {
	o := c.Options(ctx, entry)
	o.Memory, o.Keep = nil, nil // these do not know clients
	o.Auth = func(expanded settings.Server) wire.Authorizer { return c.opts.Logins.Client(expanded).For(client) }
	return c.links.server(o, client)
}

// BeginLogin begins the login of a client to a server; see [oauth.Client.Begin]. The error is that
// of [Logins.To], or why the server offers no login.
func (c *Connections) BeginLogin(ctx context.Context,
	name, client, redirect, prefix string) (address string, pending []byte, err error) {
	server, err := c.opts.Logins.Remote(name)
	if err == nil {
		err = CheckClient(server, client)
	}
	if err != nil {
		return "", nil, err
	}
	o := c.Options(ctx, server)
	o.Memory, o.Keep, o.OnState = nil, nil, nil
	var login *oauth.Client
	o.Auth = func(expanded settings.Server) wire.Authorizer {
		login = c.opts.Logins.Client(expanded).For(client)
		return oauth.Probe{Client: login} // the answer says where to log in
	}
	source := mcpclient.New(o)
	defer source.Close()
	_, _, err = source.Discover(ctx)
	switch {
	case err != nil && !errors.Is(err, registry.ErrNeedsLogin):
		return "", nil, err
	case login == nil:
		return "", nil, &settings.InputError{Err: fmt.Errorf(
			"server %q needs no login: its settings have an Authorization header (%s)", name, server.Origin)}
	}
	if address, pending, err = login.Begin(ctx, redirect, prefix); err != nil {
		return "", nil, fmt.Errorf("logging in to server %q: %w", name, err)
	}
	return address, pending, nil
}

// keep returns how a server is kept between runs; nil if it is not kept. lists says that this run
// does not call the server, or guards it.
func (c *Connections) keep(server settings.Server, lists bool) *mcpclient.Keep {
	d := c.opts.Kept.KeepFor(server)
	if d <= 0 {
		return nil
	}
	return &mcpclient.Keep{
		For: d, Use: c.opts.Kept.Use, Lists: lists, Renew: c.opts.Kept.Renew,
		Consent: c.opts.Programs.Settings.Globals.TrustProject && server.Origin.Scope == settings.ScopeProject,
		Origin:  func() keep.Origin { return c.opts.Kept.originOf(server) },
		Folder:  c.opts.Kept.sockets, Command: c.opts.Kept.Command,
		Plan: func(_ context.Context, spec *process.Spec) (json.RawMessage, error) {
			plan, err := c.opts.Programs.Confiner.Plan(confine.Server(server.Name), spec)
			if plan == nil {
				return nil, err
			}
			return json.Marshal(plan)
		},
	}
}

// api creates the source of an API of the settings.
func (c *Connections) api(api settings.API) *openapi.Source {
	set, p := c.opts.Programs.Settings, c.opts.Programs
	o := openapi.Options{
		API: api, Expand: p.Expander.API, Secrets: func() []string { return c.opts.Secrets(api.Name) },
		ProjectRoot: set.ProjectRoot, Version: c.opts.Tools.Fetch.Version,
		Limits: openapi.Limits{Document: set.Limits.Document, Result: set.Limits.Result,
			Schema: set.Limits.Schema, Tools: set.Limits.Tools},
		AllowHosts: set.FetchAllow.Values(), Proxy: proxyOf(p.Environ),
		Memory: c.opts.Listings.OfAPI(api),
		Auth:   func(expanded settings.API) openapi.Authorizer { return c.opts.Logins.apiClient(expanded) },
		Warn:   p.Warn, Logger: p.Log,
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
	if c.earlier != nil {
		o.Unasked = slices.ContainsFunc(c.earlier.apis, func(earlier *openapi.Source) bool {
			return earlier.Info().State == openapi.Ready && sameAPI(earlier.Settings(), api)
		})
	}
	source := openapi.New(o)
	c.apis = append(c.apis, source)
	return source
}

// sameAPI reports whether two entries are equal apart from their places.
func sameAPI(a, b settings.API) bool {
	for _, s := range []*settings.API{&a, &b} {
		s.Origin.Line, s.Origin.Col, s.TrustOrigin = 0, 0, settings.Origin{}
		s.Include, s.Exclude = settings.List{}, settings.List{}
		s.Headers = withoutPlaces(s.Headers)
	}
	return reflect.DeepEqual(a, b)
}

// granted returns an error if trust in the project does not cover a document's file with this
// content.
func (c *Connections) granted(path, sum string) error {
	path = trust.Real(path)
	for _, f := range c.opts.Programs.Settings.Project.Covered {
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

// EndKept ends the processes or the HTTP session that keep a server between runs, and returns how
// many there were.
func (c *Connections) EndKept(ctx context.Context, server *mcpclient.Source) (stopped int, err error) {
	if server.Settings().Command != "" {
		return c.StopKept(ctx, server.Settings())
	}
	was, err := server.EndKept(ctx)
	if was {
		stopped = 1
	}
	return stopped, err
}

// StopKept ends all processes that keep a server of the settings, also those started for an earlier
// version of its entry, and returns their number.
func (c *Connections) StopKept(ctx context.Context, server settings.Server) (stopped int, err error) {
	return c.opts.Kept.stop(ctx, server)
}

// replayed returns the servers of a recording, which answer requests about prompts and resources.
func (c *Connections) replayed(ctx context.Context, sources []registry.Source) (out []*mcpclient.Source) {
	for _, server := range c.opts.Programs.Settings.Servers {
		o := c.Options(ctx, server)
		i := slices.IndexFunc(sources,
			func(s registry.Source) bool { return s.Name() == registry.MCPPrefix+server.Name })
		o.Recorded = sources[i]
		out = append(out, mcpclient.New(o))
	}
	return out
}

// CachedOffers returns the prompts or the resources of a server that an earlier run
// cached; kind is [mcpclient.OfferPrompts] or [mcpclient.OfferResources]. It starts
// nothing.
func (c *Connections) CachedOffers(ctx context.Context, server, kind string) []mcpclient.Offer {
	entry := c.opts.Programs.Settings.Server(server)
	if entry == nil || entry.IsOff() {
		return nil
	}
	cached, _ := c.opts.Listings.OfServer(*entry).Load(ctx) // an error means that the server must not be queried
	return cached.Offers[kind]
}

// Forget removes the record of a server or API from the cache, because another login may see other
// tools. It also ends sessions that outlast a run: they belong to the old login.
func (c *Connections) Forget(ctx context.Context, name string) {
	var err error
	if api := c.opts.Programs.Settings.API(name); api != nil {
		err = c.opts.Listings.OfAPI(*api).Forget(ctx)
	}
	if server := c.opts.Programs.Settings.Server(name); server != nil {
		c.opts.Kept.forgetSessions(ctx, *server)
		err = c.opts.Listings.OfServer(*server).Forget(ctx)
	}
	if err != nil {
		c.opts.Programs.Log.Debug("dropping the cached listing failed", "server", name, "err", err)
	}
}
