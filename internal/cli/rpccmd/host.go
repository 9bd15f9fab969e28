package rpccmd

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/rpc"
	"github.com/toolreg/toolreg/internal/timing"
)

// host is the program at the other end of a connection, and the session that serves it.
type host struct {
	rpc.Host
	env    *cli.Env
	preset string
	server *rpc.Server

	provided rpc.Provided

	closing sync.WaitGroup // sessions that were replaced
	wake    chan struct{}  // a server has reported a change

	mu      sync.Mutex
	current *engine.Session
	binding *binding           // of the latest declare
	seen    *registry.Registry // what the host has seen, or was told has changed; nil means nothing
	changed map[*mcpclient.Source]bool
	told    map[registry.Diagnostic]bool
}

// binding is the outcome of a declare request. Its fields may be read once done is closed.
type binding struct {
	before   *binding
	done     chan struct{}
	declared func(*registry.Tool) bool
}

func newHost(e *cli.Env, preset string) *host {
	all := &binding{done: make(chan struct{}), declared: func(*registry.Tool) bool { return true }}
	close(all.done)
	return &host{
		env: e, preset: preset, wake: make(chan struct{}, 1), binding: all,
		changed: map[*mcpclient.Source]bool{}, told: map[registry.Diagnostic]bool{},
	}
}

// initialize creates the session, which depends on what the host can answer. life is the context of
// the connection.
func (h *host) initialize(life context.Context, p initializeParams) (initializeResult, error) {
	h.Host = rpc.Host{Client: p.Client, Capabilities: p.Capabilities}
	if process.InsideTool(h.env.Config.Environ) && (p.Capabilities.Approve || p.Capabilities.Elicit) {
		h.Capabilities.Approve, h.Capabilities.Elicit = false, false
		h.env.IO.Warn(registry.Warning("inside_tool_run", "",
			"toolreg rpc was started by a tool, so its host is not asked: calls that need approval fail", ""))
	}
	h.env.Config.Forget() // a host may try again after it has corrected the settings
	watch := cli.NewWatcher(h.env)
	from, err := h.session(life, nil)
	if err != nil {
		return initializeResult{}, err
	}
	watch.Add(from)
	if _, err := from.Calls.Policy(nil); err != nil {
		from.Close()
		return initializeResult{}, err
	}
	h.use(from)
	h.closing.Go(func() {
		watch.Follow(life, from,
			func(earlier *engine.Session) (*engine.Session, error) { return h.reload(life, earlier) })
	})
	h.closing.Go(func() { h.followChanges(life) })
	out := initializeResult{Version: h.env.Version, Root: from.Settings.ProjectRoot,
		Formats: []string{}, Servers: from.Settings.EntryNames()}
	for _, f := range provider.Formats() {
		out.Formats = append(out.Formats, f.Name)
	}
	return out, nil
}

// session creates a session whose questions go to the host, in place of an earlier one if that is
// not nil.
func (h *host) session(life context.Context, earlier *engine.Session) (*engine.Session, error) {
	return h.env.Engine.Session(life, cli.SessionOptions{
		Options: engine.Options{Preset: h.preset, Counts: true, Earlier: earlier, Host: &h.provided},
		Asker:   h.Asker(), ServerLog: h.server.ServerLog,
	})
}

// use makes a session the current one.
func (h *host) use(s *engine.Session) {
	if servers, _, err := s.Servers.Named(); err == nil {
		for _, server := range servers {
			server.Follow(func(c mcpclient.Change) { h.reported(server, c) })
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.current
	if h.current = s; old != nil {
		s.TakeOver()
		old.WhenUnused(func() { h.closing.Go(old.Close) })
	}
}

// borrow returns the current session. The caller calls done when it is not used any more.
func (h *host) borrow() (s *engine.Session, done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current, h.current.Borrow()
}

// within calls f with the context of the connection, because what f loads stays loaded for
// later requests. It returns the cause of ctx if that is done first. s is the session to
// use; nil means the current one.
func within[T any](life, ctx context.Context, h *host, s *engine.Session,
	f func(context.Context, *engine.Session) (T, error)) (T, error) {
	h.mu.Lock()
	if s == nil {
		s = h.current
	}
	done := s.Borrow()
	h.mu.Unlock()
	return timing.UntilDone(ctx, func() (T, error) {
		defer done()
		value, err := f(life, s)
		h.saw(s)
		return value, err
	})
}

func (h *host) reload(life context.Context, earlier *engine.Session) (*engine.Session, error) {
	from, err := h.env.Engine.Again(func() (*engine.Session, error) { return h.session(life, earlier) })
	if err != nil {
		return nil, err
	}
	if _, err := from.Calls.Policy(nil); err != nil {
		from.Close()
		return nil, err
	}
	h.use(from)
	h.tellChanged(life, true)
	return from, nil
}

func (h *host) reported(server *mcpclient.Source, what mcpclient.Change) {
	if what.List == "" {
		return
	}
	h.mu.Lock()
	h.changed[server] = true
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// changePause is the minimum time between two looks at what servers have reported, so that
// a server that reports changes all the time costs little.
const changePause = 500 * time.Millisecond

// followChanges lists servers again after they have reported changes, until life is done.
func (h *host) followChanges(life context.Context) {
	for {
		select {
		case <-h.wake:
		case <-life.Done():
			return
		}
		h.relist(life)
		select {
		case <-time.After(changePause):
		case <-life.Done():
			return
		}
	}
}

func (h *host) relist(life context.Context) {
	s, done := h.borrow()
	defer done()
	on, _, err := s.Servers.Named()
	if err != nil {
		return
	}
	h.mu.Lock()
	var servers []registry.Source
	for _, server := range on {
		if h.changed[server] {
			servers = append(servers, server)
		}
	}
	clear(h.changed)
	h.mu.Unlock()
	if err := s.Relist(life, servers...); err != nil && life.Err() == nil {
		h.env.IO.Warn(registry.Warning("change_unread", "",
			"a server that changed or was started again cannot list its tools; its earlier tools stay: "+err.Error(), ""))
	}
	h.tellChanged(life, false)
}

// tellChanged tells the host which tools that it has seen have changed. With always, it is told
// even if none has.
func (h *host) tellChanged(life context.Context, always bool) {
	h.mu.Lock()
	before := h.seen
	h.mu.Unlock()
	names := []string{}
	if before != nil {
		s, done := h.borrow()
		defer done()
		now, err := s.Tools.All(life)
		if err != nil {
			return
		}
		names = differing(before, now)
		h.mu.Lock()
		h.seen = now
		h.mu.Unlock()
	}
	if always || len(names) > 0 {
		h.server.Changed(names)
	}
}

// saw remembers the registry of a session, if a request has loaded all of it and the host has seen
// none before. Later changes are found by comparison with it.
func (h *host) saw(s *engine.Session) {
	reg := s.Tools.Loaded()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil && s == h.current {
		h.seen = reg
	}
}

// differing returns the names of the tools that are in only one of two registries, or differ.
func differing(a, b *registry.Registry) []string {
	prints := map[string]string{}
	for _, t := range a.Tools() {
		prints[t.Name] = t.Fingerprint()
	}
	var names []string
	for _, t := range b.Tools() {
		if before, ok := prints[t.Name]; !ok || before != t.Fingerprint() {
			names = append(names, t.Name)
		}
		delete(prints, t.Name)
	}
	names = slices.AppendSeq(names, maps.Keys(prints))
	slices.Sort(names)
	return names
}

// diagnose tells the host about problems that are new to it, except the one that err is about.
func (h *host) diagnose(r *rpc.Request, diags []registry.Diagnostic, err error) {
	for _, d := range diags {
		if d.Severity == registry.SeverityInfo || err != nil && d.Code == "source_failed" && err.Error() == d.Message {
			continue
		}
		h.mu.Lock()
		told := h.told[d]
		h.told[d] = true
		h.mu.Unlock()
		if !told {
			h.server.Diagnose(r, d)
		}
	}
}
