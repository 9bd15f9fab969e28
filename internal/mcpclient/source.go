package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// Source is one MCP server as a source of tools. It implements
// [registry.Source] and io.Closer, and is safe for concurrent use.
type Source struct {
	opts           *Options
	status         *status
	pool           *pool      // connects
	lists          *lister    // lists
	requests       *requester // calls
	*subscriptions            // follows changes

	mu         sync.Mutex
	discovered bool            // Discover was called before, so ask the server
	listed     []registry.Tool // listed by the server in this run; nil before that

	confirming sync.Mutex // one listing is requested at a time
}

// New returns a Source that has started nothing yet.
func New(opts Options) *Source {
	opts.Limits = opts.Limits.withDefaults()
	if opts.Memory == nil {
		opts.Memory = onlyProtocol("")
	}
	s := &Source{opts: &opts}
	asker := ask.New(ask.Options{
		Callbacks: opts.Callbacks, Server: opts.Server.Name, Workspace: opts.Workspace,
		MaxSamples: opts.Limits.Samples, MaxParams: opts.Limits.Frame, Logger: opts.log(),
		Deprecated: func(part string) { s.status.update(func(i *Info) { i.uses(part) }) },
	})
	s.status = &status{onState: opts.OnState, info: Info{
		Name:      opts.Server.Name,
		Transport: transportOf(opts.Server),
		State:     StateDisconnected,
		Origin:    opts.Server.Origin.String(),
	}}
	if opts.Recorded != nil {
		s.status.info.State = StateConnected
	}
	s.pool = &pool{connector: connector{opts: &opts, asker: asker}, opts: &opts, status: s.status, opened: s.opened,
		sessions:   map[any]*session{},
		connecting: map[any]chan struct{}{}, cancels: map[int]context.CancelCauseFunc{},
		restarts: restarts{opts: &opts, failures: map[any]failures{}}}
	s.requests = &requester{opts: &opts, asker: asker, pool: s.pool}
	s.subscriptions = &subscriptions{requests: s.requests}
	s.pool.connector.changed = s.subscriptions.report
	s.lists = &lister{opts: &opts, pool: s.pool}
	return s
}

// opened is called with each new session.
func (s *Source) opened(ctx context.Context, sess *session) {
	server := sess.wire.Server()
	s.status.update(func(i *Info) {
		i.Transport, i.ProtocolVersion = sess.transport, sess.wire.Revision()
		i.ServerInfo, i.Instructions = server.Info, server.Instructions
		i.Kept = sess.keptState()
		if sess.transport == transportSSE {
			i.uses(partSSE)
		}
		if server.Capabilities.Logging != nil {
			i.uses(partLogging)
		}
		if sess.registered != nil && sess.registered() {
			i.uses(partRegistration)
		}
	})
	if s.opts.owner(ctx) == nil {
		s.subscriptions.opened(ctx, sess)
	}
}

// Name returns "mcp:SERVER".
func (s *Source) Name() string { return registry.MCPPrefix + s.opts.Server.Name }

// Discover connects to the server and lists its tools, both within the connect timeout. The first
// call may use a stored listing instead (Options.Memory); later calls always ask the server. A
// server that the settings disable is not connected and has no tools. The error is a *ServerError,
// or a *document.Error if the entry is invalid; if ctx ended first, it wraps the cause of ctx.
func (s *Source) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if off, _ := s.opts.Server.Off(); off != "" {
		s.status.set(StateDisabled, nil)
		return nil, []registry.Diagnostic{s.opts.diagnose(registry.SeverityInfo, "server_disabled", "",
			fmt.Sprintf("server %q is %s", s.opts.Server.Name, off), "")}, nil
	}
	if s.opts.Recorded != nil {
		tools, diags, err := s.opts.Recorded.Discover(ctx)
		if err != nil {
			s.status.set(failedState(err), err)
		}
		return tools, diags, err
	}
	s.mu.Lock()
	again := s.discovered
	s.discovered = true
	s.mu.Unlock()
	s.lists.fresh.Store(again || s.opts.Keep != nil && s.opts.Keep.Renew)
	if !again && s.opts.Server.Err == nil {
		switch known, err := s.opts.Memory.Load(ctx); {
		case err != nil:
			err = s.opts.errorf("cache", err, err.Error())
			s.status.set(StateFailed, err)
			return nil, nil, err
		case known.Listing != nil:
			tools, diags := s.fromListing(known.Listing)
			return tools, diags, nil
		case known.Failure != nil:
			s.status.set(failedState(known.Failure), known.Failure)
			return nil, nil, known.Failure
		}
	}
	tools, diags, err := s.connectAndList(ctx)
	if err != nil && s.opts.Server.Err == nil && ctx.Err() == nil && !errors.Is(err, wire.ErrClosed) {
		s.opts.Memory.Save(ctx, Known{Failure: err})
	}
	return tools, diags, err
}

func (s *Source) connectAndList(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	start := time.Now()
	ctx, stop := s.pool.deadline(ctx)
	defer stop()
	s.status.set(StateConnecting, nil)
	before := s.pool.shared()
	sess, err := s.pool.get(ctx)
	if err != nil {
		s.status.set(failedState(err), err)
		return nil, nil, err
	}
	s.status.set(StateListing, nil)
	sess, tools, diags, err := s.discover(ctx, sess)
	if err != nil {
		if sess == before || !sess.idle(0) { // it is alive, and calls may be running
			s.status.set(StateConnected, nil)
		} else {
			s.status.set(failedState(err), err)
			sess.end()
		}
		s.pool.restarts.failedNow(ctx, err)
		return nil, nil, err
	}
	sess.limit.Store(s.opts.Limits.result())
	s.status.update(func(i *Info) { i.Tools, i.ConnectMs = countUsable(tools), time.Since(start).Milliseconds() })
	s.status.set(StateConnected, nil)
	if s.opts.ListOnly {
		go sess.end() // Close waits for it
	}
	return tools, diags, nil
}

// discover lists the server's tools and, if requested, counts its prompts and
// resources. It returns the session used last.
func (s *Source) discover(ctx context.Context,
	sess *session) (*session, []registry.Tool, []registry.Diagnostic, error) {
	var l listing
	if known, ok := s.lists.known(sess); ok {
		l = known
	} else if sess.offers("tools") {
		var err error
		if l, sess, err = s.lists.relist(ctx, sess, listTools); err != nil {
			return sess, nil, nil, err
		}
		sess.record.listed(ctx, l)
	}
	tools, diags := s.requests.tools(l, sess.transport == transportHTTP && sess.wire.Modern())
	counted := s.opts.Counts
	if counted {
		var failed []registry.Diagnostic
		sess, failed = s.countOthers(ctx, sess)
		counted = len(failed) == 0
		diags = append(diags, failed...)
	}
	s.storeListing(ctx, l, tools, counted)
	return sess, tools, diags, nil
}

func (s *Source) countOthers(ctx context.Context, sess *session) (*session, []registry.Diagnostic) {
	var diags []registry.Diagnostic
	count := func(key string) int {
		if !sess.offers(key) {
			return 0
		}
		l, last, err := s.lists.relist(ctx, sess, key)
		sess = last
		if err != nil {
			diags = append(diags, s.opts.diagnose(registry.SeverityWarning, "count_failed", "", err.Error(), ""))
		} else {
			s.lists.storeOffers(ctx, key, l.items)
		}
		return len(l.items)
	}
	prompts, resources := count(listPrompts), count(listResources)
	s.status.update(func(i *Info) { i.Prompts, i.Resources = prompts, resources })
	return sess, diags
}

// Info returns the current state of the server and its connection.
func (s *Source) Info() Info {
	info := s.status.get()
	if info.State == StateCached {
		info.AgeMs = max(time.Since(*info.CachedAt).Milliseconds(), 0)
	} else {
		info.CachedAt = nil
	}
	if sess := s.pool.shared(); info.State == StateConnected && sess != nil && !sess.wire.Alive() {
		info.State = StateDisconnected
	}
	return info
}

// Retry starts or reaches the shared process of a server that failed or has ended, within
// the connect timeout. If the server is paused, it fails at once with a *ServerError that
// says when the server can be started again.
func (s *Source) Retry(ctx context.Context) error {
	ctx, stop := s.pool.deadline(caller.With(ctx, nil))
	defer stop()
	err := s.pool.restarts.paused(nil)
	if err == nil {
		_, err = s.pool.get(ctx)
	}
	if err == nil {
		return nil
	}
	err = cmp.Or(s.pool.restarts.paused(nil), err)
	s.status.set(failedState(err), err)
	return err
}

// Restart ends the sessions with the server, whose running calls fail, and starts or reaches it
// again, even if it was paused. The error is that of [Source.Retry].
func (s *Source) Restart(ctx context.Context) error {
	s.pool.endSessions()
	s.pool.restarts.forget()
	return s.Retry(ctx)
}

// Lost reports whether the shared process has ended while clients are subscribed to resources.
func (s *Source) Lost() bool {
	sess := s.pool.shared()
	return s.subscriptions.any() && (sess == nil || !sess.wire.Alive())
}

// Remembered reports whether the tools are from an earlier run's listing of a kept server, which
// has reported no change since.
func (s *Source) Remembered() bool {
	sess := s.pool.shared()
	return sess != nil && (sess.kept != nil || sess.record != nil) && !s.lists.fresh.Load()
}

// Identity returns what identifies the program or endpoint of the server; see
// [registry.Tool.Identity].
func (s *Source) Identity() json.RawMessage { return identityOf(s.opts.Server) }

// Settings returns the entry of the server.
func (s *Source) Settings() settings.Server { return s.opts.Server }

// Paused reports whether the server must not be started yet because it failed
// several times in a row.
func (s *Source) Paused() bool { return s.pool.restarts.paused(nil) != nil }

// CloseIdle ends the sessions that were unused for d, except the shared one if it has
// subscriptions, and the sessions of owners that are gone. The next call starts the server
// again. If d <= 0, unused sessions stay open.
func (s *Source) CloseIdle(d time.Duration, gone func(owner any) bool) {
	s.pool.closeIdle(d, gone, s.subscriptions.any())
}

// Close ends the session and a stdio server's process group, within two
// seconds. It may be called at any time and more than once; running calls fail.
func (s *Source) Close() error {
	s.pool.close()
	if s.status.get().State == StateConnected {
		s.status.set(StateDisconnected, nil)
	}
	return nil
}

// fromListing creates tools from a stored listing, as if the server had just sent it.
func (s *Source) fromListing(l *Listing) ([]registry.Tool, []registry.Diagnostic) {
	items := make([]json.RawMessage, len(l.Tools))
	for i, item := range l.Tools {
		items[i] = item
	}
	headers := l.Facts.Transport == transportHTTP && l.Facts.ProtocolVersion >= wire.FirstModern
	tools, diags := s.requests.tools(listing{items: items, cut: l.Facts.Cut, loop: l.Facts.Loop}, headers)
	for i := range tools {
		tools[i].Run = s.confirmed(tools[i])
	}
	s.status.update(func(i *Info) {
		i.State, i.Tools, i.CachedAt = StateCached, countUsable(tools), &l.ListedAt
		i.Transport, i.ProtocolVersion = l.Facts.Transport, l.Facts.ProtocolVersion
		i.ServerInfo, i.Instructions = l.Facts.ServerInfo, l.Facts.Instructions
		i.Prompts, i.Resources = l.Facts.Prompts, l.Facts.Resources
	})
	return tools, diags
}

func (s *Source) storeListing(ctx context.Context, l listing, tools []registry.Tool, counted bool) {
	s.mu.Lock()
	s.listed = tools
	s.mu.Unlock()
	info := s.status.get()
	out := &Listing{Tools: make([][]byte, len(l.items)), Facts: Facts{Cut: l.cut, Loop: l.loop,
		Transport: info.Transport, ProtocolVersion: info.ProtocolVersion, ServerInfo: info.ServerInfo,
		Instructions: info.Instructions, Counted: counted}}
	if counted {
		out.Facts.Prompts, out.Facts.Resources = info.Prompts, info.Resources
	}
	for i, item := range l.items {
		out.Tools[i] = item
	}
	s.opts.Memory.Save(ctx, Known{Listing: out})
}

// errOutdated reports that a call was not made because the tool differs from the one that the
// decision was about.
var errOutdated = errors.New("the server's definition of it differs from the cached one")

// confirmed runs a tool of a stored listing after checking that the server still
// defines it the same way: decisions and approvals apply only to that
// definition. Callers usually renew the listing first; this covers those that
// did not.
func (s *Source) confirmed(t registry.Tool) func(context.Context, registry.Call) (registry.Result, error) {
	return func(ctx context.Context, call registry.Call) (registry.Result, error) {
		if err := s.confirm(ctx, &t); err != nil {
			return registry.Result{}, err
		}
		return t.Run(ctx, call)
	}
}

func (s *Source) confirm(ctx context.Context, t *registry.Tool) error {
	s.confirming.Lock()
	defer s.confirming.Unlock()
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	if listed == nil {
		var err error
		if listed, _, err = s.connectAndList(ctx); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(listed, func(now registry.Tool) bool { return now.ServerTool == t.ServerTool })
	if i < 0 || listed[i].Fingerprint() != t.Fingerprint() {
		return s.opts.errorf("tools/call", errOutdated,
			fmt.Sprintf("tool %s was not called: %s", text.Quote(t.ServerTool), errOutdated))
	}
	return nil
}

// EndKept ends the session with an HTTP server that earlier runs have left open, and reports
// whether there was one.
func (s *Source) EndKept(ctx context.Context) (bool, error) {
	c := &s.pool.connector
	server := c.opts.Server
	if c.opts.Expand != nil && server.Err == nil {
		var err error
		if server, err = c.opts.Expand(ctx, server); err != nil {
			return false, err
		}
	}
	r := c.stored(ctx, server)
	if r == nil {
		return false, nil
	}
	r.forget()
	sess, err := c.continued(ctx, server, &r.Session)
	if err == nil {
		sess.end()
	}
	return true, err
}
