package current

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
)

const (
	// changePause is the minimum time between two checks for changes, so that a server that
	// reports changes all the time costs little.
	changePause = 500 * time.Millisecond
	// maxChanged limits how many changed resources are remembered at once.
	maxChanged = 1000
)

// changes collects what servers have reported since it was last read. It is safe for
// concurrent use.
type changes struct {
	wake chan struct{}

	mu      sync.Mutex
	servers map[registry.Source]bool // with a changed list
	uris    map[changedResource]bool
}

// changedResource is a resource that a server has reported to be changed.
type changedResource struct {
	server *mcpclient.Source
	uri    string
}

func newChanges() *changes {
	return &changes{wake: make(chan struct{}, 1), servers: map[registry.Source]bool{}, uris: map[changedResource]bool{}}
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

// follow collects what servers report.
func (c *changes) follow(servers []*mcpclient.Source) {
	for _, server := range servers {
		server.Follow(func(what mcpclient.Change) { c.add(server, what) })
	}
}

// followChanges updates the offer when servers report changes, until ctx is done.
func (o *Offers) followChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.changes.wake:
		}
		servers, uris := o.changes.take()
		for _, what := range uris {
			o.opts.Updated(ctx, what.server, what.uri)
		}
		if len(servers) > 0 {
			o.refresh(ctx, servers)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(changePause):
		}
	}
}

// refresh asks servers and APIs again what they offer and updates the offer to clients. A server
// that fails keeps what it listed before.
func (o *Offers) refresh(ctx context.Context, sources []registry.Source) {
	o.loading.Lock()
	defer o.loading.Unlock()
	o.mu.Lock()
	now := o.common
	o.mu.Unlock()
	if now == nil {
		return
	}
	// The others are those of clients, or belong to a session that was replaced.
	own := slices.DeleteFunc(slices.Clone(sources), now.Servers.Has)
	sources = slices.DeleteFunc(sources, func(source registry.Source) bool { return !now.Servers.Has(source) })
	if len(own) > 0 {
		o.refreshClients(ctx, now, own)
	}
	if len(sources) == 0 {
		return
	}
	failed := now.Session.Relist(ctx, sources...)
	var servers []*mcpclient.Source
	for _, source := range sources {
		if server, ok := source.(*mcpclient.Source); ok {
			servers = append(servers, server)
		}
	}
	next, err := o.load(ctx, now.held, servers...)
	switch {
	case ctx.Err() != nil:
		return
	case failed == nil:
		failed = err
	}
	if failed != nil {
		o.opts.Warn(registry.Diagnostic{
			Severity: registry.SeverityWarning, Code: "change_unread",
			Message: "a server reported a change but could not list its tools; its earlier tools stay: " +
				failed.Error(),
		})
	}
	if err == nil {
		o.mu.Lock()
		o.common = next
		o.mu.Unlock()
		o.opts.Changed(ctx, false)
	}
}

// retry is an attempt to start or reach a server again.
type retry struct {
	over chan struct{} // closed at its end
	err  error         // set before
}

// RetryFailed tries again to start or reach servers of an offer that could not list their tools, and
// servers that have ended while clients wait for changes of their resources. Each request
// of a client triggers it. There is no timer, which would start a broken program every 30
// seconds even if no client is active. Documents of APIs are asked for again in the same way,
// also if nothing failed, because an API reports no changes.
func (o *Offers) RetryFailed(of *offer.Offer) {
	for _, source := range of.Failed {
		if server, ok := source.(*mcpclient.Source); ok && !server.Paused() {
			o.retry(server)
		}
	}
	for _, api := range of.Servers.APIs() {
		if api.Due() {
			o.retry(api)
		}
	}
	for _, server := range o.opts.Subscriptions.Servers(of) {
		if server.Lost() && !server.Paused() {
			o.retry(server)
		}
	}
}

// retry tries a server or an API again, unless an attempt is already in progress, and offers
// what it lists.
func (o *Offers) retry(source registry.Source) *retry { return o.attempt(source, again) }

// attempt is retry with another way to connect.
func (o *Offers) attempt(source registry.Source,
	connect func(context.Context, registry.Source) (changed bool, err error)) *retry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.retrying[source]; r != nil {
		return r
	}
	r := &retry{over: make(chan struct{})}
	o.retrying[source] = r
	o.background.Go(func() {
		defer close(r.over)
		var changed bool
		if changed, r.err = connect(o.life, source); r.err != nil {
			o.opts.Log.Debug("a server failed again", "server", source.Name(), "error", r.err)
			lacksLogin := func(of *offer.Offer) bool { return of.LacksLogin(source) }
			// it failed for another reason before
			if errors.Is(r.err, registry.ErrNeedsLogin) && slices.ContainsFunc(o.All(), lacksLogin) {
				o.refresh(o.life, []registry.Source{source})
			}
		} else if changed {
			o.refresh(o.life, []registry.Source{source})
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.retrying, source)
	})
	return r
}

// again connects to a server or reads the document of an API, and reports whether there may
// be other tools.
func again(ctx context.Context, source registry.Source) (changed bool, err error) {
	switch source := source.(type) {
	case *openapi.Source:
		return source.Again(ctx)
	case *mcpclient.Source:
		return true, source.Retry(ctx)
	}
	return false, nil
}

// Resolve is [offer.View.ResolveTool] for a tool whose server may have to be tried again first. It returns
// what has the tool, or the server's error if it fails again.
func (o *Offers) Resolve(ctx context.Context, v *offer.View, call *mcp.CallToolParamsRaw) (*offer.View, error) {
	ctx = v.Context(ctx)
	err := v.ResolveTool(ctx, call)
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
	r := o.retry(server)
	select {
	case <-r.over:
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
	if r.err != nil {
		return v, v.LoginFirst(server, r.err)
	}
	if v, err = o.Offered(ctx); err != nil {
		return v, err
	}
	return v, v.ResolveTool(ctx, call)
}

// Restart ends the processes of a server, or the sessions with it, and starts it again, even if it
// is kept between runs. Its tools are offered anew.
func (o *Offers) Restart(ctx context.Context, name string) error {
	return o.Current(func(session *engine.Session, _ *registry.Registry) error {
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
			o.refresh(o.life, []registry.Source{server})
		}
		return nil
	})
}

// Reconnect connects to a server with a new login of a client, and offers what it lists. It returns when that
// is over, or ctx is done.
func (o *Offers) Reconnect(ctx context.Context, server *mcpclient.Source) {
	r := o.attempt(server,
		func(ctx context.Context, _ registry.Source) (bool, error) { return true, server.Restart(ctx) })
	select {
	case <-r.over:
	case <-ctx.Done():
	}
}

// WithLogins returns what the caller of ctx is offered after it has connected anew to servers to which the
// client has logged in or out since v was made, elsewhere.
func (o *Offers) WithLogins(ctx context.Context, v *offer.View) (*offer.View, error) {
	changed := v.ChangedLogins(ctx)
	if len(changed) == 0 {
		return v, nil
	}
	for _, server := range changed {
		o.Reconnect(ctx, server)
	}
	return o.Offered(ctx)
}
