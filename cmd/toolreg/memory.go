package main

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
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// protocolAge is how long it is remembered how a server was reached: now and
// then it is found out anew, since servers are replaced by better ones.
const protocolAge = 30 * 24 * time.Hour

// memory is what earlier runs left: what sources gave, by the setting
// cache.discovery, and always how servers were reached.
type memory struct {
	listings  *cache.Store
	protocols *cache.Store
	set       *settings.Settings
	still     *settings.Expander // runs nothing
	environ   []string
}

// newMemory opens nothing yet.
func newMemory(a *app, s *settings.Settings, x *settings.Expander) *memory {
	dir := func() (*state.Dir, error) { return a.cacheDir("discovery") }
	recalled := cache.Fresh
	if a.globals.Refresh {
		recalled = cache.Renew
	}
	return &memory{
		listings:  cache.NewStore(cache.Options{Dir: dir, Kind: "source", TTL: s.DiscoveryTTL, Mode: a.cacheMode(), Warn: a.warn}),
		protocols: cache.NewStore(cache.Options{Dir: dir, Kind: "protocol", TTL: protocolAge, Mode: recalled, Warn: a.warnOfMemory}),
		set:       s, still: x.Still(), environ: a.childEnviron(),
	}
}

// warnOfMemory tells of a memory that is damaged. That there is no place for one
// is no matter: nobody asked for it, and it saves milliseconds.
func (a *app) warnOfMemory(d registry.Diagnostic) {
	if d.Code == "cache_not_kept" {
		a.log.Debug("how servers were reached is not remembered", "reason", d.Message)
		return
	}
	a.warn(d)
}

// cacheMode says what the flags and the command make of what is kept.
func (a *app) cacheMode() cache.Mode {
	switch {
	case a.globals.Refresh:
		return cache.Renew
	case a.globals.Cached:
		return cache.Offline
	case a.asksAll:
		return cache.Live
	}
	return cache.Fresh
}

// flush writes what is to be kept.
func (m *memory) flush() {
	m.listings.Flush()
	m.protocols.Flush()
}

// keyOnce is a key that is made on first need.
type keyOnce struct {
	once sync.Once
	key  string
	err  error
}

func (k *keyOnce) get(make func() (string, error)) (string, error) {
	k.once.Do(func() { k.key, k.err = make() })
	return k.key, k.err
}

// noKey is what becomes of a source whose entry cannot be found: it is asked,
// unless that may not be.
func (m *memory) noKey(source string, err error) error {
	if _, _, offline := m.listings.Recall(source, "", nil); offline != nil {
		return fmt.Errorf("%w: %w", offline, err)
	}
	return nil
}

// serverMemory is what is kept of one server. It implements mcpclient.Listings
// and mcpclient.Protocols.
type serverMemory struct {
	*memory
	server settings.Server
	counts *bool // prompts and resources are to be known too

	listing, protocol keyOnce

	knowing sync.Mutex
	known   string // how it was reached; "" = not known yet
}

func (m *memory) ofServer(server settings.Server, counts *bool) *serverMemory {
	return &serverMemory{memory: m, server: server, counts: counts}
}

func (m *serverMemory) source() string { return registry.MCPPrefix + m.server.Name }

// keyOf is made of the server's settings, expanded, and of its program; with
// files also of those that its words name, on which a listing may depend. Values
// that a command would give count as they are written, since nothing is to be
// run for a listing that is kept.
func (m *serverMemory) keyOf(ctx context.Context, files bool) (string, error) {
	s, err := m.still.Server(ctx, m.server)
	if err != nil {
		return "", err
	}
	oauth, err := json.Marshal(s.OAuth)
	if err != nil {
		return "", err
	}
	root := m.set.ProjectRoot
	k := cache.NewKey("server", version, root, m.set.Workspace, s.Name, s.Command, s.Cwd, s.URL, s.HTTPURL, s.Type, s.Protocol, string(oauth),
		fmt.Sprint(s.InheritEnv, m.set.Limits))
	k.Add(s.Args...)
	var given []string
	for _, p := range s.Env {
		k.Add("env", p.Name, p.Value)
		given = append(given, p.Value)
	}
	for _, p := range s.Headers {
		k.Add("header", p.Name, p.Value)
	}
	if s.URL != "" || s.HTTPURL != "" {
		return k.String(), nil
	}
	p := cache.Program{Root: root, Dir: folderIn(root, s.Cwd), Argv: append([]string{s.Command}, s.Args...),
		Env: settings.Environment(m.environ, s.Env, s.InheritEnv), Given: given}
	err = k.AddProgram(p)
	if err == nil && files {
		err = k.AddFiles(p)
	}
	return k.String(), err
}

func (m *serverMemory) listingKey(ctx context.Context) (string, error) {
	return m.listing.get(func() (string, error) { return m.keyOf(ctx, true) })
}

func (m *serverMemory) protocolKey(ctx context.Context) (string, error) {
	return m.protocol.get(func() (string, error) { return m.keyOf(ctx, false) })
}

// folderIn is a folder as settings name it: relative to root, "" = root itself.
func folderIn(root, dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(root, dir)
}

// Recall implements [mcpclient.Listings].
func (m *serverMemory) Recall(ctx context.Context) (l mcpclient.Listing, ok bool, err error) {
	if !m.listings.Active() {
		return l, false, nil
	}
	key, err := m.listingKey(ctx)
	if err != nil {
		return l, false, m.noKey(m.source(), err)
	}
	e, ok, err := m.listings.Recall(m.source(), key, func(e cache.Entry) bool {
		var facts mcpclient.Facts
		return json.Unmarshal(e.Facts, &facts) == nil && (facts.Counted || !*m.counts)
	})
	if err != nil || !ok {
		return l, false, err
	}
	l.Tools, l.Kept = e.Parts, e.Stored
	if err := json.Unmarshal(e.Facts, &l.Facts); err != nil {
		return l, false, nil // written by hand: the server is asked
	}
	return l, true, nil
}

// Keep implements [mcpclient.Listings].
func (m *serverMemory) Keep(ctx context.Context, l mcpclient.Listing) {
	if !m.listings.Active() {
		return
	}
	key, err := m.listingKey(ctx)
	facts, jsonErr := json.Marshal(l.Facts)
	if err == nil && jsonErr == nil {
		m.listings.Keep(m.source(), key, cache.Entry{Facts: facts, Parts: l.Tools})
	}
}

// forgetListing drops what is kept of a server's listing: another login may get
// to see other tools.
func (a *app) forgetListing(ctx context.Context, s *settings.Settings, server settings.Server) {
	m := newMemory(a, s, settings.NewExpander(s.ProjectRoot, a.environ)).ofServer(server, &a.counts)
	key, err := m.listingKey(ctx)
	if err == nil {
		err = m.listings.Drop(ctx, key)
	}
	if err != nil {
		a.log.Debug("the listing is not dropped", "server", server.Name, "err", err)
	}
}

// Known implements [mcpclient.Protocols].
func (m *serverMemory) Known(ctx context.Context) string {
	key, err := m.protocolKey(ctx)
	if err != nil {
		return ""
	}
	m.knowing.Lock()
	defer m.knowing.Unlock()
	if m.known == "" {
		e, ok, _ := m.protocols.Recall(m.source(), key, nil) // it never errs in its modes
		if !ok || json.Unmarshal(e.Facts, &m.known) != nil {
			return ""
		}
	}
	return m.known
}

// Learned implements [mcpclient.Protocols]. What is known already is not written.
func (m *serverMemory) Learned(ctx context.Context, generation string) {
	key, err := m.protocolKey(ctx)
	if err != nil {
		return
	}
	m.knowing.Lock()
	defer m.knowing.Unlock()
	if m.known == generation {
		return
	}
	m.known = generation
	m.protocols.Keep(m.source(), key, cache.Entry{Facts: json.RawMessage(`"` + generation + `"`)})
}

// outputMemory is what is kept of a program that declares tools. It implements
// discover.Outputs.
type outputMemory struct {
	*memory
	source string
	tree   string // a folder whose every file counts; "" = none
	once   keyOnce
}

func (m *memory) ofOutput(source, tree string) discover.Outputs {
	return &outputMemory{memory: m, source: source, tree: tree}
}

func (m *outputMemory) key(i discover.Invocation) (string, error) {
	return m.once.get(func() (string, error) {
		k := cache.NewKey("output", version, m.source, m.set.ProjectRoot, string(i.Stdin))
		var given []string
		for _, p := range m.set.Env {
			value, _ := lookupEnv(i.Env, p.Name)
			given = append(given, value)
		}
		p := cache.Program{Root: m.set.ProjectRoot, Dir: i.Dir, Argv: i.Argv, Env: i.Env, Given: given}
		err := errors.Join(k.AddProgram(p), k.AddFiles(p))
		if err == nil && m.tree != "" {
			err = k.AddTree(m.tree)
		}
		return k.String(), err
	})
}

// Recall implements [discover.Outputs].
func (m *outputMemory) Recall(_ context.Context, i discover.Invocation) (stdout []byte, ok bool, err error) {
	if !m.listings.Active() {
		return nil, false, nil
	}
	key, err := m.key(i)
	if err != nil {
		return nil, false, m.noKey(m.source, err)
	}
	e, ok, err := m.listings.Recall(m.source, key, func(e cache.Entry) bool { return len(e.Parts) == 1 })
	if err != nil || !ok || len(e.Parts) != 1 {
		return nil, false, err
	}
	return e.Parts[0], true, nil
}

// Keep implements [discover.Outputs].
func (m *outputMemory) Keep(_ context.Context, i discover.Invocation, stdout []byte) {
	if !m.listings.Active() {
		return
	}
	if key, err := m.key(i); err == nil {
		m.listings.Keep(m.source, key, cache.Entry{Parts: [][]byte{stdout}})
	}
}
