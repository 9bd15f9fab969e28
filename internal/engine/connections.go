package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// Connections reaches the servers of the settings: it has their options, logins and cached
// records. It starts none.
type Connections struct {
	*run
	cached    *listingStore
	gate      *gate
	questions *questions
	files     *builtin.Files // for calls of APIs
	linking   sync.Mutex
	links     map[place]*link
	shared    map[*link]*mcpclient.Options // with Options.Earlier, and their options in this session

	recordingOptions recording.Options // if the run is recorded or replayed
}

// Remote returns a server of the settings that uses HTTP. The error is a
// *NoServerError, an *InputError or a *settings.Error.
func (c *Connections) Remote(name string) (settings.Server, error) {
	names := make([]string, 0, len(c.set.Servers))
	for _, server := range c.set.Servers {
		if server.Name == name && server.Err != nil {
			return settings.Server{}, server.Err
		}
		if server.Name == name && server.URL == "" && server.HTTPURL == "" {
			return settings.Server{}, &InputError{Err: fmt.Errorf("server %q is a program (%s); only servers with a url have logins", name, server.Origin)}
		}
		if server.Name == name {
			return server, nil
		}
		names = append(names, server.Name)
	}
	for _, api := range c.set.APIs {
		names = append(names, api.Name)
	}
	return settings.Server{}, &NoServerError{name, names}
}

// workspaceOf returns the workspace of the settings; "" means that there is none.
func workspaceOf(set *settings.Settings) string {
	if set.NoWorkspace {
		return ""
	}
	return set.Workspace
}

// Options returns the options for connecting to a server of the settings.
func (c *Connections) Options(ctx context.Context, server settings.Server) mcpclient.Options {
	logins := c.Logins()
	o := mcpclient.Options{
		Server:      server,
		Expand:      c.expander.Server,
		ProjectRoot: c.set.ProjectRoot, Workspace: workspaceOf(c.set), Environ: process.ChildEnviron(c.deps.Environ), Version: c.deps.Version,
		Logger: c.deps.Log, OnState: c.deps.Screen.ServerState, Counts: c.opts.Counts, ListOnly: c.opts.List, Memory: c.cached.OfServer(server),
		Auth: func(expanded settings.Server) wire.Authorizer { return c.OAuthClient(expanded, logins) },
		Limits: mcpclient.Limits{
			Frame: c.set.Limits.Frame, Result: c.set.Limits.Result, Tools: c.set.Limits.Tools, Pages: c.set.Limits.Pages, Schema: c.set.Limits.Schema,
			Samples: c.set.Sampling.Requests,
		},
		Confine: c.confiner.Programs(confine.Server(server.Name)), Guard: c.opts.Guard,
		Callbacks: ask.Callbacks{Elicit: c.questions.elicit, Refused: c.questions.declined},
		Logging:   mcpclient.Logging{LogLevel: c.deps.LogLevel},
	}
	o.Exchange = c.exchange(server.Name)
	o.Keep = c.keep(server)
	if c.set.StartsOutside(server) {
		o.Folder = c.deps.Folders.Neutral
	} else {
		o.Extra = []string{c.bytecode()}
	}
	if c.deps.ServerLog != nil {
		o.OnLog = c.deps.ServerLog()
	}
	if other, ok := c.deps.Asker.(Sampler); ok {
		o.Sample = other.Sample
	} else if c.set.Sampling.Command.IsSet() {
		o.Sample = (&samplingCommand{run: c.run, gate: c.gate, questions: c.questions, server: server}).Answer
	}
	if c.set.Globals.ConnectSet {
		o.ConnectTimeout = c.set.Globals.ConnectTimeout
	}
	return o
}

// Logins returns the store of logins. It opens the folder now, because servers connect
// concurrently.
func (c *Connections) Logins() *oauth.Store {
	dir, err := c.deps.Folders.State()
	return c.logins(func() (*state.Dir, error) { return dir, err })
}

// OAuthClient returns a client for an expanded server. It reads nothing until
// it is used.
func (c *Connections) OAuthClient(server settings.Server, logins *oauth.Store) *oauth.Client {
	return oauth.New(server, logins, func(err error) {
		c.warn("login_unkept", registry.MCPPrefix+server.Name, err.Error(), "")
	})
}

// CachedOffers returns the prompts or the resources of a server that an earlier run
// cached; kind is [mcpclient.OfferPrompts] or [mcpclient.OfferResources]. It starts
// nothing.
func (c *Connections) CachedOffers(ctx context.Context, server, kind string) []mcpclient.Offer {
	for _, known := range c.set.Servers {
		if known.Name == server && !known.Disabled && known.Excluded == nil {
			cached, _ := c.cached.OfServer(known).Load(ctx) // an error means that the server must not be queried
			return cached.Offers[kind]
		}
	}
	return nil
}

// Forget removes the record of a server or API from the cache, because another login may see
// other tools, and the sessions with it that outlast a run, which belong to the old login.
func (c *Connections) Forget(ctx context.Context, name string) {
	var err error
	for _, api := range c.set.APIs {
		if api.Name == name {
			err = c.cached.OfAPI(api).Forget(ctx)
		}
	}
	for _, server := range c.set.Servers {
		if server.Name == name {
			c.forgetSessions(ctx, server)
			err = c.cached.OfServer(server).Forget(ctx)
		}
	}
	if err != nil {
		c.deps.Log.Debug("dropping the cached listing failed", "server", name, "err", err)
	}
}
