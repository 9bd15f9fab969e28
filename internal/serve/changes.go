package serve

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
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
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
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
		pause.Reset(changePause)
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
	own := slices.DeleteFunc(slices.Clone(sources), current.servers.Has) // or they belong to a session that was replaced
	sources = slices.DeleteFunc(sources, func(source registry.Source) bool { return !current.servers.Has(source) })
	if len(own) > 0 {
		s.refreshClients(ctx, current, own)
	}
	if len(sources) == 0 {
		return
	}
	failed := current.session.Relist(ctx, sources...)
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
		s.opts.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "change_unread", Message: "a server reported a change but could not list its tools; its earlier tools stay: " + failed.Error()})
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.put(o)
	}
}
