//lint:file-ignore SA1019 what a later revision deprecates, servers of today still ask for: roots and sampling

package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
)

// dial starts or reaches the server and shakes hands. The session outlives ctx;
// it is returned beside an error too, to tell of the failure, and is to be
// ended in any case.
func (s *Source) dial(ctx context.Context, server settings.Server, a attempt) (*session, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	sess := &session{transport: a.transport, limit: &limit{}, cancel: cancel, mask: newMask(s.opts.Server, server)}
	sess.limit.store(s.opts.Limits.frame())
	transport, err := s.transport(server, sess)
	if err != nil {
		return sess, err
	}
	wired := &wireTransport{inner: transport, opts: wireOptions{
		mode: a.mode, window: a.window, greeting: s.greeting(), version: &sess.version, log: s.log(), validated: a.transport == transportStdio,
		answer: s.answer, note: func(level, logger, text string) { s.note(level, sess.hide(logger), sess.hide(text)) },
	}}
	if t, ok := transport.(*mcp.StreamableClientTransport); ok {
		wired.opts.barred = sess.guard.barred
		wired.opts.listen = func(ctx context.Context, session string, hear func(jsonrpc.Message)) {
			l := &listener{guard: sess.guard, endpoint: t.Endpoint, limit: s.opts.Limits.Frame, log: s.log(), hear: hear}
			l.listen(ctx, session)
		}
	}
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
	guard.auth = s.authorizer(server, guard)
	sess.guard = guard
	event := int(s.opts.Limits.Result)
	if sess.transport == transportSSE {
		if server.OAuth != nil {
			guard.tokenParam = server.OAuth.TokenParamName
		}
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

// newClient returns the SDK's client. It answers ping and roots/list alone;
// what needs a person is answered in question.go and converse.go.
func (s *Source) newClient() *mcp.Client {
	c := mcp.NewClient(s.implementation(), &mcp.ClientOptions{
		Capabilities:   s.capabilities(),
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	if root, ok := s.root(); ok {
		c.AddRoots(&root)
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
	if s.opts.Sample != nil {
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	return c
}

// note hands a log message of the server on.
func (s *Source) note(level, logger, text string) {
	s.log().Debug("log message of the server", "level", level, "logger", logger, "text", text)
	if s.opts.OnLog != nil {
		s.opts.OnLog(LogMessage{Server: s.opts.Server.Name, Level: level, Logger: logger, Text: text})
	}
}

func (s *Source) log() *slog.Logger {
	if s.opts.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.opts.Logger.With("server", s.opts.Server.Name)
}
