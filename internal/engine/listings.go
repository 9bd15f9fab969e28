package engine

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// protocolAge is how long the protocol of a server is cached. It is detected
// again from time to time because servers are upgraded.
const protocolAge = 30 * 24 * time.Hour

// kindOperations are the operations of a document, which are stored whatever the settings
// say: they are used only for the document that they were made of, or if nothing may be
// asked.
const kindOperations cache.Kind = "operations"

// listingStore caches what earlier runs learned about sources: their listings (setting
// cache.discovery), failures, and the protocols of servers. It is safe for concurrent
// use.
type listingStore struct {
	Records  *cache.Store
	programs *programs
	still    *values.Expander // does not run commands
	version  string           // of toolreg
	mode     cache.Mode
	isStill  bool // see [Options.Still]
	counts   bool // see [Options.Counts]
}

// newListings returns a store without opening any file. lists says that the run lists tools or
// counts what servers offer.
func newListings(l listingStore, lists bool) *listingStore {
	l.still = l.programs.expander.Still()
	l.Records = cache.NewStore(cache.Options{
		Dir: func() (*state.Dir, error) { return l.programs.folders.Cache("discovery") }, Rules: l.rules(lists), Warn: l.programs.reports.add})
	return &l
}

// rules returns how long data of each kind is used. What was seen is stored by runs that
// list, whatever the settings say, and used by those that start nothing.
func (l *listingStore) rules(lists bool) map[cache.Kind]cache.Rule {
	set, mode := l.programs.set, l.mode
	listing := cache.Rule{TTL: set.DiscoveryTTL, Mode: mode}
	protocol := cache.Rule{TTL: protocolAge, Mode: cache.Fresh, Lasting: true}
	if mode == cache.Renew {
		protocol.Mode = cache.Renew
	}
	failure := cache.Rule{Mode: mode}
	if set.DiscoveryTTL > 0 { // without listings, sources are started anyway
		failure.TTL = set.FailuresTTL
	}
	if failure.TTL == 0 || mode == cache.Offline {
		failure.Mode = cache.Live
	}
	operations := cache.Rule{TTL: protocolAge, Mode: mode, Lasting: true}
	if l.isStill {
		operations.Mode = cache.Offline
	}
	seen := cache.Rule{Mode: cache.Live}
	switch {
	case l.isStill:
		seen.Mode = cache.Offline
	case lists:
		seen.TTL = protocolAge
	}
	return map[cache.Kind]cache.Rule{cache.Seen: seen, cache.Listing: listing, mcpclient.OfferPrompts: listing, mcpclient.OfferResources: listing,
		cache.Protocol: protocol, cache.Failure: failure, kindOperations: operations}
}

// ForgetFailure lets a source be asked again even if it failed recently.
func (l *listingStore) ForgetFailure(source string) { l.Records.Expire(source, cache.Failure) }

// Flush writes all pending changes. A failure is a warning only if listings are to be
// cached, because the rest saves only milliseconds.
func (l *listingStore) Flush() {
	switch err := l.Records.Flush(); {
	case err == nil:
	case l.Records.Active(cache.Listing):
		l.programs.reports.add(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_not_kept", Message: "tool lists cannot be cached: " + err.Error(),
			Hint: "set cache.discovery: 0 to disable the cache"})
	default:
		l.programs.reports.log.Debug("caching the protocols of servers failed", "err", err)
	}
}

// keptFailure is the error of a source in an earlier run.
type keptFailure struct{ Message string }

func (e *keptFailure) Error() string { return e.Message }
func (e *keptFailure) Unwrap() error { return registry.ErrSourceFailed }

// failureEntry returns the entry for the error of a source. The entry is empty if failure
// is nil.
func failureEntry(key string, failure error) cache.Entry {
	if failure == nil {
		return cache.Entry{}
	}
	facts, _ := json.Marshal(keptFailure{failure.Error()}) // a string always encodes
	return cache.Entry{Key: key, Facts: facts}
}

// failureOf returns the recent error of a source; nil if the record has none.
func failureOf(r cache.Record) error {
	failure := &keptFailure{}
	if e, ok := r[cache.Failure]; !ok || json.Unmarshal(e.Facts, failure) != nil {
		return nil
	}
	return failure
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
func (l *listingStore) noKey(err error) error {
	if l.mode == cache.Offline {
		return fmt.Errorf("%w: %w", cache.ErrNothingKept, err)
	}
	return nil
}

// observe logs each source as it finishes.
func (l *listingStore) observe(r registry.SourceReport) {
	if _, cached := l.Records.Served(r.Name); cached {
		l.programs.reports.log.Info("source", "name", r.Name, "state", "cached", "tools", r.Tools, "age", l.Records.Age(r.Name))
		return
	}
	l.programs.reports.log.Info("source", "name", r.Name, "state", string(r.State), "tools", r.Tools, "duration", r.Duration, "err", r.Err)
}
