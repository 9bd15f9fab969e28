package current

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
)

// maxChanged limits how many changed resources are remembered at once.
const maxChanged = 1000

// changes collects what servers have reported since changes were last read. It is safe for
// concurrent use.
type changes struct {
	wake chan struct{}

	mu      sync.Mutex
	servers map[registry.Source]bool // with a changed list
	uris    map[changedResource]bool
}

type changedResource struct {
	server *mcpclient.Source
	uri    string
}

func (c *changes) add(server *mcpclient.Source, what mcpclient.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case what.List != "":
		c.servers[server] = true
	case len(c.uris) < maxChanged:
		c.uris[changedResource{server, what.URI}] = true
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *changes) take() (servers []registry.Source, uris []changedResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	servers, uris = slices.Collect(maps.Keys(c.servers)), slices.Collect(maps.Keys(c.uris))
	clear(c.servers)
	clear(c.uris)
	return servers, uris
}

func (c *changes) follow(servers []*mcpclient.Source) {
	for _, server := range servers {
		server.Follow(func(what mcpclient.Change) { c.add(server, what) })
	}
}

// Retries reconnects to servers and APIs that failed, and offers what they then list. Create them
// with [NewRetries]. They are safe for concurrent use.
type Retries struct {
	offers *Offers

	mu      sync.Mutex
	running map[registry.Source]*retry
}

// retry is an attempt to reach a server again.
type retry struct {
	over chan struct{} // closed at its end
	err  error         // set before
}

// NewRetries returns retries for the servers and APIs of offers.
func NewRetries(offers *Offers) *Retries {
	return &Retries{offers: offers, running: map[registry.Source]*retry{}}
}

// Offered is [Offers.Offered] for a request of a client. It reconnects to servers that the client
// has logged in to, or out of, elsewhere. In the background it retries servers that could not list
// their tools, and servers that have ended while clients wait for changes of their resources. There
// is no timer, which would start a broken program every 30 seconds even if no client is active.
// Documents of APIs are fetched again in the same way even if nothing failed, because an API
// reports no changes.
func (r *Retries) Offered(ctx context.Context) (*offer.View, error) {
	v, err := r.offers.Offered(ctx)
	if err != nil {
		return nil, err
	}
	if changed := v.ChangedLogins(ctx); len(changed) > 0 {
		for _, server := range changed {
			r.Reconnect(ctx, server)
		}
		if v, err = r.offers.Offered(ctx); err != nil {
			return nil, err
		}
	}
	for _, source := range v.Failed {
		if server, ok := source.(*mcpclient.Source); ok && !server.Paused() {
			r.begin(server, reconnect)
		}
	}
	for _, api := range v.Servers.APIs() {
		if api.Due() {
			r.begin(api, reconnect)
		}
	}
	for _, server := range r.offers.opts.Subscriptions.Servers(v.Offer) {
		if server.Lost() && !server.Paused() {
			r.begin(server, reconnect)
		}
	}
	return v, nil
}

// begin calls connect for a source, unless an attempt is in progress. connect reports whether the
// source may list different tools than before.
func (r *Retries) begin(source registry.Source,
	connect func(context.Context, registry.Source) (changed bool, err error)) *retry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.running[source]; one != nil {
		return one
	}
	one := &retry{over: make(chan struct{})}
	r.running[source] = one
	r.offers.begin(func(ctx context.Context) {
		defer close(one.over)
		var changed bool
		if changed, one.err = connect(ctx, source); one.err != nil {
			r.offers.opts.Log.Debug("a server failed again", "server", source.Name(), "error", one.err)
			lacksLogin := func(of *offer.Offer) bool { return of.LacksLogin(source) }
			// Otherwise the server was known to need a login, or failed for another reason.
			changed = errors.Is(one.err, registry.ErrNeedsLogin) && slices.ContainsFunc(r.offers.All(), lacksLogin)
		}
		if changed {
			r.offers.refresh(ctx, []registry.Source{source})
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, source)
	})
	return one
}

// wait waits until the attempt is over, or ctx is done.
func (r *retry) wait(ctx context.Context) error {
	select {
	case <-r.over:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reconnect connects to a server or reads the document of an API, and reports whether its tools may
// have changed.
func reconnect(ctx context.Context, source registry.Source) (changed bool, err error) {
	switch source := source.(type) {
	case *openapi.Source:
		return source.Again(ctx)
	case *mcpclient.Source:
		return true, source.Retry(ctx)
	}
	return false, nil
}

// Resolve is [offer.View.ResolveTool] for a tool whose server may have to be retried first. It
// returns the view that has the tool, or the server's error if it fails again.
func (r *Retries) Resolve(ctx context.Context, v *offer.View, call *mcp.CallToolParamsRaw) (*offer.View, error) {
	err := v.ResolveTool(v.Context(ctx), call)
	name := call.Name
	if v.LoginTool(name) != nil {
		return v, nil
	}
	if t := v.Tool(name); err == nil && t != nil {
		name = t.Inner(call.Arguments)
	} else if err == nil {
		name = "" // every call of it is denied
	}
	server := v.FailedServerOf(name)
	if server == nil {
		return v, err
	}
	if err := r.begin(server, reconnect).wait(ctx); err != nil {
		return v, v.LoginFirst(server, err)
	}
	if v, err = r.offers.Offered(ctx); err != nil {
		return v, err
	}
	return v, v.ResolveTool(v.Context(ctx), call)
}

// Restart ends the processes of a server, or the sessions with it, and starts it again, even if it
// is kept between runs. Then it offers the server's tools again.
func (r *Retries) Restart(ctx context.Context, name string) error {
	return r.offers.Current(func(session *engine.Session, _ *registry.Registry) error {
		servers, _, err := session.Servers.Named(name)
		if err != nil {
			return err
		}
		for _, server := range servers {
			if _, err := session.Connections.EndKept(ctx, server); err != nil {
				return err
			}
			if err := server.Restart(ctx); err != nil {
				return err
			}
			r.offers.refresh(r.offers.life, []registry.Source{server})
		}
		return nil
	})
}

// Reconnect connects to a server with a client's new login, and offers what the server lists. It
// returns when that is done, or ctx is done.
func (r *Retries) Reconnect(ctx context.Context, server *mcpclient.Source) {
	restart := func(ctx context.Context, _ registry.Source) (bool, error) { return true, server.Restart(ctx) }
	_ = r.begin(server, restart).wait(ctx) // the next call of one of its tools says why it failed
}
