package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
)

// connector starts or reaches a server, in several ways if necessary.
type connector struct {
	opts    *Options
	asker   *ask.Handler
	changed func(Change) // the session that clients share reports a change
	keeper  *keep.Keeper // this process is a keeper; nil means it is a run
	cookies cookies

	mu       sync.Mutex
	protocol string // how the server was last reached, in this run or an earlier one; "" means unknown
}

// dial starts or reaches the server once and performs the handshake with the mode and window that
// how returns; how is called after the start. The session outlives ctx. It is returned even with an
// error, since it describes the failure, and must always be ended.
func (c *connector) dial(ctx context.Context, server settings.Server, over string, how func() attempt) (*session, error) {
	life, sess := c.newSession(ctx, server, over)
	link, err := c.link(life, server, sess)
	if err != nil {
		return sess, err
	}
	a := how()
	sess.wire = wire.Start(life, link, c.wireOptions(ctx, sess))
	return sess, sess.wire.Handshake(ctx, a.mode, a.window)
}

// newSession returns a session without a connection, and a context for one, without the caller of
// ctx.
func (c *connector) newSession(ctx context.Context, server settings.Server, over string) (context.Context, *session) {
	sess := &session{transport: over, limit: &wire.CurrentLimit{}, mask: c.opts.hide}
	sess.limit.Store(c.opts.Limits.frame())
	if over != transportStdio {
		sess.jar = c.cookies.jarOf(c.opts.owner(ctx), server)
	}
	return caller.With(context.WithoutCancel(ctx), nil), sess
}

// cookies holds the cookies that a server has set in this run, for later connections to it. Each
// owner of a session and each set of credentials has its own, because a cookie may identify the
// sender.
type cookies struct {
	mu   sync.Mutex
	jars map[cookieKey]http.CookieJar
}

type cookieKey struct {
	owner                any
	address, credentials string
}

// jarOf returns the cookies for an expanded server. [wire.HTTP] sends them only to its origin.
func (c *cookies) jarOf(owner any, server settings.Server) http.CookieJar {
	key := cookieKey{owner, cmp.Or(server.HTTPURL, server.URL), fmt.Sprintf("%q", server.Headers)}
	c.mu.Lock()
	defer c.mu.Unlock()
	jar := c.jars[key]
	if jar == nil {
		if len(c.jars) > maxOwners { // most owners are gone by now
			clear(c.jars)
		}
		jar, _ = cookiejar.New(nil) // never fails
		if c.jars == nil {
			c.jars = map[cookieKey]http.CookieJar{}
		}
		c.jars[key] = jar
	}
	return jar
}

// capabilities returns the client capabilities, without extensions of revision 2026-07-28.
func (c *connector) capabilities() *mcp.ClientCapabilities {
	caps := c.asker.Capabilities()
	if c.opts.Apps {
		caps.Extensions = map[string]any{wire.AppsExtension: wire.Apps()}
	}
	return caps
}

func (c *connector) wireOptions(ctx context.Context, sess *session) wire.Options {
	shared := c.opts.owner(ctx) == nil
	o := wire.Options{
		Client:       mcp.Implementation{Name: "toolreg", Version: cmp.Or(c.opts.Version, "dev")},
		Capabilities: c.capabilities(), LogLevel: c.opts.LogLevel, Logger: c.opts.log(), Answer: c.asker.Handle,
		Changed: func(change Change) {
			if shared {
				c.changed(change)
			}
		},
		LogMessage: func(during *ask.Request, level, logger, text string) {
			m := LogMessage{
				Server: c.opts.Server.Name,
				Caller: during.Caller(),
				Level:  level,
				Logger: sess.hide(logger),
				Text:   sess.hide(text),
			}
			c.opts.log().Debug("log message from the server", "level", m.Level, "logger", m.Logger, "text", m.Text)
			if c.opts.OnLog != nil {
				c.opts.OnLog(m)
			}
		},
	}
	if c.keeper != nil {
		o.Answer, o.Notified = c.keeper.Answer, c.keeper.Notified
	}
	return o
}

// link creates the link that carries the messages of a session.
func (c *connector) link(ctx context.Context, server settings.Server, sess *session) (wire.Link, error) {
	if sess.transport == transportStdio {
		return c.stdio(ctx, server, sess)
	}
	h, err := wire.NewHTTP(server, sess.limit, c.opts.Limits.Frame, sess.jar)
	if err != nil {
		return nil, err
	}
	sess.http = h
	if given := c.opts.Server; c.opts.Expand != nil &&
		slices.ContainsFunc(given.Headers, func(p settings.Pair) bool { return secret.CanChange(p.Value) }) {
		h.Reread(func(ctx context.Context) (settings.Server, error) { return c.opts.Expand(ctx, given) })
	}
	// An Authorization header in the settings decides how to log in.
	if c.opts.Auth != nil && !h.HasAuthorization() {
		param := ""
		if sess.transport == transportSSE && server.OAuth != nil {
			param = server.OAuth.TokenParamName
		}
		auth := c.opts.Auth(server)
		if r, ok := auth.(interface{ Registered() bool }); ok {
			sess.registered = r.Registered
		}
		h.Authorize(auth, param)
	}
	if sess.transport == transportSSE {
		return wire.NewSSE(h), nil
	}
	return h, nil
}

func (c *connector) stdio(ctx context.Context, server settings.Server, sess *session) (wire.Link, error) {
	spec, err := c.spec(server, c.opts.Environ)
	if err != nil {
		return nil, err
	}
	if lines := c.stderrLines(sess.mask); lines != nil {
		spec.Output = func(_ int, p []byte) { lines(p) }
	}
	if c.keeper != nil {
		spec.Output = func(_ int, p []byte) { c.keeper.Stderr(p) }
	} else { // a kept server outlasts the run that starts it
		spec.Env = tracing.Environ(ctx, spec.Env)
	}
	after, err := c.opts.Confine.Apply(ctx, &spec)
	if err != nil {
		return nil, err
	}
	child, err := process.Start(spec)
	if err != nil {
		after()
		return nil, err
	}
	sess.after, sess.confined = after, spec.Confine != nil
	sess.child = ownChild{child}
	sess.stdio = wire.NewStdio(child.Stdout, child.Stdin, sess.limit, c.opts.log())
	if c.keeper != nil {
		sess.stdio.SkipLong()
	}
	return sess.stdio, nil
}

// spec returns how to start a stdio server, which gets a part of environ.
func (c *connector) spec(server settings.Server, environ []string) (process.Spec, error) {
	dir, err := c.folder(server)
	return process.Spec{
		Argv: append([]string{server.Command}, server.Args...),
		Dir:  dir,
		Env: append(append(values.Environment(environ, server.Env, server.InheritEnv), c.opts.Extra...),
			process.ServerVariable+"="+server.Name),
		Guard: c.opts.Guard,
	}, err
}

// folder returns the folder in which a stdio server starts.
func (c *connector) folder(server settings.Server) (string, error) {
	if server.Cwd == "" && c.opts.Folder != nil {
		dir, err := c.opts.Folder()
		if err != nil {
			return "", fmt.Errorf("it cannot start outside the project, which is not trusted (set its cwd): %w", err)
		}
		c.opts.log().Info("starts outside the project, which is not trusted; cwd would change that", "folder", dir)
		return dir, nil
	}
	return expand.From(c.opts.ProjectRoot, server.Cwd), nil
}

// maxStderrLine is the longest line of a server's stderr that is logged whole, in
// bytes.
const maxStderrLine = 4 << 10

// stderrLines returns a writer that logs the server's stderr by line, or nil if
// nothing is logged.
func (c *connector) stderrLines(mask func(string) string) func([]byte) {
	if c.opts.Logger == nil {
		return nil
	}
	var rest []byte
	return func(p []byte) {
		rest = append(rest, p...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok && len(rest) < maxStderrLine {
				return
			}
			rest = after
			c.opts.log().Info("server stderr", "line", mask(text.Valid(text.Head(line, maxStderrLine))))
		}
	}
}

// attempt is one way to connect.
type attempt struct {
	transport  string
	mode       wire.Mode
	window     time.Duration
	remembered bool // chosen because it worked in an earlier run
}

// known returns how the server was last reached.
func (c *connector) known(ctx context.Context) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.protocol == "" {
		c.protocol = c.opts.Memory.Protocol(ctx)
	}
	return c.protocol
}

// recordReached records how the server was reached. If an earlier run began the session, that run
// has stored it.
func (c *connector) recordReached(ctx context.Context, sess *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	generation := sess.generation()
	if c.protocol != generation && !sess.continued {
		c.opts.Memory.Save(ctx, Known{Protocol: generation})
	}
	c.protocol = generation
}
