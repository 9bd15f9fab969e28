package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
)

const (
	// grace is the time a server gets after its stdin was closed, and again
	// after SIGTERM, before its group is killed.
	grace = 300 * time.Millisecond
	// maxTeardown bounds the end of a session in all.
	maxTeardown = 2 * time.Second
	// lastWords is how long a dying server's end is awaited for an error text.
	lastWords = 200 * time.Millisecond
)

// session is one connection to a server, from its start to its end.
type session struct {
	transport string // stdio, http, sse
	client    *mcp.ClientSession
	wire      *wire
	child     *process.Child         // stdio
	lines     *lineReader            // stdio
	guard     *httpGuard             // http and sse
	limit     *atomic.Int64          // bytes of one message
	version   atomic.Pointer[string] // that initialize agreed on, nil before
	mask      *strings.Replacer
	cancel    context.CancelCauseFunc // ends everything that the session does
	once      sync.Once
	logs      sync.Once // log messages were asked for

	mu     sync.Mutex
	serial int
	calls  map[int]context.CancelCauseFunc // running calls
}

// dial starts or reaches the server and shakes hands. The session outlives ctx;
// it is returned beside an error too, to tell of the failure, and is to be
// ended in any case.
func (s *Source) dial(ctx context.Context, server settings.Server, a attempt) (*session, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	sess := &session{transport: a.transport, limit: &atomic.Int64{}, cancel: cancel, mask: newMask(s.opts.Server, server)}
	sess.limit.Store(s.opts.Limits.Frame)
	transport, err := s.transport(server, sess)
	if err != nil {
		return sess, err
	}
	wired := &wireTransport{inner: transport, opts: wireOptions{
		mode: a.mode, window: a.window, greeting: s.greeting(), version: &sess.version, log: s.log(), validated: a.transport == transportStdio,
	}}
	// The SDK keeps the context of Connect for the life of some transports, so
	// the deadline reaches it through the session's own.
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	sess.client, err = s.newClient().Connect(life, wired, a.options())
	sess.wire = wired.made
	if !stop() {
		return sess, context.Cause(ctx)
	}
	if err != nil {
		return sess, err
	}
	if sess.guard != nil {
		sess.guard.forget()
	}
	return sess, nil
}

func (s *Source) transport(server settings.Server, sess *session) (mcp.Transport, error) {
	if sess.transport == transportStdio {
		return s.stdio(server, sess)
	}
	guard, endpoint, err := newHTTPGuard(server, sess.limit, &sess.version)
	if err != nil {
		return nil, err
	}
	sess.guard = guard
	event := int(s.opts.Limits.Result)
	if sess.transport == transportSSE {
		return &mcp.SSEClientTransport{Endpoint: endpoint, HTTPClient: guard.client(), MaxEventSize: event}, nil
	}
	return &mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: guard.client(), MaxEventSize: event,
		MaxRetries: 2, DisableStandaloneSSE: true,
	}, nil
}

func (s *Source) stdio(server settings.Server, sess *session) (mcp.Transport, error) {
	dir := s.opts.ProjectRoot
	if server.Cwd != "" {
		dir = server.Cwd
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.opts.ProjectRoot, dir)
		}
	}
	child, err := process.Start(process.Spec{
		Argv:   append([]string{server.Command}, server.Args...),
		Dir:    dir,
		Env:    settings.Environment(s.opts.Environ, server.Env, server.InheritEnv),
		Output: s.stderrLines(sess.mask),
	})
	if err != nil {
		return nil, err
	}
	sess.child = child
	sess.lines = newLineReader(child.Stdout, sess.limit, s.log())
	return &stdioTransport{child: child, lines: sess.lines}, nil
}

// stderrLines returns what logs the server's stderr by line, nil for no log.
func (s *Source) stderrLines(mask *strings.Replacer) func(int, []byte) {
	if s.opts.Logger == nil {
		return nil
	}
	var rest []byte
	return func(_ int, p []byte) {
		rest = append(rest, p...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok && len(rest) < maxNote {
				return
			}
			rest = after
			s.log().Info("server stderr", "line", mask.Replace(cut(string(line), maxNote)))
		}
	}
}

// greeting returns the params of initialize as the SDK's client sends them.
func (s *Source) greeting() json.RawMessage {
	caps := s.capabilities()
	if caps.RootsV2 != nil {
		caps.Roots = *caps.RootsV2
	}
	params, err := json.Marshal(&mcp.InitializeParams{ProtocolVersion: lastLegacy, ClientInfo: s.implementation(), Capabilities: caps})
	if err != nil {
		return json.RawMessage("{}") // plain structs: cannot fail
	}
	return params
}

func (s *Source) implementation() *mcp.Implementation {
	version := s.opts.Version
	if version == "" {
		version = "dev"
	}
	return &mcp.Implementation{Name: "toolreg", Version: version}
}

func (s *Source) newClient() *mcp.Client {
	c := mcp.NewClient(s.implementation(), &mcp.ClientOptions{
		Capabilities:       s.capabilities(),
		ElicitationHandler: s.elicit,
	})
	if s.opts.Workspace != "" {
		path := filepath.ToSlash(s.opts.Workspace)
		if !strings.HasPrefix(path, "/") {
			path = "/" + path // a drive letter
		}
		c.AddRoots(&mcp.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(s.opts.Workspace)})
	}
	return c
}

func (s *Source) capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
	if s.opts.Workspace != "" {
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	return c
}

func (s *Source) log() *slog.Logger {
	if s.opts.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.opts.Logger.With("server", s.opts.Server.Name)
}

// modern reports whether the session speaks revision 2026-07-28 or later.
func (c *session) modern() bool {
	return c.client.InitializeResult().ProtocolVersion >= firstModern
}

// generation returns what Options.Known of a later run should be.
func (c *session) generation() string {
	switch {
	case c.transport == transportSSE:
		return knownSSE
	case c.modern():
		return knownModern
	}
	return knownLegacy
}

// alive reports whether calls can still be made.
func (c *session) alive() bool {
	select {
	case <-c.wire.eof:
		return false
	case <-c.wire.done:
		return false
	default:
		return true
	}
}

// begin counts a call in, so that end can cancel it.
func (c *session) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	n := c.serial
	if c.calls == nil {
		c.calls = map[int]context.CancelCauseFunc{}
	}
	c.calls[n] = cancel
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, n)
	}
}

// end ends the session within maxTeardown: its calls, the connection, the
// process group. It may be called more than once and from several goroutines;
// each call returns when all is over.
func (c *session) end() {
	c.once.Do(func() {
		c.mu.Lock()
		for _, cancel := range c.calls {
			cancel(errClosed)
		}
		c.mu.Unlock()
		c.cancel(errClosed)
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.close()
		}()
		timer := time.NewTimer(maxTeardown)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
		}
	})
}

func (c *session) close() {
	if c.wire != nil {
		_ = c.wire.Close() // what a server says to its end changes nothing
	}
	if c.child != nil {
		c.child.Stop(grace)
		_ = c.child.Stdout.Close()
	}
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.wire != nil {
		c.wire.wait()
	}
	if c.guard != nil {
		c.guard.base.CloseIdleConnections()
	}
}

// serverInfo returns the server's name and version as it sent them.
func (c *session) serverInfo() json.RawMessage {
	result := c.wire.state().result
	if info := member(result, "serverInfo"); info != nil {
		return info
	}
	return member(member(result, "_meta"), mcp.MetaKeyServerInfo)
}
