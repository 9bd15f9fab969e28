package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// errNotKept reports that a server cannot be kept, so that the run starts its own.
var errNotKept = errors.New("the server is not kept")

// attach attaches to the keeper of a server. If the error is errNotKept, the run has to
// start a server of its own.
func (c *connector) attach(ctx context.Context, server settings.Server) (*session, error) {
	life, sess := c.newSession(ctx, server, transportStdio)
	sess.after = func() {}
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
	sess.wire = wire.Start(life, sess.stdio, o)
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

// process returns everything that distinguishes the process of a kept server.
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

// stored returns the session with an HTTP server that an earlier run left open; nil if there is
// none.
func (c *connector) stored(ctx context.Context, server settings.Server) *httpRecord {
	r := c.recordOf(ctx, server)
	if r == nil {
		return nil
	}
	session := r.folder.Session(r.name)
	if session == nil {
		return nil
	}
	r.Session = *session
	return r
}

// resume continues a session that an earlier run left open; nil if there is none. It ends one that
// has expired.
func (c *connector) resume(ctx context.Context, server settings.Server) *session {
	r := c.stored(ctx, server)
	if r == nil {
		return nil
	}
	sess, err := c.continued(ctx, server, &r.Session)
	switch {
	case err != nil:
		r.warn(err)
		return nil
	case time.Since(r.Used) > c.opts.Keep.For:
		r.forget()
		sess.end()
		return nil
	}
	sess.http.Stay()
	sess.record = r
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

// continued returns a connection that continues a stored session, or ends that session.
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

// KeepServer keeps a server until it is no longer used. A [keep.Start] starts the process
// that calls it: in has the description of the server. listening is called when runs can
// attach, or with the reason why they cannot. confiner returns the sandbox of a plan of
// [Keep].
func KeepServer(ctx context.Context, in io.Reader, listening func(error) error,
	confiner func(plan json.RawMessage) (process.Confiner, error)) error {
	spec, err := keep.Read(in)
	var confine process.Confiner
	if err == nil && spec.Plan != nil {
		confine, err = confiner(spec.Plan)
	}
	var k *keep.Keeper
	if err == nil {
		k, err = keep.Listen(ctx, spec)
	}
	if err != nil {
		return errors.Join(err, listening(err))
	}
	defer k.Close()
	if err := listening(nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-k.Stopped():
			cancel()
		case <-ctx.Done():
		}
	}()
	p := spec.Process
	opts := &Options{
		Server: settings.Server{
			Name:       p.Server,
			Command:    p.Command,
			Args:       p.Args,
			Split:      spec.Split,
			Cwd:        p.Dir,
			InheritEnv: true,
			Protocol:   p.Protocol,
		},
		ProjectRoot: p.Root, Workspace: p.Workspace, Environ: p.Env, Version: p.Version,
		ConnectTimeout: spec.ConnectTimeout, Memory: onlyProtocol(spec.Known),
		Limits: Limits{Frame: spec.MaxFrame, Result: spec.MaxMessage}.withDefaults(), Confine: confine,
		Guard: true,
	}
	c := &connector{opts: opts, asker: k.Asker(), changed: func(Change) {}, keeper: k}
	connecting, stop := timing.Limit(ctx, spec.ConnectTimeout, &connectTimeoutError{spec.ConnectTimeout})
	sess, err := c.connect(connecting)
	stop()
	if err != nil {
		failure := &keep.Failure{Phase: "start", Reason: err.Error()}
		if of, ok := errors.AsType[*ServerError](err); ok {
			failure.Phase, failure.Reason = of.Phase, of.Reason
		}
		k.Fail(failure)
		return err
	}
	defer sess.end()
	sess.limit.Store(opts.Limits.result())
	k.Serve(ctx, sess.wire, sess.child.(keep.Child), sess.ending)
	return nil
}
