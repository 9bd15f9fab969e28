package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// errNotKept reports that a server cannot be kept, so that the run starts its own.
var errNotKept = errors.New("the server is not kept")

// attach attaches to the keeper of a server. If the error is errNotKept, the run has to
// start a server of its own.
func (c *connector) attach(ctx context.Context, server settings.Server) (*session, error) {
	sess := &session{transport: transportStdio, limit: &wire.CurrentLimit{},
		mask: c.opts.hide, after: func() {}}
	sess.limit.Store(c.opts.Limits.frame())
	conn, err := c.keeperOf(ctx, server, sess)
	if conn != nil {
		sess.child, sess.kept, sess.continued = conn, conn, !conn.Started
		sess.stdio = wire.NewStdio(conn.Stdout(), conn.Stdin(), sess.limit, c.opts.log())
		sess.stdio.Checked() // by the keeper, in its own session
	}
	if err != nil {
		defer sess.end()
		failure, failed := errors.AsType[*keep.Failure](err)
		switch {
		case failed:
			return nil, &ServerError{Server: c.opts.Server.Name,
				Phase: failure.Phase, Reason: sess.hide(failure.Reason)}
		case ctx.Err() != nil:
			return nil, c.opts.errorf("initialize", err, sess.failure(err))
		case c.opts.Keep.Use == MustKeep:
			return nil, c.opts.errorf("start", err, "it cannot be kept: "+text.Escape(err.Error()))
		case !errors.Is(err, keep.ErrNone):
			c.opts.log().Info("the server is not kept; this run starts its own", "reason", err.Error())
		}
		return nil, errNotKept
	}
	o := c.wireOptions(ctx, sess)
	o.Notified = func(_ *ask.Request, method string, params json.RawMessage) bool {
		return conn.Notified(method, params)
	}
	conn.Unclear = func(id int64) { sess.wire.MarkUnclear(id) } // there is no such id before wire is set
	conn.Dropped = func(id int64, reason string) { sess.wire.Fail(id, &wire.AnswerError{Reason: reason}) }
	if c.opts.Refused != nil {
		conn.Declined = func(what, reason string) { c.opts.Refused(server.Name, what, reason) }
	}
	sess.wire = wire.Start(caller.With(context.WithoutCancel(ctx), nil), sess.stdio, o)
	sess.wire.Continue(conn.Session)
	return sess, nil
}

// keeperOf attaches to the keeper of a server, and starts it if necessary.
func (c *connector) keeperOf(ctx context.Context, server settings.Server, sess *session) (*keep.Conn, error) {
	k := c.opts.Keep
	folder, err := k.Folder(ctx)
	if err == nil {
		err = folder.HasRoom()
	}
	if err != nil {
		return nil, err
	}
	p, err := c.process(ctx, server)
	if err != nil {
		return nil, err
	}
	ordered := p // another order of its variables makes no difference
	ordered.Env = slices.Sorted(slices.Values(p.Env))
	identity, err := json.Marshal(ordered)
	if err != nil {
		return nil, err
	}
	var start *keep.Start
	if k.Use != LookKept {
		start = &keep.Start{Argv: k.Command, Env: process.BaseEnv(c.opts.Environ), Spec: func() *keep.Spec {
			limit := cmp.Or(c.opts.ConnectTimeout, server.ConnectTimeout)
			return &keep.Spec{
				Process: p, Split: server.Split, Known: c.known(ctx), ConnectTimeout: limit, Keep: k.For,
				MaxFrame: c.opts.Limits.Frame, MaxMessage: c.opts.Limits.Result,
			}
		}}
	}
	var stderr func(string)
	if lines := c.stderrLines(sess.mask); lines != nil {
		stderr = func(s string) { lines([]byte(s)) }
	}
	return folder.Attach(ctx, keep.Attach{Name: folder.Name(k.Origin(), string(identity)),
		Looks: k.Use == LookKept, Lists: k.Lists}, start, stderr)
}

// process returns all that makes a kept server.
func (c *connector) process(ctx context.Context, server settings.Server) (keep.Process, error) {
	k := c.opts.Keep
	environ := slices.DeleteFunc(slices.Clone(c.opts.Environ), isOfOneRun)
	spec, err := c.spec(server, environ)
	if err != nil {
		return keep.Process{}, err
	}
	if server.InheritEnv {
		spec.Env = append(spec.Env, "PWD="+spec.Dir, process.ChildDepth(nil))
	}
	var plan json.RawMessage
	if k.Plan != nil {
		if plan, err = k.Plan(ctx, &spec); err != nil {
			return keep.Process{}, err
		}
	}
	return keep.Process{Server: server.Name, Command: server.Command, Args: server.Args, Dir: spec.Dir,
		Env: spec.Env, Protocol: server.Protocol, Plan: plan, Root: c.opts.ProjectRoot, Workspace: c.opts.Workspace,
		Consent: k.Consent, User: os.Getuid(), Version: c.opts.Version}, nil
}

// isOfOneRun reports whether a variable differs from run to run, so that it cannot be
// passed on to a server that outlasts the run.
func isOfOneRun(entry string) bool {
	name, _, _ := expand.Cut(entry)
	return strings.HasPrefix(name, "TOOLREG_") ||
		slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_", "TERM",
			"COLUMNS", "LINES", "TRACEPARENT", "TRACESTATE", "BAGGAGE"}, name)
}

// recordOf returns where the session with an HTTP server is stored, or nil if it is not.
func (c *connector) recordOf(ctx context.Context, server settings.Server) *httpRecord {
	k := c.opts.Keep
	if k == nil || transportOf(server) != transportHTTP || c.opts.owner(ctx) != nil {
		return nil
	}
	warn := func(err error) { c.opts.log().Info("the session is not kept", "reason", err.Error()) }
	folder, err := k.Folder(ctx)
	if err != nil {
		warn(err)
		return nil
	}
	p := keep.Process{Server: server.Name, URL: cmp.Or(server.HTTPURL, server.URL), Protocol: server.Protocol,
		Root: c.opts.ProjectRoot, Workspace: c.opts.Workspace,
		Consent: k.Consent, User: os.Getuid(), Version: c.opts.Version}
	for _, h := range server.Headers {
		p.Headers = append(p.Headers, h.Name+": "+h.Value)
	}
	identity, err := json.Marshal(p)
	if err != nil {
		warn(err)
		return nil
	}
	return &httpRecord{ctx: context.WithoutCancel(ctx), folder: folder,
		name: folder.Name(k.Origin(), string(identity)), warn: warn}
}

// resume continues the session that an earlier run has left open; nil if there is none. If
// its time is up, resume ends it.
func (c *connector) resume(ctx context.Context, server settings.Server) *session {
	r := c.recordOf(ctx, server)
	if r == nil {
		return nil
	}
	stored := r.folder.Session(r.name)
	if stored == nil {
		return nil
	}
	sess, err := c.continued(ctx, server, stored)
	switch {
	case err != nil:
		r.warn(err)
		return nil
	case time.Since(stored.Used) > c.opts.Keep.For:
		r.Session = *stored
		r.forget()
		sess.end()
		return nil
	}
	sess.http.Stay()
	r.Session, sess.record = *stored, r
	if c.opts.Keep.Use == LookKept {
		return sess
	}
	learned := !r.Streamless && sess.wire.ListenAgain(ctx)
	r.Streamless = r.Streamless || learned
	if learned || time.Since(r.Used) > c.opts.Keep.For/10 {
		r.Used = time.Now()
		r.save(ctx, true)
	}
	return sess
}

// continued returns a connection in a stored session, which it ends.
func (c *connector) continued(ctx context.Context, server settings.Server, stored *keep.Session) (*session, error) {
	life, sess := c.newSession(ctx, server, transportHTTP)
	sess.continued = true
	link, err := c.link(life, server, sess)
	if err != nil {
		return nil, err
	}
	sess.http.Resume(stored.ID)
	sess.wire = wire.Start(life, link, c.wireOptions(ctx, sess))
	sess.wire.Continue(stored.Opening)
	return sess, nil
}

// leaveOpen lets later runs continue a new session with an HTTP server, unless another run has
// left one open in the meantime.
func (c *connector) leaveOpen(ctx context.Context, server settings.Server, sess *session) {
	if sess.transport != transportHTTP || c.opts.Keep != nil && c.opts.Keep.Use == LookKept {
		return
	}
	r := c.recordOf(ctx, server)
	if r == nil {
		return
	}
	now := time.Now()
	r.Session = keep.Session{ID: sess.http.SessionID(), Opening: sess.wire.Opening(), Since: now, Used: now}
	if r.save(ctx, false) { // otherwise no later run could continue it, or end it
		sess.http.Stay()
		sess.record = r
	}
}

// keptState returns the state of what outlasts the run, nil if nothing does.
func (c *session) keptState() *keep.State {
	switch {
	case c.kept != nil:
		return &c.kept.State
	case c.record != nil:
		return &keep.State{Since: c.record.Since, Idle: time.Since(c.record.Used).Milliseconds()}
	}
	return nil
}
