package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// protocolAge is how long the protocol of a server is cached. It is detected
// again from time to time because servers are upgraded.
const protocolAge = 30 * 24 * time.Hour

// listings gives access to what earlier runs cached: listings of sources
// (setting cache.discovery), failures, and the protocols of servers.
type listings struct {
	*run
	sources   *cache.Store
	offers    *cache.Store // prompts and resources, for completion
	protocols *cache.Store
	failures  *cache.Store
	still     *settings.Expander // does not run commands
	environ   []string
}

// newListings returns listings without opening any file.
func newListings(r *run) *listings {
	dir := func() (*state.Dir, error) { return r.deps.Folders.Cache("discovery") }
	protocols := cache.Fresh
	if r.opts.Cache == cache.Renew {
		protocols = cache.Renew
	}
	kept := cache.Options{Dir: dir, Kind: "source", TTL: r.set.DiscoveryTTL, Mode: r.opts.Cache, Warn: r.deps.Warn}
	offers := kept
	offers.Kind = "offers"
	return &listings{
		sources:   cache.NewStore(kept),
		offers:    cache.NewStore(offers),
		protocols: cache.NewStore(cache.Options{Dir: dir, Kind: "protocol", TTL: protocolAge, Mode: protocols, Warn: r.protocolsDamaged}),
		failures:  cache.NewStore(failuresOptions(r, dir)),
		run:       r, still: r.expander.Still(), environ: process.ChildEnviron(r.deps.Environ),
	}
}

// protocolsDamaged reports a damaged file. It is silent if there is no cache
// folder, because nobody asked for this cache and it only saves milliseconds.
func (r *run) protocolsDamaged(d registry.Diagnostic) {
	if d.Code == "cache_not_kept" {
		r.deps.Log.Debug("how servers were reached is not remembered", "reason", d.Message)
		return
	}
	r.deps.Warn(d)
}

// flush writes all pending changes.
func (l *listings) flush() {
	l.sources.Flush()
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
func (l *listings) noKey(source string, err error) error {
	if _, _, offline := l.sources.Load(source, "", nil); offline != nil {
		return fmt.Errorf("%w: %w", offline, err)
	}
	return nil
}

// serverListing is the cached data of one server. It implements
// mcpclient.Listings and mcpclient.Protocols.
type serverListing struct {
	*listings
	server settings.Server

	listing, protocol keyOnce

	knowing sync.Mutex
	known   string // its protocol; "" = not known yet
}

func (l *listings) ofServer(server settings.Server) *serverListing {
	return &serverListing{listings: l, server: server}
}

func (l *serverListing) source() string { return registry.MCPPrefix + l.server.Name }

// keyOf returns a key made of the server's expanded settings and its program.
// If files is set, it includes the files that its arguments name, which may
// affect a listing. Values from commands are used as written, because reading a
// cached listing must not run anything.
func (l *serverListing) keyOf(ctx context.Context, files bool) (string, error) {
	s, err := l.still.Server(ctx, l.server)
	if err != nil {
		return "", err
	}
	oauth, err := json.Marshal(s.OAuth)
	if err != nil {
		return "", err
	}
	root := l.set.ProjectRoot
	k := cache.NewKey("server", l.deps.Version, root, l.set.Workspace, s.Name, s.Command, s.Cwd, s.URL, s.HTTPURL, s.Type, s.Protocol, string(oauth),
		fmt.Sprint(s.InheritEnv, l.set.Limits))
	k.Add(s.Args...)
	var given []string
	for _, p := range s.Env {
		k.Add("env", p.Name, p.Value)
		given = append(given, p.Name+"="+p.Value)
	}
	for _, p := range s.Headers {
		k.Add("header", p.Name, p.Value)
	}
	if s.URL != "" || s.HTTPURL != "" {
		return k.String(), nil
	}
	p := cache.Program{Root: root, Dir: folderIn(root, s.Cwd), Argv: append([]string{s.Command}, s.Args...),
		Env: settings.Environment(l.environ, s.Env, s.InheritEnv), Given: given}
	err = k.AddProgram(p)
	if err == nil && files {
		err = k.AddFiles(p)
	}
	return k.String(), err
}

func (l *serverListing) listingKey(ctx context.Context) (string, error) {
	return l.listing.get(func() (string, error) { return l.keyOf(ctx, true) })
}

func (l *serverListing) protocolKey(ctx context.Context) (string, error) {
	return l.protocol.get(func() (string, error) { return l.keyOf(ctx, false) })
}

// folderIn returns a folder of the settings, relative to root; "" is root
// itself.
func folderIn(root, dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(root, dir)
}

// Load implements [mcpclient.Listings].
func (l *serverListing) Load(ctx context.Context) (out mcpclient.Listing, ok bool, err error) {
	if !l.sources.Active() {
		return out, false, nil
	}
	key, err := l.listingKey(ctx)
	if err != nil {
		return out, false, l.noKey(l.source(), err)
	}
	e, ok, err := l.sources.Load(l.source(), key, func(e cache.Entry) bool {
		var facts mcpclient.Facts
		return json.Unmarshal(e.Facts, &facts) == nil && (facts.Counted || !l.opts.Counts)
	})
	if err != nil || !ok {
		return out, false, err
	}
	out.Tools, out.ListedAt = e.Parts, e.Stored
	if err := json.Unmarshal(e.Facts, &out.Facts); err != nil {
		return out, false, nil // the file was written by hand: query the server
	}
	return out, true, nil
}

// Save implements [mcpclient.Listings].
func (l *serverListing) Save(ctx context.Context, given mcpclient.Listing) {
	if !l.sources.Active() {
		return
	}
	key, err := l.listingKey(ctx)
	facts, jsonErr := json.Marshal(given.Facts)
	if err == nil && jsonErr == nil {
		l.sources.Save(l.source(), key, cache.Entry{Facts: facts, Parts: given.Tools})
	}
}

// LoadProtocol implements [mcpclient.Protocols].
func (l *serverListing) LoadProtocol(ctx context.Context) string {
	key, err := l.protocolKey(ctx)
	if err != nil {
		return ""
	}
	l.knowing.Lock()
	defer l.knowing.Unlock()
	if l.known == "" {
		e, ok, _ := l.protocols.Load(l.source(), key, nil) // Load never fails in these modes
		if !ok || json.Unmarshal(e.Facts, &l.known) != nil {
			return ""
		}
	}
	return l.known
}

// SaveProtocol implements [mcpclient.Protocols]. It does nothing if the
// protocol is unchanged.
func (l *serverListing) SaveProtocol(ctx context.Context, generation string) {
	key, err := l.protocolKey(ctx)
	if err != nil {
		return
	}
	l.knowing.Lock()
	defer l.knowing.Unlock()
	if l.known == generation {
		return
	}
	l.known = generation
	l.protocols.Save(l.source(), key, cache.Entry{Facts: json.RawMessage(`"` + generation + `"`)})
}

// LoadFailure implements [mcpclient.Failures].
func (l *serverListing) LoadFailure(ctx context.Context) error {
	if !l.failures.Active() {
		return nil
	}
	key, err := l.listingKey(ctx)
	if err != nil {
		return nil
	}
	return l.loadFailure(l.source(), failureKey(key, l.server.ConnectTimeout))
}

// SaveFailure implements [mcpclient.Failures]. A missing login is not cached:
// it is detected immediately and ends when the user logs in.
func (l *serverListing) SaveFailure(ctx context.Context, failure error) {
	if !l.failures.Active() || errors.Is(failure, registry.ErrNeedsLogin) {
		return
	}
	key, err := l.listingKey(ctx)
	if err != nil {
		return
	}
	l.saveFailure(ctx, l.source(), failureKey(key, l.server.ConnectTimeout), failure)
}

// outputListing is the cached output of a program that declares tools. It
// implements discover.Outputs.
type outputListing struct {
	*listings
	source string
	tree   string // folder all of whose files are part of the key; "" = none
	once   keyOnce
}

func (l *listings) ofOutput(source, tree string) discover.Outputs {
	return &outputListing{listings: l, source: source, tree: tree}
}

func (l *outputListing) key(i discover.Invocation) (string, error) {
	return l.once.get(func() (string, error) {
		k := cache.NewKey("output", l.deps.Version, l.source, l.set.ProjectRoot, string(i.Stdin))
		var given []string
		for _, p := range l.set.Env {
			value, _ := expand.Find(i.Env, p.Name)
			given = append(given, p.Name+"="+value)
		}
		p := cache.Program{Root: l.set.ProjectRoot, Dir: i.Dir, Argv: i.Argv, Env: i.Env, Given: given}
		err := errors.Join(k.AddProgram(p), k.AddFiles(p))
		if err == nil && l.tree != "" {
			err = k.AddTree(l.tree)
		}
		return k.String(), err
	})
}

// Load implements [discover.Outputs].
func (l *outputListing) Load(_ context.Context, i discover.Invocation) (stdout []byte, ok bool, err error) {
	if !l.sources.Active() {
		return nil, false, nil
	}
	key, err := l.key(i)
	if err != nil {
		return nil, false, l.noKey(l.source, err)
	}
	e, ok, err := l.sources.Load(l.source, key, func(e cache.Entry) bool { return len(e.Parts) == 1 })
	switch {
	case err != nil:
		return nil, false, err
	case ok && len(e.Parts) == 1:
		return e.Parts[0], true, nil
	}
	return nil, false, l.loadFailure(l.source, failureKey(key, l.set.DiscoveryTimeout))
}

// Save implements [discover.Outputs].
func (l *outputListing) Save(ctx context.Context, i discover.Invocation, stdout []byte, failure error) {
	if !l.sources.Active() {
		return
	}
	key, err := l.key(i)
	if err != nil {
		return
	}
	if failure == nil {
		l.sources.Save(l.source, key, cache.Entry{Parts: [][]byte{stdout}})
	}
	if l.failures.Active() {
		l.saveFailure(ctx, l.source, failureKey(key, l.set.DiscoveryTimeout), failure)
	}
}
