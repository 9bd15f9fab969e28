package serve

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
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
func (s *Server) followChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changes.wake:
		}
		servers, uris := s.changes.take()
		for _, uri := range uris {
			s.resourceChanged(ctx, uri)
		}
		if len(servers) > 0 {
			s.refresh(ctx, servers)
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
func (s *Server) refresh(ctx context.Context, sources []registry.Source) {
	s.loading.Lock()
	defer s.loading.Unlock()
	s.mu.Lock()
	current := s.offer
	s.mu.Unlock()
	if current == nil {
		return
	}
	// The others are those of clients, or belong to a session that was replaced.
	own := slices.DeleteFunc(slices.Clone(sources), current.Servers.Has)
	sources = slices.DeleteFunc(sources, func(source registry.Source) bool { return !current.Servers.Has(source) })
	if len(own) > 0 {
		s.refreshClients(ctx, current, own)
	}
	if len(sources) == 0 {
		return
	}
	failed := current.Session.Relist(ctx, sources...)
	var servers []*mcpclient.Source
	for _, source := range sources {
		if server, ok := source.(*mcpclient.Source); ok {
			servers = append(servers, server)
		}
	}
	o, err := s.load(ctx, current.held, servers...)
	switch {
	case ctx.Err() != nil:
		return
	case failed == nil:
		failed = err
	}
	if failed != nil {
		s.opts.Warn(registry.Diagnostic{
			Severity: registry.SeverityWarning, Code: "change_unread",
			Message: "a server reported a change but could not list its tools; its earlier tools stay: " + failed.Error(),
		})
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.put(o)
	}
}

// knownLists is what sessions know of the lists that they are offered, so that they are not told of
// changes of what only others are offered. The zero value knows of no session, and then tells all.
// It is safe for concurrent use.
type knownLists struct {
	mu        sync.Mutex
	bySession map[*mcp.ServerSession]*listener
}

// listChanged is the end of the methods of notifications about lists.
const listChanged = "/list_changed"

// listener is a session that is told of changes.
type listener struct {
	client, profile string
	who             *caller.Caller
	lists           map[string]offer.Digest // that it knows, by kind: tools, prompts or resources
}

// listenerOf returns what the caller of ctx knows in a session, in which it hears of changes.
func (k *knownLists) listenerOf(ctx context.Context, session *mcp.ServerSession) *listener {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bySession == nil {
		k.bySession = map[*mcp.ServerSession]*listener{}
	}
	if k.bySession[session] == nil {
		k.bySession[session] = &listener{
			client: caller.Token(ctx), profile: caller.Profile(ctx), who: caller.From(ctx),
			lists: map[string]offer.Digest{},
		}
	}
	return k.bySession[session]
}

// forget forgets sessions that have ended.
func (k *knownLists) forget(ended func(*mcp.ServerSession) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for session := range k.bySession {
		if ended(session) {
			delete(k.bySession, session)
		}
	}
}

func (k *knownLists) of(session *mcp.ServerSession) *listener {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bySession[session]
}

// all returns all listeners.
func (k *knownLists) all() []*listener {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.bySession))
}

// knows returns what a session knows of a kind of list. It reports false if that is nothing.
func (k *knownLists) knows(who *listener, kind string) (offer.Digest, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := who.lists[kind]
	return d, ok
}

// tell records what a session is offered of a kind of list, and reports whether it has to be told.
func (k *knownLists) tell(to *listener, kind string, now offer.Digest) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, known := to.lists[kind]
	to.lists[kind] = now
	return !known || before != now
}

// listKinds are the kinds of lists of whose changes clients are told.
func listKinds() []string { return []string{"tools", "prompts", "resources"} }

// noteLists records what a session is offered when it begins to use it. From then on it hears of
// changes.
func (s *Server) noteLists(to *listener, o *offer.Offer) {
	for _, kind := range listKinds() {
		if _, known := s.known.knows(to, kind); !known {
			s.known.tell(to, kind, o.View(to.profile).Digest(to.who, kind))
		}
	}
}

// isNews reports whether a notification that a list has changed is news for a session.
func (s *Server) isNews(method string, session *mcp.ServerSession) bool {
	to := s.known.of(session)
	if to == nil {
		return true
	}
	s.mu.Lock()
	o := s.offerTo(to.client)
	s.mu.Unlock()
	if o == nil {
		return false
	}
	kind := strings.TrimSuffix(strings.TrimPrefix(method, "notifications/"), listChanged)
	return s.known.tell(to, kind, o.View(to.profile).Digest(to.who, kind))
}

// offerTo returns what a client is offered. It returns nil if there is nothing yet, because its next request
// makes it. s.mu is held.
func (s *Server) offerTo(client string) *offer.Offer {
	switch {
	case s.offer == nil:
		return nil
	case client == "" || !s.offer.Session.HasClients():
		return s.offer.Offer
	}
	if own := s.offer.clients[client]; own != nil {
		return own.offer
	}
	return nil
}

// announce lets the SDK tell clients of lists that are others than they know. Nobody has to be told of the
// first offer, for which requests have waited. s.mu is held.
func (s *Server) announce(first bool) {
	news := map[string]bool{}
	for _, to := range s.known.all() {
		o := s.offerTo(to.client)
		if o == nil {
			continue
		}
		for _, kind := range listKinds() {
			now := o.View(to.profile).Digest(to.who, kind)
			if first {
				s.known.tell(to, kind, now)
			} else if before, known := s.known.knows(to, kind); !known || before != now {
				news[kind] = true
			}
		}
	}
	for kind := range news {
		s.poke(kind)
	}
}
