package serve

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/text"
)

// commonOffer is the offer for all clients, with those for clients that have one of their own because some
// servers are reached with their logins. Server.mu guards clients.
type commonOffer struct {
	*offer.Offer
	held    *held
	clients map[string]*clientOffer
}

// held is a session and the number of requests that use it, of several offers if what its servers list has
// changed. Server.mu guards users and replaced. After the session was replaced, it is closed when no request
// uses it.
type held struct {
	session  *engine.Session
	users    int
	replaced bool
}

// Load runs the sources of a session and offers their tools instead of those of an
// earlier session, which is closed after its last request. The server closes no other
// session. Requests wait until the first Load is done. The session's Asker must be
// [question.Asker]. If the rules are invalid or ctx is canceled, Load returns the error, and the
// earlier offer stays.
func (s *Server) Load(ctx context.Context, from *engine.Session) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	servers, _, _ := from.Servers.Named() // without a name there is no error
	s.changes.follow(servers)
	o, err := s.load(ctx, &held{session: from})
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.offer
	if first := s.life == nil; first {
		s.life = ctx
		defer close(s.ready)
		go s.reapUnused(ctx)
		go s.followChanges(ctx)
	}
	if err != nil {
		s.failed = err
		return err
	}
	s.put(o)
	from.TakeOver()
	if old != nil {
		old.held.replaced = true
		s.closeUnused(old.held)
	}
	return nil
}

// put makes an offer the current one. s.mu is held.
func (s *Server) put(o *commonOffer) {
	first := s.offer == nil
	s.offer, s.profiles = o, o.Profiles
	s.announce(first)
}

// load makes the offer of a session, and the offers of the clients that have one of their own. For
// a session that was loaded before, again are the servers to ask again; what the others listed
// stays.
func (s *Server) load(ctx context.Context, h *held, again ...*mcpclient.Source) (*commonOffer, error) {
	s.mu.Lock()
	now := s.offer
	s.mu.Unlock()
	if now == nil {
		now = &commonOffer{}
	}
	made, err := s.loadFor(ctx, h.session, nil, now.Offer, again)
	if err != nil {
		return nil, err
	}
	o := &commonOffer{Offer: made, held: h, clients: map[string]*clientOffer{}}
	if !h.session.HasClients() {
		return o, nil
	}
	s.mu.Lock()
	own := maps.Clone(now.clients)
	s.mu.Unlock()
	var loading sync.WaitGroup
	for client, c := range own {
		c = c.next()
		o.clients[client] = c
		loading.Go(func() { s.loadClient(ctx, o, now, client, c, again) })
	}
	loading.Wait()
	return o, nil
}

// loadFor makes the offer of a session for the client of ctx, or for all, in place of another one. base is
// the one for all, if there is a client.
func (s *Server) loadFor(ctx context.Context, from *engine.Session, base, before *offer.Offer,
	again []*mcpclient.Source) (*offer.Offer, error) {
	o, err := offer.New(ctx, offer.Options{
		Session: from, Whole: s.opts.Whole, Profiles: s.opts.Profiles(from),
		Base: base, Before: before, Again: again, LogIn: s.callLogin, Warn: s.opts.Warn,
	})
	if err != nil {
		return nil, err
	}
	s.subscriptions.renew(ctx, o, s.opts.Warn)
	return o, nil
}

// closeUnused closes a session that was replaced and has no running requests. s.mu
// is held.
func (s *Server) closeUnused(h *held) {
	if h.replaced && h.users == 0 {
		s.closing.Go(h.session.Close)
	}
}

// Current calls f with the session and the registry whose tools are offered. They stay valid
// until f returns.
func (s *Server) Current(f func(*engine.Session, *registry.Registry) error) error {
	s.mu.Lock()
	loaded := s.offer != nil
	s.mu.Unlock()
	if !loaded {
		return errors.New("the tools are not loaded yet")
	}
	o, release := s.hold()
	defer release()
	return f(o.Session, o.Registry)
}

// offered returns what the caller of ctx is offered now. The first request waits for it.
func (s *Server) offered(ctx context.Context) (*offer.View, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	base, failed := s.offer, s.failed
	s.mu.Unlock()
	if base == nil {
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: "the tools could not be loaded: " + failed.Error(),
		}
	}
	o, done := s.forCaller(ctx, base)
	done()
	return s.viewOf(ctx, o), nil
}

// use returns what the caller of ctx is offered now. The session stays open until done is called, at the
// end of the request.
func (s *Server) use(ctx context.Context) (v *offer.View, done func()) {
	base, release := s.hold()
	o, over := s.forCaller(ctx, base)
	return s.viewOf(ctx, o), func() { over(); release() }
}

// hold returns the current offer for all, whose session stays open until release is called.
func (s *Server) hold() (o *commonOffer, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = s.offer
	o.held.users++
	return o, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		o.held.users--
		s.closeUnused(o.held)
	}
}

// viewOf returns what the caller of ctx is offered of an offer.
func (s *Server) viewOf(ctx context.Context, o *offer.Offer) *offer.View {
	v := o.View(caller.Profile(ctx))
	if question.From(ctx).ShowsApps() {
		return v.WithApps()
	}
	return v
}

// clientOffer is the offer for one client, because some servers are reached with its logins.
// Server.mu guards it.
type clientOffer struct {
	made  chan struct{} // closed when offer is set
	offer *offer.Offer
	*clientUse
}

// clientUse says whether a client is there.
type clientUse struct {
	requests int       // that are running
	last     time.Time // when the last one ended
}

// next returns the one that replaces it.
func (c *clientOffer) next() *clientOffer {
	return &clientOffer{made: make(chan struct{}), clientUse: c.clientUse}
}

// forCaller returns the offer for the caller of ctx, which is made when it is first needed. base is
// the one for all, whose session is in use until done is called.
func (s *Server) forCaller(ctx context.Context, base *commonOffer) (o *offer.Offer, done func()) {
	client := caller.Token(ctx)
	if client == "" || !base.Session.HasClients() {
		return base.Offer, func() {}
	}
	s.mu.Lock()
	own := base.clients[client]
	if own == nil {
		own = (&clientOffer{clientUse: &clientUse{}}).next()
		base.clients[client] = own
		base.held.users++
		s.closing.Go(func() {
			s.loadClient(s.life, base, base, client, own, nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			base.held.users--
			s.closeUnused(base.held)
		})
	}
	own.requests++
	s.mu.Unlock()
	done = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
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

// loadClient makes the offer for a client. If that fails, it is offered what all are. now is the
// current offer for all.
func (s *Server) loadClient(ctx context.Context, base, now *commonOffer, client string, c *clientOffer,
	again []*mcpclient.Source) {
	var before *offer.Offer
	s.mu.Lock()
	if was := now.clients[client]; was != nil {
		before = was.offer
	}
	s.mu.Unlock()
	ctx = caller.With(ctx, &caller.Caller{Name: client, Token: client})
	s.changes.follow(offer.OwnOf(base.Session.ServersFor(ctx)))
	o, err := s.loadFor(ctx, base.Session, base.Offer, before, again)
	if err != nil {
		s.opts.Warn(registry.Diagnostic{
			Severity: registry.SeverityWarning, Code: "client_unread",
			Message: "client " + text.Quote(client) + " is not offered its own servers: " + err.Error(),
		})
		o = base.Offer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && base.clients[client] == c {
		delete(base.clients, client) // the next request tries again
	}
	c.offer = o
	if s.offer == base && base.clients[client] == c {
		s.announce(false)
	}
	close(c.made)
}

// offers returns the current offer for all, and those for clients.
func (s *Server) offers() []*offer.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offer == nil {
		return nil
	}
	out := []*offer.Offer{s.offer.Offer}
	for _, c := range s.offer.clients {
		if c.offer != nil {
			out = append(out, c.offer)
		}
	}
	return out
}

// connected returns the servers of the current offers.
func (s *Server) connected() (out []*mcpclient.Source) {
	for _, o := range s.offers() {
		own := o.OwnServers()
		if o.Client == "" {
			own, _, _ = o.Servers.Named() // without a name there is no error
		}
		out = append(out, own...)
	}
	return out
}

// forgetUnused ends what belongs to clients that have been away for long.
func (s *Server) forgetUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offer == nil || s.limits().Idle <= 0 {
		return
	}
	for client, c := range s.offer.clients {
		if c.requests == 0 && c.offer != nil && time.Since(c.last) > s.limits().Idle && !s.subscriptions.ofClient(client) {
			delete(s.offer.clients, client)
			session := s.offer.Session
			s.closing.Go(func() { session.Forget(client) })
		}
	}
}

// refreshClients asks servers that are reached with logins of clients again what they offer, and
// tells clients that it may have changed.
func (s *Server) refreshClients(ctx context.Context, current *commonOffer, sources []registry.Source) {
	s.mu.Lock()
	own := map[string]*clientOffer{}
	for client, c := range current.clients {
		if c.offer != nil && slices.ContainsFunc(sources, c.offer.Servers.Has) {
			own[client] = c
		}
	}
	s.mu.Unlock()
	for client, c := range own {
		var servers []*mcpclient.Source
		var again []registry.Source // the same
		for _, server := range c.offer.OwnServers() {
			if slices.Contains(sources, registry.Source(server)) {
				servers, again = append(servers, server), append(again, server)
			}
		}
		if err := current.Session.Relist(ctx, again...); err != nil {
			s.opts.Log.Debug("a server of a client could not list its tools; its earlier tools stay",
				"client", client, "error", err)
		}
		next := c.next()
		s.loadClient(ctx, current, current, client, next, servers)
		s.mu.Lock()
		if s.offer == current && current.clients[client] == c {
			current.clients[client] = next
			s.announce(false)
		}
		s.mu.Unlock()
	}
}

// poke lets the SDK tell clients that a kind of list has changed: something is added and removed
// at once. s.mu is held.
func (s *Server) poke(kind string) {
	const none = "toolreg.none"
	switch kind {
	case "tools":
		s.sdk.AddTool(&mcp.Tool{Name: none, InputSchema: json.RawMessage(`{"type":"object"}`)}, s.callAny)
		s.sdk.RemoveTools(none)
	case "prompts":
		s.sdk.AddPrompt(&mcp.Prompt{Name: none}, s.getPrompt)
		s.sdk.RemovePrompts(none)
	case "resources":
		s.sdk.AddResource(&mcp.Resource{Name: none, URI: "toolreg:none"}, s.readResource)
		s.sdk.RemoveResources("toolreg:none")
	}
}
