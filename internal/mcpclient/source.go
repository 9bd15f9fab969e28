package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
)

// Source is one MCP server as a source of tools. It implements
// [registry.Source] and io.Closer, and is safe for concurrent use.
type Source struct {
	opts          *Options
	status        *status
	pool          *pool          // connects
	lists         *lister        // lists
	requests      *requester     // calls
	subscriptions *subscriptions // follows changes

	mu         sync.Mutex
	discovered bool            // Discover was called before, so ask the server
	listed     []registry.Tool // listed by the server in this run; nil before that

	confirming sync.Mutex // one listing is requested at a time
}

// New returns a Source that has started nothing yet.
func New(opts Options) *Source {
	opts.Limits = opts.Limits.withDefaults()
	asker := ask.New(ask.Options{
		Callbacks: opts.Callbacks, Server: opts.Server.Name, Workspace: opts.Workspace,
		MaxSamples: opts.Limits.Samples, MaxParams: opts.Limits.Frame, Logger: opts.log(),
	})
	s := &Source{opts: &opts}
	s.status = &status{onState: opts.OnState, info: Info{
		Name:      opts.Server.Name,
		Transport: transportOf(opts.Server),
		State:     StateDisconnected,
		Origin:    opts.Server.Origin.String(),
	}}
	s.pool = &pool{opts: &opts, status: s.status, opened: s.opened}
	s.requests = &requester{opts: &opts, asker: asker, pool: s.pool}
	s.subscriptions = &subscriptions{requests: s.requests}
	s.pool.connector = connector{opts: &opts, asker: asker, changed: s.subscriptions.report}
	s.lists = &lister{opts: &opts, pool: s.pool}
	return s
}

// opened is called with each new session.
func (s *Source) opened(ctx context.Context, sess *session) {
	server := sess.wire.Server()
	s.status.update(func(i *Info) {
		i.Transport, i.Protocol, i.ProtocolVersion = sess.transport, sess.generation(), sess.wire.Revision()
		i.ServerInfo, i.Instructions = server.Info, server.Instructions
	})
	if s.opts.owner(ctx) == nil {
		s.subscriptions.opened(ctx, sess)
	}
}

// Name returns "mcp:SERVER".
func (s *Source) Name() string { return registry.MCPPrefix + s.opts.Server.Name }

// Discover connects to the server and lists its tools, both within the connect timeout. The first
// call may use a stored listing instead (Options.Listings); later calls always ask the server. A
// server that the settings disable is not connected and has no tools. The error is a *ServerError,
// or a *settings.Error if the entry is invalid; if ctx ended first, it wraps the cause of ctx.
func (s *Source) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if setting, off := s.opts.disabledBy(); off {
		s.status.set(StateDisabled, nil)
		return nil, []registry.Diagnostic{s.opts.diagnose(registry.SeverityInfo, "server_disabled", "",
			fmt.Sprintf("server %q is disabled (%s)", s.opts.Server.Name, setting), "")}, nil
	}
	s.mu.Lock()
	again := s.discovered
	s.discovered = true
	s.mu.Unlock()
	if !again && s.opts.Server.Err == nil {
		tools, diags, ok, err := s.loadListing(ctx)
		if err != nil {
			s.status.set(StateFailed, err)
			return nil, nil, err
		}
		if ok {
			return tools, diags, nil
		}
		if err := s.recentFailure(ctx); err != nil {
			s.status.set(failedState(err), err)
			return nil, nil, err
		}
	}
	tools, diags, err := s.connectAndList(ctx)
	if s.opts.Failures != nil && s.opts.Server.Err == nil && ctx.Err() == nil && !errors.Is(err, wire.ErrClosed) {
		s.opts.Failures.SaveFailure(ctx, err)
	}
	return tools, diags, err
}

// recentFailure returns how the server failed in an earlier run, or nil if it
// should be asked.
func (s *Source) recentFailure(ctx context.Context) error {
	if s.opts.Failures == nil {
		return nil
	}
	return s.opts.Failures.LoadFailure(ctx)
}

// connectAndList connects to the server and lists its tools.
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
		if sess == before { // it is alive, and calls may be running
			s.status.set(StateConnected, nil)
		} else {
			s.status.set(failedState(err), err)
			sess.end()
		}
		s.pool.failedNow(ctx, err)
		return nil, nil, err
	}
	sess.limit.Store(s.opts.Limits.result())
	s.status.update(func(i *Info) { i.Tools, i.ConnectMs = usable(tools), time.Since(start).Milliseconds() })
	s.status.set(StateConnected, nil)
	if s.opts.ListOnly {
		go sess.end() // Close waits for it
	}
	return tools, diags, nil
}

// discover lists the server's tools and, if requested, counts its prompts and
// resources. It returns the session used last.
func (s *Source) discover(ctx context.Context, sess *session) (*session, []registry.Tool, []registry.Diagnostic, error) {
	caps := sess.wire.Server().Capabilities
	var l listing
	if caps.Tools != nil {
		var err error
		if l, sess, err = s.lists.relist(ctx, sess, listTools); err != nil {
			return sess, nil, nil, err
		}
	}
	tools, diags := s.tools(l, sess.hasParamHeaders())
	counted := s.opts.Counts
	if counted {
		var failed []registry.Diagnostic
		sess, failed = s.countOthers(ctx, sess, caps)
		counted = len(failed) == 0
		diags = append(diags, failed...)
	}
	s.storeListing(ctx, l, tools, counted)
	return sess, tools, diags, nil
}

func (s *Source) countOthers(ctx context.Context, sess *session, caps mcp.ServerCapabilities) (*session, []registry.Diagnostic) {
	var diags []registry.Diagnostic
	count := func(offered bool, key string) int {
		if !offered {
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
	prompts, resources := count(caps.Prompts != nil, listPrompts), count(caps.Resources != nil, listResources)
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
	err := s.pool.paused(nil)
	if err == nil {
		_, err = s.pool.get(ctx)
	}
	if err == nil {
		return nil
	}
	err = cmp.Or(s.pool.paused(nil), err)
	s.status.set(failedState(err), err)
	return err
}

// Lost reports whether the shared process has ended although clients are subscribed to
// changes of resources.
func (s *Source) Lost() bool {
	sess := s.pool.shared()
	return s.subscriptions.any() && (sess == nil || !sess.wire.Alive())
}

// Paused reports whether the server must not be started yet because it failed
// several times in a row.
func (s *Source) Paused() bool { return s.pool.paused(nil) != nil }

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
