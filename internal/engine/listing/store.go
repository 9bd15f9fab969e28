// Package listing caches what sources answered, for later runs: the tools of programs, servers and
// APIs, why they failed, and which protocol a server speaks. A [Store] makes the memory that a
// source is given. Its key is made of the source's settings, its program and the files that these
// name, so that an answer is used only while it is still valid. Nothing here starts a source.
package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// protocolAge is how long the protocol of a server is cached. It is detected
// again from time to time because servers are upgraded.
const protocolAge = 30 * 24 * time.Hour

// kindOperations are the operations of an API's document. They are stored whatever the settings
// say, and used only for the document that they were made from, or if nothing may be queried.
const kindOperations cache.Kind = "operations"

// Options are what a store is made of. All but the last three fields are required.
type Options struct {
	Settings *settings.Settings
	Environ  []string // of the process, "K=V"
	Folders  *state.Folders
	Expander *values.Expander
	Version  string // of toolreg
	Mode     cache.Mode
	Warn     func(registry.Diagnostic)
	Log      *slog.Logger

	Still  bool // nothing may be started, see engine.Options
	Counts bool // prompts and resources of servers are counted, too
	Lists  bool // the run lists tools or counts what servers offer
}

// Store caches what earlier runs learned about sources: their listings (setting
// cache.discovery), failures, and the protocols of servers. It is safe for concurrent
// use.
type Store struct {
	Records *cache.Store

	opts  Options
	still *values.Expander // does not run commands
}

// New returns a store without opening any file.
func New(o Options) *Store {
	return &Store{opts: o, still: o.Expander.WithoutCommands(), Records: cache.NewStore(cache.Options{
		Dir:   func() (*state.Dir, error) { return o.Folders.Cache("discovery") },
		Rules: rules(&o), Now: time.Now, Warn: o.Warn})}
}

// rules returns how long data of each kind is used. Counts that were seen are stored by runs that
// list, whatever the settings say, and used by runs that start nothing.
func rules(o *Options) map[cache.Kind]cache.Rule {
	set, mode := o.Settings, o.Mode
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
	if o.Still {
		operations.Mode = cache.Offline
	}
	seen := cache.Rule{Mode: cache.Live}
	switch {
	case o.Still:
		seen.Mode = cache.Offline
	case o.Lists:
		seen.TTL = protocolAge
	}
	return map[cache.Kind]cache.Rule{cache.Seen: seen, cache.Listing: listing, mcpclient.OfferPrompts: listing,
		mcpclient.OfferResources: listing, cache.Protocol: protocol, cache.Failure: failure, kindOperations: operations}
}

// ForgetFailure lets a source be asked again even if it failed recently.
func (l *Store) ForgetFailure(source string) { l.Records.Expire(source, cache.Failure) }

// Flush writes all pending changes. A failure is a warning only if listings are to be
// cached, because the rest saves only milliseconds.
func (l *Store) Flush() {
	switch err := l.Records.Flush(); {
	case err == nil:
	case l.Records.Active(cache.Listing):
		l.opts.Warn(registry.Warning("cache_not_kept", "", "tool lists cannot be cached: "+err.Error(),
			"set cache.discovery: 0 to disable the cache"))
	default:
		l.opts.Log.Debug("caching the protocols of servers failed", "err", err)
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
func (l *Store) noKey(err error) error {
	if l.opts.Mode == cache.Offline {
		return fmt.Errorf("%w: %w", cache.ErrNothingKept, err)
	}
	return nil
}

// Observe logs each source as it finishes.
func (l *Store) Observe(r registry.SourceReport) {
	if _, cached := l.Records.Served(r.Name); cached {
		l.opts.Log.Info("source", "name", r.Name, "state", "cached", "tools", r.Tools, "age", l.Records.Age(r.Name))
		return
	}
	l.opts.Log.Info("source", "name", r.Name, "state", string(r.State),
		"tools", r.Tools, "duration", r.Duration, "err", r.Err)
}

// output is the cached output of a program that declares tools. It
// implements discover.Outputs.
type output struct {
	store  *Store
	source string
	tree   string // folder all of whose files are part of the key; "" if there is none
	once   keyOnce
}

// OfOutput returns the cache for the output of a program that declares tools. tree is a
// folder whose files all affect the output; "" if there is none.
func (l *Store) OfOutput(source, tree string) discover.Outputs {
	return &output{store: l, source: source, tree: tree}
}

func (l *output) key(i discover.Invocation) (string, error) {
	return l.once.get(func() (string, error) {
		k := cache.NewKey("output", l.store.opts.Version, l.source, l.store.opts.Settings.ProjectRoot, string(i.Stdin))
		var given []string
		for _, p := range l.store.opts.Settings.Env {
			value, _ := expand.Find(i.Env, p.Name)
			given = append(given, p.Name+"="+value)
		}
		p := cache.Program{Root: l.store.opts.Settings.ProjectRoot, Dir: i.Dir, Argv: i.Argv, Env: i.Env, Given: given}
		err := errors.Join(k.AddProgram(p), k.AddFiles(p))
		if err == nil && l.tree != "" {
			err = k.AddTree(l.tree)
		}
		return k.String(), err
	})
}

func (l *output) Load(_ context.Context, i discover.Invocation) (stdout []byte, ok bool, err error) {
	if !l.store.Records.Active(cache.Listing) {
		return nil, false, nil
	}
	key, err := l.key(i)
	if err != nil {
		return nil, false, l.store.noKey(err)
	}
	record, err := l.store.Records.Load(cache.Source{Name: l.source, Key: key},
		map[cache.Kind]string{cache.Listing: "", cache.Failure: l.limit()})
	if err != nil {
		return nil, false, err
	}
	if e := record[cache.Listing]; len(e.Parts) == 1 {
		l.store.Records.Serve(l.source, e.Stored)
		return e.Parts[0], true, nil
	}
	return nil, false, failureOf(record)
}

// limit is the key of failures: a program that exceeded one time limit may succeed within
// another.
func (l *output) limit() string { return l.store.opts.Settings.DiscoveryTimeout.String() }

func (l *output) Save(_ context.Context, i discover.Invocation, stdout []byte, failure error) {
	if !l.store.Records.Active(cache.Listing) {
		return
	}
	key, err := l.key(i)
	if err != nil {
		return
	}
	record := cache.Record{cache.Failure: failureEntry(l.limit(), failure)}
	if failure == nil {
		record[cache.Listing] = cache.Entry{Parts: [][]byte{stdout}}
	}
	l.store.Records.Save(cache.Source{Name: l.source, Key: key}, record)
}

// API is the record of one API. It implements [openapi.Memory].
type API struct {
	store *Store
	api   settings.API
	key   keyOnce
}

// OfAPI returns the cached record of an API.
func (l *Store) OfAPI(api settings.API) *API { return &API{store: l, api: api} }

// source returns the source of the record. Its key has everything besides the document that the
// operations depend on: the settings, and the credentials for fetching the document.
func (l *API) source(ctx context.Context) (cache.Source, error) {
	key, err := l.key.get(func() (string, error) {
		a, err := l.store.still.API(ctx, l.api)
		if err != nil {
			return "", err
		}
		k := cache.NewKey("openapi", l.store.opts.Version, l.store.opts.Settings.ProjectRoot,
			a.Name, a.Spec, a.URL, fmt.Sprint(l.store.opts.Settings.Limits))
		k.Add(values.Pairs(a.Headers)...)
		k.Add(values.Auth(a)...)
		return k.String(), nil
	})
	return cache.Source{Name: registry.APIPrefix + l.api.Name, Key: key}, err
}

// Load implements [openapi.Memory].
func (l *API) Load(ctx context.Context) (known openapi.Known, err error) {
	source, err := l.source(ctx)
	if err != nil {
		return known, nil // expanding the settings fails with a better message
	}
	limit := l.api.ConnectTimeout.String()
	// operations may be known without a listing
	record, _ := l.store.Records.Load(source,
		map[cache.Kind]string{kindOperations: "", cache.Failure: limit, cache.Listing: ""})
	known.Failure = failureOf(record)
	if e := record[kindOperations]; len(e.Parts) == 1 && json.Unmarshal(e.Facts, &known.Facts) == nil {
		known.Operations, known.Asked = e.Parts[0], e.Stored
		if e, ok := record[cache.Listing]; ok && l.store.opts.Mode == cache.Fresh {
			known.Asked, known.Fresh = e.Stored, l.api.IsRemote()
		}
	}
	if mayNot := l.store.opts.Still || l.store.opts.Mode == cache.Offline && l.api.IsRemote(); mayNot {
		known.Fresh = true
		if known.Operations == nil {
			return known, cache.ErrNothingKept
		}
	}
	if known.Fresh {
		l.store.Records.Serve(source.Name, known.Asked)
	}
	return known, nil
}

// Save implements [openapi.Memory].
func (l *API) Save(ctx context.Context, known openapi.Known) {
	source, err := l.source(ctx)
	if err != nil {
		return
	}
	record := cache.Record{cache.Failure: failureEntry(l.api.ConnectTimeout.String(), known.Failure)}
	if known.Operations != nil {
		facts, err := json.Marshal(known.Facts)
		if err != nil {
			return
		}
		record[kindOperations] = cache.Entry{Facts: facts, Parts: [][]byte{known.Operations}}
		record[cache.Listing] = cache.Entry{Facts: json.RawMessage("true")}
	}
	l.store.Records.Save(source, record)
}

// Forget removes the record from the cache.
func (l *API) Forget(ctx context.Context) error {
	source, err := l.source(ctx)
	if err != nil {
		return err
	}
	return l.store.Records.Drop(ctx, source)
}
