package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// Source is one MCP server as a source of tools. It implements
// [registry.Source] and io.Closer, and is safe for concurrent use.
type Source struct {
	opts  Options
	asker *ask.Handler

	mu         sync.Mutex
	info       Info
	sessions   map[any]*session      // by owner; one of nobody in particular has the owner nil
	connecting map[any]chan struct{} // by owner: closed when its connection is made, or has failed
	failures   map[any]failures      // by owner
	closed     bool
	cancels    map[int]context.CancelCauseFunc // for the connections in progress
	attempts   int                             // so far

	discovered bool            // Discover was called before: ask the server
	listed     []registry.Tool // what the server listed in this run, nil until then

	changed    func(Change)            // nil: nobody follows
	subscribed map[string]subscription // by the URI of the resource

	confirming sync.Mutex // one listing is requested at a time
}

// New returns a Source that has started nothing yet.
func New(opts Options) *Source {
	opts.Limits = opts.Limits.withDefaults()
	s := &Source{opts: opts, info: Info{
		Name:      opts.Server.Name,
		Transport: transportOf(opts.Server),
		State:     StateDisconnected,
		Origin:    opts.Server.Origin.String(),
	}}
	s.asker = ask.New(ask.Options{
		Callbacks: opts.Callbacks, Server: opts.Server.Name, Workspace: opts.Workspace,
		MaxSamples: opts.Limits.Samples, MaxParams: opts.Limits.Frame, Logger: s.log(),
	})
	return s
}

// Name returns "mcp:SERVER".
func (s *Source) Name() string { return registry.MCPPrefix + s.opts.Server.Name }

// Discover connects to the server and lists its tools, both within the connect timeout. The first
// call may use a stored listing instead (Options.Listings); later calls always ask the server. A
// server that the settings disable is not connected and has no tools. The error is a *ServerError,
// or the *settings.Error of an entry with mistakes; if ctx ended first, it wraps the cause of that.
func (s *Source) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if setting, off := s.disabledBy(); off {
		s.setState(StateDisabled, nil)
		return nil, []registry.Diagnostic{s.diagnose(registry.SeverityInfo, "server_disabled", "",
			fmt.Sprintf("server %q is disabled (%s)", s.opts.Server.Name, setting), "")}, nil
	}
	s.mu.Lock()
	again := s.discovered
	s.discovered = true
	s.mu.Unlock()
	if !again && s.opts.Server.Err == nil {
		tools, diags, ok, err := s.loadListing(ctx)
		if err != nil {
			s.setState(StateFailed, err)
			return nil, nil, err
		}
		if ok {
			return tools, diags, nil
		}
		if err := s.recentFailure(ctx); err != nil {
			s.setState(failedState(err), err)
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

// connectAndList connects and lists.
func (s *Source) connectAndList(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	start := time.Now()
	ctx, stop := s.deadline(ctx)
	defer stop()
	s.setState(StateConnecting, nil)
	before := s.shared()
	sess, err := s.session(ctx)
	if err != nil {
		s.setState(failedState(err), err)
		return nil, nil, err
	}
	s.setState(StateListing, nil)
	sess, tools, diags, err := s.discover(ctx, sess)
	if err != nil {
		if sess == before { // it lives, and calls may be running
			s.setState(StateConnected, nil)
		} else {
			s.setState(failedState(err), err)
			sess.end()
		}
		s.failedNow(ctx, err)
		return nil, nil, err
	}
	sess.limit.Store(s.opts.Limits.result())
	s.update(func(i *Info) { i.Tools, i.ConnectMs = usable(tools), time.Since(start).Milliseconds() })
	s.setState(StateConnected, nil)
	if s.opts.ListOnly {
		go sess.end() // Close waits for it
	}
	return tools, diags, nil
}

// shared returns the session that clients share, nil if there is none.
func (s *Source) shared() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[nil]
}

// disabledBy returns the setting that disables the server.
func (s *Source) disabledBy() (string, bool) {
	server := s.opts.Server
	switch {
	case server.Excluded != nil:
		return server.Excluded.String(), true
	case server.Disabled:
		return server.Origin.String() + ": disabled", true
	}
	return "", false
}

// deadline sets the time limit on connecting and listing, and makes Close end
// both.
func (s *Source) deadline(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.attempts++
	n := s.attempts
	if s.cancels == nil {
		s.cancels = map[int]context.CancelCauseFunc{}
	}
	s.cancels[n] = cancel
	if s.closed {
		cancel(wire.ErrClosed)
	}
	s.mu.Unlock()
	done := func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, n)
	}
	limit := s.opts.ConnectTimeout
	if limit == 0 {
		limit = s.opts.Server.ConnectTimeout
	}
	if limit <= 0 {
		return ctx, done
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, &connectTimeoutError{limit})
	return ctx, func() { stop(); done() }
}

// open connects and stores the session in the Source.
func (s *Source) open(ctx context.Context) (*session, error) {
	sess, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	server := sess.wire.Server()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		sess.end()
		return nil, s.errorf("initialize", wire.ErrClosed, wire.ErrClosed.Error())
	}
	if s.sessions == nil {
		s.sessions = map[any]*session{}
	}
	s.sessions[s.owner(ctx)], sess.used = sess, time.Now()
	s.info.Transport, s.info.ProtocolVersion = sess.transport, sess.wire.Revision()
	s.info.ServerInfo, s.info.Instructions = server.Info, server.Instructions
	s.info.Protocol = sess.generation()
	s.mu.Unlock()
	if s.opts.Protocols != nil {
		s.opts.Protocols.SaveProtocol(ctx, sess.generation())
	}
	if s.owner(ctx) == nil {
		s.listenForChanges(ctx, sess)
		s.subscribeAgain(ctx, sess)
	}
	return sess, nil
}

// session returns the session, or a new one if there is none or it was lost.
func (s *Source) session(ctx context.Context) (*session, error) {
	owner := s.owner(ctx)
	done, err := s.connectAlone(ctx, owner)
	if err != nil {
		return nil, s.errorf("start", err, err.Error())
	}
	defer done()
	s.mu.Lock()
	sess, several, closed := s.sessions[owner], len(s.sessions), s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, s.errorf("start", wire.ErrClosed, wire.ErrClosed.Error())
	case sess != nil && sess.wire.Alive():
		return sess, nil
	case sess != nil:
		s.lost(owner, sess)
	case several > maxOwners:
		return nil, s.errorf("start", nil, fmt.Sprintf("more than %d clients have a process of their own (perClient)", maxOwners))
	}
	if err := s.paused(owner); err != nil {
		return nil, err
	}
	if sess, err = s.open(ctx); err != nil {
		s.failedNow(ctx, err)
	}
	return sess, err
}

// liveSession returns the session for a call, or a new one if the old one was lost: the
// call has not reached the server yet.
func (s *Source) liveSession(ctx context.Context) (*session, error) {
	s.mu.Lock()
	sess, closed := s.sessions[s.owner(ctx)], s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, s.errorf("tools/call", wire.ErrClosed, wire.ErrClosed.Error())
	case sess != nil && sess.wire.Alive():
		return sess, nil
	}
	ctx, stop := s.deadline(ctx)
	defer stop()
	sess, err := s.session(ctx)
	if err != nil {
		s.setState(failedState(err), err)
		return nil, err
	}
	sess.limit.Store(s.opts.Limits.result())
	s.setState(StateConnected, nil)
	if s.owner(ctx) == nil {
		s.report(Change{List: listTools})
	}
	return sess, nil
}

// maxOwners limits how many clients have a process of their own at once.
const maxOwners = 100

// owner returns whose session a call of ctx uses: with perClient its client's, else
// the one that all share.
func (s *Source) owner(ctx context.Context) any {
	if c := caller.From(ctx); c != nil && s.opts.Server.PerClient {
		return c.Owner
	}
	return nil
}
