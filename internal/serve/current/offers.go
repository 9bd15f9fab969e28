// Package current keeps the offers in use: the one for all clients, and those for single clients
// whose logins reach some of the servers.
//
// An offer is replaced when the settings change, when a server reports a change to its lists, or
// when a failed server is reached again. A replaced session of the engine stays open for the
// requests that use it. The package answers no requests, and does not know how clients are
// notified.
package current

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/timing"
)

// Options configure [Offers]. All are required.
type Options struct {
	// Whole is what clients without a profile are offered.
	Whole offer.Profile
	// Profiles returns the profiles of a session.
	Profiles func(*engine.Session) offer.Profiles
	// Initial are the profiles before the first Load.
	Initial offer.Profiles
	// Idle returns how long a server, or the offer for a client, may be unused. Zero means no limit.
	Idle func() time.Duration
	// LogIn runs the tool with which the user of a client logs in to a server.
	LogIn func(context.Context, *mcpclient.Source) (registry.Result, error)
	// Subscriptions are the clients' subscriptions.
	Subscriptions Subscriptions
	// Updated is called when a server has reported a change of a resource.
	Updated func(ctx context.Context, server *mcpclient.Source, uri string)
	// Changed is called when the offer for some clients may have changed. first is set for the
	// first offer, which needs no notification: requests have waited for it.
	Changed func(ctx context.Context, first bool)
	// Log receives errors of servers that failed again.
	Log *slog.Logger
	// Warn receives problems that do not stop the server.
	Warn func(registry.Diagnostic)
}

// Subscriptions are clients' subscriptions to resources of servers.
type Subscriptions interface {
	// Renew subscribes at the servers of a new offer to what clients have subscribed to, before the
	// offer is in use. The servers of the earlier offer report until then.
	Renew(context.Context, *offer.Offer)
	// Servers returns the servers of an offer with subscriptions, some more than once.
	Servers(*offer.Offer) []*mcpclient.Source
	// OfClient reports whether a client has subscriptions at servers that are reached with its
	// logins.
	OfClient(name string) bool
}

// Offers are the offers in use. They are safe for concurrent use. Create them with [New].
type Offers struct {
	opts  Options
	ready chan struct{} // closed when common is set
	// life is the context of the first Load. It is stored because what a request begins may be used
	// by others, and so must end with the server and not with the request. It is set before ready
	// is closed.
	life context.Context

	loading    sync.Mutex     // one offer is made at a time
	changes    *changes       // that servers have reported
	background sync.WaitGroup // work between requests, and sessions being closed

	mu     sync.Mutex
	common *common
	failed error // error of Load if there is no offer
}

// common is the offer for all clients, with the offers for clients that have their own. Offers.mu
// guards clients.
type common struct {
	*offer.Offer
	clients map[string]*client
}

// New returns offers that are empty until [Offers.Load] has returned.
func New(opts Options) *Offers {
	return &Offers{opts: opts, ready: make(chan struct{}), changes: &changes{
		wake: make(chan struct{}, 1), servers: map[registry.Source]bool{}, uris: map[changedResource]bool{},
	}}
}

// Load runs the sources of a session and offers their tools in place of those of an earlier
// session, which is closed after its last request. The last session is not closed. Requests wait
// until the first Load is done; servers are watched and retried until the ctx of that Load is done.
// The session's Asker must be [question.Asker]. If the rules are invalid or ctx is canceled, Load
// returns the error and the earlier offer stays.
func (o *Offers) Load(ctx context.Context, from *engine.Session) error {
	o.loading.Lock()
	defer o.loading.Unlock()
	o.changes.follow(from.Servers.On())
	next, err := o.loadOffer(ctx, from)
	o.mu.Lock()
	old, isFirst := o.common, o.life == nil
	if isFirst {
		o.life = ctx
		defer close(o.ready)
		go o.followChanges(ctx)
	}
	if err != nil {
		o.failed = err
		o.mu.Unlock()
		return err
	}
	o.common = next
	from.TakeOver()
	if old != nil {
		old.Session.WhenUnused(func() { o.background.Go(old.Session.Close) })
	}
	o.mu.Unlock()
	o.opts.Changed(ctx, old == nil)
	return nil
}

// begin runs f in the background, with a context that ends with the server.
func (o *Offers) begin(f func(context.Context)) { o.background.Go(func() { f(o.life) }) }

// Wait waits for background work, and until replaced sessions are closed.
func (o *Offers) Wait() { o.background.Wait() }

// Profiles returns the profiles that clients can use now.
func (o *Offers) Profiles() offer.Profiles {
	if now := o.Common(); now != nil {
		return now.Profiles
	}
	return o.opts.Initial
}

// loadOffer makes the offer of a session, and the offers of clients that have their own. For a
// session that was loaded before, again are the sources to query again; the others keep what they
// listed.
func (o *Offers) loadOffer(ctx context.Context, from *engine.Session, again ...registry.Source) (*common, error) {
	o.mu.Lock()
	now := o.common
	o.mu.Unlock()
	if now == nil {
		now = &common{}
	}
	made, err := o.makeOffer(ctx, from, nil, now.Offer, again)
	if err != nil {
		return nil, err
	}
	next := &common{Offer: made, clients: map[string]*client{}}
	if !from.HasClients() {
		return next, nil
	}
	o.mu.Lock()
	own := maps.Clone(now.clients)
	o.mu.Unlock()
	var loading sync.WaitGroup
	for name, c := range own {
		c = c.next()
		next.clients[name] = c
		loading.Go(func() { o.loadClient(ctx, next, now, name, c, again) })
	}
	loading.Wait()
	return next, nil
}

// changePause is the minimum time between two checks for changes, so that a server that
// reports changes all the time costs little.
const changePause = 500 * time.Millisecond

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
		if timing.Pause(ctx, changePause) != nil {
			return
		}
	}
}

// refresh queries servers and APIs again and updates the offers. A server that fails keeps what it
// listed before.
func (o *Offers) refresh(ctx context.Context, sources []registry.Source) {
	o.loading.Lock()
	defer o.loading.Unlock()
	o.mu.Lock()
	now := o.common
	o.mu.Unlock()
	if now == nil {
		return
	}
	// The others are clients' own, or belong to a replaced session.
	own := slices.DeleteFunc(slices.Clone(sources), now.Servers.Has)
	sources = slices.DeleteFunc(sources, func(source registry.Source) bool { return !now.Servers.Has(source) })
	if len(own) > 0 {
		o.refreshClients(ctx, now, own)
	}
	if len(sources) == 0 {
		return
	}
	failed := now.Session.Relist(ctx, sources...)
	next, err := o.loadOffer(ctx, now.Session, sources...)
	switch {
	case ctx.Err() != nil:
		return
	case failed == nil:
		failed = err
	}
	if failed != nil {
		o.opts.Warn(registry.Warning("change_unread", "",
			"a server that changed or was started again cannot list its tools; its earlier tools stay: "+failed.Error(), ""))
	}
	if err == nil {
		o.mu.Lock()
		o.common = next
		o.mu.Unlock()
		o.opts.Changed(ctx, false)
	}
}

// makeOffer makes the offer of a session for the client of ctx, or for all, to replace before. base
// is the offer for all, if there is a client.
func (o *Offers) makeOffer(ctx context.Context, from *engine.Session, base, before *offer.Offer,
	again []registry.Source) (*offer.Offer, error) {
	made, err := offer.New(ctx, offer.Options{
		Session: from, Whole: o.opts.Whole, Profiles: o.opts.Profiles(from),
		Base: base, Before: before, Again: again, LogIn: o.opts.LogIn, Warn: o.opts.Warn,
	})
	if err != nil {
		return nil, err
	}
	o.opts.Subscriptions.Renew(ctx, made)
	return made, nil
}

// Current calls f with the session and the registry whose tools are offered. They stay valid
// until f returns.
func (o *Offers) Current(f func(*engine.Session, *registry.Registry) error) error {
	if o.Common() == nil {
		return errors.New("the tools are not loaded yet")
	}
	base, release := o.hold()
	defer release()
	return f(base.Session, base.Registry)
}

// Offered returns what the caller of ctx is offered now. The first request waits for it.
func (o *Offers) Offered(ctx context.Context) (*offer.View, error) {
	select {
	case <-o.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	o.mu.Lock()
	base, failed := o.common, o.failed
	o.mu.Unlock()
	if base == nil {
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: "the tools could not be loaded: " + failed.Error(),
		}
	}
	own, done := o.forCaller(ctx, base)
	done()
	return o.ViewOf(ctx, own), nil
}

// Use returns what the caller of ctx is offered now; [Offers.Offered] must have returned before.
// The session stays open until done is called, at the end of the request.
func (o *Offers) Use(ctx context.Context) (v *offer.View, done func()) {
	base, release := o.hold()
	own, over := o.forCaller(ctx, base)
	return o.ViewOf(ctx, own), func() { over(); release() }
}

// hold returns the current offer for all, whose session stays open until release is called.
func (o *Offers) hold() (base *common, release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.common, o.common.Session.Borrow()
}

// ViewOf returns the view of an offer for the caller of ctx.
func (o *Offers) ViewOf(ctx context.Context, of *offer.Offer) *offer.View {
	v := o.View(of, caller.Profile(ctx))
	if question.From(ctx).ShowsApps() {
		return v.WithApps()
	}
	return v
}

// View returns the view of an offer for the clients of a profile.
func (o *Offers) View(of *offer.Offer, profile string) *offer.View { return of.View(o.life, profile) }

// Common returns the current offer for all. It returns nil if there is none yet.
func (o *Offers) Common() *offer.Offer { return o.For("") }

// For returns the current offer for a client; nil if there is none yet. The client's next request
// makes it.
func (o *Offers) For(name string) *offer.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.common == nil:
		return nil
	case name == "" || !o.common.Session.HasClients():
		return o.common.Offer
	}
	if own := o.common.clients[name]; own != nil {
		return own.offer
	}
	return nil
}

// All returns the current offer for all, and those for clients.
func (o *Offers) All() []*offer.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.common == nil {
		return nil
	}
	out := []*offer.Offer{o.common.Offer}
	for _, c := range o.common.clients {
		if c.offer != nil {
			out = append(out, c.offer)
		}
	}
	return out
}

// CloseUnused closes unused sessions with servers, and ends what belongs to clients that have been
// away for long. gone reports whether the owner of a process, [caller.Caller].ID, is gone.
func (o *Offers) CloseUnused(gone func(owner any) bool) {
	idle := o.opts.Idle()
	for _, one := range o.All() {
		servers := one.OwnServers()
		if one.Client == "" {
			servers = one.Servers.On()
		}
		for _, server := range servers {
			server.CloseIdle(idle, gone)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.common == nil || idle <= 0 {
		return
	}
	for name, c := range o.common.clients {
		if c.requests == 0 && c.offer != nil && time.Since(c.last) > idle && !o.opts.Subscriptions.OfClient(name) {
			delete(o.common.clients, name)
			session := o.common.Session
			o.background.Go(func() { session.Forget(name) })
		}
	}
}
