package current

import (
	"context"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/text"
)

// client is the offer for one client, which differs from others if servers are reached with the
// client's logins. Offers.mu guards it.
type client struct {
	made  chan struct{} // closed when offer is set
	offer *offer.Offer
	*use
}

// use tracks whether a client is active.
type use struct {
	requests int       // that are running
	last     time.Time // when the last one ended
}

func (c *client) next() *client { return &client{made: make(chan struct{}), use: c.use} }

// forCaller returns the offer for the caller of ctx, and makes it when first needed. base is the
// offer for all; its session stays open until done is called.
func (o *Offers) forCaller(ctx context.Context, base *common) (_ *offer.Offer, done func()) {
	name := caller.Token(ctx)
	if name == "" || !base.Session.HasClients() {
		return base.Offer, func() {}
	}
	o.mu.Lock()
	own := base.clients[name]
	if own == nil {
		own = (&client{use: &use{}}).next()
		base.clients[name] = own
		release := base.Session.Borrow()
		o.begin(func(ctx context.Context) {
			defer release()
			o.loadClient(ctx, base, base, name, own, nil)
		})
	}
	own.requests++
	o.mu.Unlock()
	done = func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		own.requests--
		own.last = time.Now()
	}
	select {
	case <-own.made:
		return own.offer, done
	case <-ctx.Done(): // nobody waits for what the request gets
		return base.Offer, done
	}
}

// loadClient makes the offer for a client. If that fails, the client gets the offer for all. now is
// the current offer for all.
func (o *Offers) loadClient(ctx context.Context, base, now *common, name string, c *client,
	again []registry.Source) {
	var before *offer.Offer
	o.mu.Lock()
	if was := now.clients[name]; was != nil {
		before = was.offer
	}
	o.mu.Unlock()
	ctx = caller.With(ctx, &caller.Caller{Name: name, Token: name})
	o.changes.follow(offer.OwnOf(base.Session.ServersFor(ctx)))
	made, err := o.makeOffer(ctx, base.Session, base.Offer, before, again)
	if err != nil {
		o.opts.Warn(registry.Warning("client_unread", "",
			"client "+text.Quote(name)+" is not offered its own servers: "+err.Error(), ""))
		made = base.Offer
	}
	o.mu.Lock()
	if err != nil && base.clients[name] == c {
		delete(base.clients, name) // the next request tries again
	}
	c.offer = made
	inUse := o.common == base && base.clients[name] == c
	close(c.made)
	o.mu.Unlock()
	if inUse {
		o.opts.Changed(ctx, false)
	}
}

// refreshClients asks servers that are reached with clients' logins again for what they offer, and
// updates the clients' offers.
func (o *Offers) refreshClients(ctx context.Context, now *common, sources []registry.Source) {
	o.mu.Lock()
	own := map[string]*client{}
	for name, c := range now.clients {
		if c.offer != nil && slices.ContainsFunc(sources, c.offer.Servers.Has) {
			own[name] = c
		}
	}
	o.mu.Unlock()
	for name, c := range own {
		again := slices.DeleteFunc(slices.Clone(sources), func(s registry.Source) bool { return !c.offer.Servers.Has(s) })
		if err := now.Session.Relist(ctx, again...); err != nil {
			o.opts.Log.Debug("a server of a client could not list its tools; its earlier tools stay",
				"client", name, "error", err)
		}
		next := c.next()
		o.loadClient(ctx, now, now, name, next, again)
		o.mu.Lock()
		inUse := o.common == now && now.clients[name] == c
		if inUse {
			now.clients[name] = next
		}
		o.mu.Unlock()
		if inUse {
			o.opts.Changed(ctx, false)
		}
	}
}
