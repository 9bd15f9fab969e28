package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/text"
)

// dial starts or reaches the server and performs the handshake as how returns,
// which is called after the start. The session outlives ctx; it is returned with an
// error too, since it describes the failure, and must always be ended.
func (s *Source) dial(ctx context.Context, server settings.Server, over string, how func() attempt) (*session, error) {
	life := caller.With(context.WithoutCancel(ctx), nil) // it is nobody's own
	sess := &session{transport: over, limit: &wire.CurrentLimit{}, mask: newMask(s.opts.Server, server)}
	sess.limit.Store(s.opts.Limits.frame())
	link, err := s.link(life, server, sess)
	if err != nil {
		return sess, err
	}
	a := how()
	shared := s.owner(ctx) == nil
	sess.wire = wire.Start(life, link, wire.Options{
		Client: mcp.Implementation{Name: "toolreg", Version: cmp.Or(s.opts.Version, "dev")}, Capabilities: s.asker.Capabilities(),
		LogLevel: s.opts.LogLevel, Logger: s.log(), Answer: s.asker.Handle,
		Changed: func(c Change) {
			if shared {
				s.report(c)
			}
		},
		LogMessage: func(during *ask.Request, level, logger, text string) {
			s.logMessage(LogMessage{Caller: during.Caller(), Level: level, Logger: sess.hide(logger), Text: sess.hide(text)})
		},
	})
	return sess, sess.wire.Handshake(ctx, a.mode, a.window)
}

// link starts or finds what carries the messages of a session.
func (s *Source) link(ctx context.Context, server settings.Server, sess *session) (wire.Link, error) {
	if sess.transport == transportStdio {
		return s.stdio(ctx, server, sess)
	}
	h, err := wire.NewHTTP(server, sess.limit, s.opts.Limits.Frame)
	if err != nil {
		return nil, err
	}
	sess.http = h
	// An Authorization header in the settings decides how to log in.
	if s.opts.Auth != nil && !h.HasAuthorization() {
		param := ""
		if sess.transport == transportSSE && server.OAuth != nil {
			param = server.OAuth.TokenParamName
		}
		h.Authorize(s.opts.Auth(server), param)
	}
	if sess.transport == transportSSE {
		return wire.NewSSE(h), nil
	}
	return h, nil
}

func (s *Source) stdio(ctx context.Context, server settings.Server, sess *session) (wire.Link, error) {
	dir := s.opts.ProjectRoot
	if server.Cwd != "" {
		dir = server.Cwd
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.opts.ProjectRoot, dir)
		}
	}
	spec := process.Spec{
		Argv:   append([]string{server.Command}, server.Args...),
		Dir:    dir,
		Env:    values.Environment(s.opts.Environ, server.Env, server.InheritEnv),
		Output: s.stderrLines(sess.mask),
		Guard:  s.opts.Guard,
	}
	after, err := s.opts.Confine.Apply(ctx, &spec)
	if err != nil {
		return nil, err
	}
	child, err := process.Start(spec)
	if err != nil {
		after()
		return nil, err
	}
	sess.after, sess.confined = after, spec.Confine != nil
	sess.stdio = wire.NewStdio(child, sess.limit, s.log())
	return sess.stdio, nil
}

// maxStderrLine is the longest line of a server's stderr that is logged whole, in
// bytes.
const maxStderrLine = 4 << 10

// stderrLines returns a writer that logs the server's stderr by line, nil for
// no log.
func (s *Source) stderrLines(mask *strings.Replacer) func(int, []byte) {
	if s.opts.Logger == nil {
		return nil
	}
	var rest []byte
	return func(_ int, p []byte) {
		rest = append(rest, p...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok && len(rest) < maxStderrLine {
				return
			}
			rest = after
			s.log().Info("server stderr", "line", mask.Replace(text.Valid(text.Head(line, maxStderrLine))))
		}
	}
}

// logMessage passes on a log message from the server.
func (s *Source) logMessage(m LogMessage) {
	s.log().Debug("log message from the server", "level", m.Level, "logger", m.Logger, "text", m.Text)
	if m.Server = s.opts.Server.Name; s.opts.OnLog != nil {
		s.opts.OnLog(m)
	}
}

func (s *Source) log() *slog.Logger {
	if s.opts.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.opts.Logger.With("server", s.opts.Server.Name)
}
