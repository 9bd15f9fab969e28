package listings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// Server is the cached data of one server. It implements [mcpclient.Listings],
// [mcpclient.Protocols] and [mcpclient.Failures].
type Server struct {
	*Store
	server settings.Server

	listing, protocol keyOnce

	knowing sync.Mutex
	known   string // its protocol; "" = not known yet
}

// OfServer returns what is cached of a server, by its settings.
func (l *Store) OfServer(server settings.Server) *Server {
	return &Server{Store: l, server: server}
}

func (l *Server) source() string { return registry.MCPPrefix + l.server.Name }

// keyOf returns a key made of the server's expanded settings and its program.
// If files is set, it includes the files that its arguments name, which may
// affect a listing. Values from commands are used as written, because reading a
// cached listing must not run anything.
func (l *Server) keyOf(ctx context.Context, files bool) (string, error) {
	s, err := l.still.Server(ctx, l.server)
	if err != nil {
		return "", err
	}
	oauth, err := json.Marshal(s.OAuth)
	if err != nil {
		return "", err
	}
	root := l.opts.Settings.ProjectRoot
	k := cache.NewKey("server", l.opts.Version, root, l.opts.Settings.Workspace, s.Name, s.Command, s.Cwd, s.URL, s.HTTPURL, s.Type, s.Protocol, string(oauth),
		fmt.Sprint(s.InheritEnv, l.opts.Settings.Limits))
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
		Env: values.Environment(process.ChildEnviron(l.opts.Environ), s.Env, s.InheritEnv), Given: given}
	err = k.AddProgram(p)
	if err == nil && files {
		err = k.AddFiles(p)
	}
	return k.String(), err
}

func (l *Server) listingKey(ctx context.Context) (string, error) {
	return l.listing.get(func() (string, error) { return l.keyOf(ctx, true) })
}

func (l *Server) protocolKey(ctx context.Context) (string, error) {
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
func (l *Server) Load(ctx context.Context) (out mcpclient.Listing, ok bool, err error) {
	if !l.Sources.Active() {
		return out, false, nil
	}
	key, err := l.listingKey(ctx)
	if err != nil {
		return out, false, l.noKey(l.source(), err)
	}
	e, ok, err := l.Sources.Load(l.source(), key, func(e cache.Entry) bool {
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
func (l *Server) Save(ctx context.Context, given mcpclient.Listing) {
	if !l.Sources.Active() {
		return
	}
	key, err := l.listingKey(ctx)
	facts, jsonErr := json.Marshal(given.Facts)
	if err == nil && jsonErr == nil {
		l.Sources.Save(l.source(), key, cache.Entry{Facts: facts, Parts: given.Tools})
	}
}

// LoadProtocol implements [mcpclient.Protocols].
func (l *Server) LoadProtocol(ctx context.Context) string {
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
func (l *Server) SaveProtocol(ctx context.Context, generation string) {
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
func (l *Server) LoadFailure(ctx context.Context) error {
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
func (l *Server) SaveFailure(ctx context.Context, failure error) {
	if !l.failures.Active() || errors.Is(failure, registry.ErrNeedsLogin) {
		return
	}
	key, err := l.listingKey(ctx)
	if err != nil {
		return
	}
	l.saveFailure(ctx, l.source(), failureKey(key, l.server.ConnectTimeout), failure)
}
