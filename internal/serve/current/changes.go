package current

import (
	"maps"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// maxChanged limits how many changed resources are remembered at once.
const maxChanged = 1000

// changes collects what servers have reported since it was last read. It is safe for
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
