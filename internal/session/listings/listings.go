// Package listings keeps between runs what sources answered: the listings of
// servers, the output of plugins and of the discovery command, how servers were
// reached, and how sources failed. A session hands its parts to the sources,
// which ask them before they start anything.
package listings

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// protocolAge is how long the protocol of a server is cached. It is detected
// again from time to time because servers are upgraded.
const protocolAge = 30 * 24 * time.Hour

// Options say what is cached, and where.
type Options struct {
	Settings *settings.Settings
	Expander *values.Expander
	Environ  []string // of the process, "K=V"
	Folders  *state.Folders
	Version  string // of this program
	Mode     cache.Mode
	Counts   bool // a listing without the numbers of prompts and resources is not enough
	Log      *slog.Logger
	Warn     func(registry.Diagnostic)
}

// Store has what earlier runs cached: listings of sources (setting
// cache.discovery), failures, and the protocols of servers. It is safe for
// concurrent use.
type Store struct {
	Sources *cache.Store // listings by source

	opts      Options
	offers    *cache.Store // prompts and resources, for completion
	protocols *cache.Store
	failures  *cache.Store
	still     *values.Expander // does not run commands
}

// New returns a store without opening any file.
func New(o Options) *Store {
	dir := func() (*state.Dir, error) { return o.Folders.Cache("discovery") }
	protocols := cache.Fresh
	if o.Mode == cache.Renew {
		protocols = cache.Renew
	}
	kept := cache.Options{Dir: dir, Kind: "source", TTL: o.Settings.DiscoveryTTL, Mode: o.Mode, Warn: o.Warn}
	offers := kept
	offers.Kind = "offers"
	return &Store{
		Sources:   cache.NewStore(kept),
		offers:    cache.NewStore(offers),
		protocols: cache.NewStore(cache.Options{Dir: dir, Kind: "protocol", TTL: protocolAge, Mode: protocols, Warn: o.damaged}),
		failures:  cache.NewStore(o.ofFailures(dir)),
		opts:      o, still: o.Expander.Still(),
	}
}

// damaged reports a damaged file of a cache that nobody asked for. It is silent
// if there is no cache folder, because such a cache only saves milliseconds.
func (o *Options) damaged(d registry.Diagnostic) {
	if d.Code == "cache_not_kept" {
		o.Log.Debug("how servers were reached is not remembered", "reason", d.Message)
		return
	}
	o.Warn(d)
}

// Flush writes all pending changes.
func (l *Store) Flush() {
	l.Sources.Flush()
	l.offers.Flush()
	l.protocols.Flush()
	l.failures.Flush()
}

// keyOnce is a key that is computed when first needed.
type keyOnce struct {
	once sync.Once
	key  string
	err  error
}

func (k *keyOnce) get(make func() (string, error)) (string, error) {
	k.once.Do(func() { k.key, k.err = make() })
	return k.key, k.err
}

// noKey handles a source whose cache key cannot be computed: the source is
// queried, unless that is not allowed.
func (l *Store) noKey(source string, err error) error {
	if _, _, offline := l.Sources.Load(source, "", nil); offline != nil {
		return fmt.Errorf("%w: %w", offline, err)
	}
	return nil
}
