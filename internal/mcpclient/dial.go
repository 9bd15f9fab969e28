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

// dialer starts or reaches a server once.
type dialer struct {
	opts    *Options
	asker   *ask.Handler
	changed func(Change) // the session that clients share reports a change
	keeper  *keep.Keeper // this process is a keeper; nil means it is a run
	cookies cookies
}

// dial starts or reaches the server and performs the handshake with the mode and
// window that how returns; how is called after the start. The session outlives ctx.
// It is returned with an error too, since it describes the failure, and must always
// be ended.
func (d *dialer) dial(ctx context.Context, server settings.Server, over string, how func() attempt) (*session, error) {
	life, sess := d.newSession(ctx, server, over)
	link, err := d.link(life, server, sess)
	if err != nil {
		return sess, err
	}
	a := how()
	sess.wire = wire.Start(life, link, d.wireOptions(ctx, sess))
	return sess, sess.wire.Handshake(ctx, a.mode, a.window)
}

// newSession returns a session without a connection, and the context for one, which does not belong
// to the caller in ctx.
func (d *dialer) newSession(ctx context.Context, server settings.Server, over string) (context.Context, *session) {
	sess := &session{transport: over, limit: &wire.CurrentLimit{}, mask: d.opts.hide}
	sess.limit.Store(d.opts.Limits.frame())
	if over != transportStdio {
		sess.jar = d.cookies.jarOf(d.opts.owner(ctx), server)
	}
	return caller.With(context.WithoutCancel(ctx), nil), sess
}

// cookies are the cookies that a server has set in this run, for the later connections to it. An
// owner of sessions has its own, and so has each set of credentials, because a cookie may stand for
// who sends it.
type cookies struct {
	mu   sync.Mutex
	jars map[cookieKey]http.CookieJar
}

type cookieKey struct {
	owner                any
	address, credentials string
}

// jarOf returns the cookies for an expanded server; [wire.HTTP] sends them to its origin alone.
func (c *cookies) jarOf(owner any, server settings.Server) http.CookieJar {
	key := cookieKey{owner, cmp.Or(server.HTTPURL, server.URL), fmt.Sprintf("%q", server.Headers)}
	c.mu.Lock()
	defer c.mu.Unlock()
	jar := c.jars[key]
	if jar == nil {
		if len(c.jars) > maxOwners { // most of them are gone
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

// capabilities returns what this client can do, without extensions of revision 2026-07-28.
func (d *dialer) capabilities() *mcp.ClientCapabilities {
	c := d.asker.Capabilities()
	if d.opts.Apps {
		c.Extensions = map[string]any{wire.AppsExtension: wire.Apps()}
	}
	return c
}

func (d *dialer) wireOptions(ctx context.Context, sess *session) wire.Options {
	shared := d.opts.owner(ctx) == nil
	o := wire.Options{
		Client:       mcp.Implementation{Name: "toolreg", Version: cmp.Or(d.opts.Version, "dev")},
		Capabilities: d.capabilities(), LogLevel: d.opts.LogLevel, Logger: d.opts.log(), Answer: d.asker.Handle,
		Changed: func(change Change) {
			if shared {
				d.changed(change)
			}
		},
		LogMessage: func(during *ask.Request, level, logger, text string) {
			m := LogMessage{
				Server: d.opts.Server.Name,
				Caller: during.Caller(),
				Level:  level,
				Logger: sess.hide(logger),
				Text:   sess.hide(text),
			}
			d.opts.log().Debug("log message from the server", "level", m.Level, "logger", m.Logger, "text", m.Text)
			if d.opts.OnLog != nil {
				d.opts.OnLog(m)
			}
		},
	}
	if d.keeper != nil {
		o.Answer, o.Notified = d.keeper.Answer, d.keeper.Notified
	}
	return o
}

// link creates the link that carries the messages of a session.
func (d *dialer) link(ctx context.Context, server settings.Server, sess *session) (wire.Link, error) {
	if sess.transport == transportStdio {
		return d.stdio(ctx, server, sess)
	}
	h, err := wire.NewHTTP(server, sess.limit, d.opts.Limits.Frame, sess.jar)
	if err != nil {
		return nil, err
	}
	sess.http = h
	if given := d.opts.Server; d.opts.Expand != nil &&
		slices.ContainsFunc(given.Headers, func(p settings.Pair) bool { return secret.CanChange(p.Value) }) {
		h.Reread(func(ctx context.Context) (settings.Server, error) { return d.opts.Expand(ctx, given) })
	}
	// An Authorization header in the settings decides how to log in.
	if d.opts.Auth != nil && !h.HasAuthorization() {
		param := ""
		if sess.transport == transportSSE && server.OAuth != nil {
			param = server.OAuth.TokenParamName
		}
		auth := d.opts.Auth(server)
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

func (d *dialer) stdio(ctx context.Context, server settings.Server, sess *session) (wire.Link, error) {
	spec, err := d.spec(server, d.opts.Environ)
	if err != nil {
		return nil, err
	}
	if lines := d.stderrLines(sess.mask); lines != nil {
		spec.Output = func(_ int, p []byte) { lines(p) }
	}
	if d.keeper != nil {
		spec.Output = func(_ int, p []byte) { d.keeper.Stderr(p) }
	} else { // a kept server outlasts the run that starts it
		spec.Env = tracing.Environ(ctx, spec.Env)
	}
	after, err := d.opts.Confine.Apply(ctx, &spec)
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
	sess.stdio = wire.NewStdio(child.Stdout, child.Stdin, sess.limit, d.opts.log())
	if d.keeper != nil {
		sess.stdio.SkipLong()
	}
	return sess.stdio, nil
}

// spec returns how a stdio server starts, with a part of environ.
func (d *dialer) spec(server settings.Server, environ []string) (process.Spec, error) {
	dir, err := d.folder(server)
	return process.Spec{
		Argv: append([]string{server.Command}, server.Args...),
		Dir:  dir,
		Env: append(append(values.Environment(environ, server.Env, server.InheritEnv), d.opts.Extra...),
			process.ServerVariable+"="+server.Name),
		Guard: d.opts.Guard,
	}, err
}

// folder returns the folder in which a stdio server starts.
func (d *dialer) folder(server settings.Server) (string, error) {
	if server.Cwd == "" && d.opts.Folder != nil {
		dir, err := d.opts.Folder()
		if err != nil {
			return "", fmt.Errorf("it cannot start outside the project, which is not trusted (set its cwd): %w", err)
		}
		d.opts.log().Info("starts outside the project, which is not trusted; cwd would change that", "folder", dir)
		return dir, nil
	}
	return expand.From(d.opts.ProjectRoot, server.Cwd), nil
}

// maxStderrLine is the longest line of a server's stderr that is logged whole, in
// bytes.
const maxStderrLine = 4 << 10

// stderrLines returns a writer that logs the server's stderr by line, or nil if
// nothing is logged.
func (d *dialer) stderrLines(mask func(string) string) func([]byte) {
	if d.opts.Logger == nil {
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
			d.opts.log().Info("server stderr", "line", mask(text.Valid(text.Head(line, maxStderrLine))))
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

// connector starts or reaches a server, in several ways if necessary.
type connector struct {
	dialer

	mu       sync.Mutex
	protocol string // how the server was last reached, in this run or an earlier one; "" means unknown
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
