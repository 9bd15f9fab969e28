package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/settings"
)

// httpRecord is the stored session of an HTTP server with [Keep]. A later run continues it
// without a handshake. nil means the session ends with the run.
type httpRecord struct {
	keep.Session
	ctx    context.Context // without an end, for forget
	folder *keep.Folder
	name   string
	warn   func(error)
}

// save stores the session, again if it was stored before, and reports whether it is stored
// now: another run may have stored its own.
func (r *httpRecord) save(ctx context.Context, again bool) bool {
	stored, err := r.folder.SaveSession(ctx, r.name, &r.Session, again)
	if err != nil {
		r.warn(err)
	}
	return stored
}

// listed stores the tools that the server has listed.
func (r *httpRecord) listed(ctx context.Context, l listing) {
	if r != nil {
		r.Tools, r.Cut = append([]json.RawMessage{}, l.items...), l.cut
		r.save(ctx, true)
	}
}

// forget removes the record, because the server has ended the session.
func (r *httpRecord) forget() {
	if r == nil {
		return
	}
	if err := r.folder.ForgetSession(r.ctx, r.name, &r.Session); err != nil {
		r.warn(err)
	}
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
		Root: c.opts.ProjectRoot, Workspace: c.opts.Workspace, Consent: k.Consent, User: os.Getuid(), Version: c.opts.Version}
	for _, h := range server.Headers {
		p.Headers = append(p.Headers, h.Name+": "+h.Value)
	}
	identity, err := json.Marshal(p)
	if err != nil {
		warn(err)
		return nil
	}
	return &httpRecord{ctx: context.WithoutCancel(ctx), folder: folder, name: folder.Name(k.Origin(), string(identity)), warn: warn}
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
	r := c.recordOf(ctx, server)
	if r == nil {
		return false, nil
	}
	stored := r.folder.Session(r.name)
	if stored == nil {
		return false, nil
	}
	r.Session = *stored
	r.forget()
	sess, err := c.continued(ctx, server, stored)
	if err == nil {
		sess.end()
	}
	return true, err
}

// known returns the tools that the server has listed in a session that this run continues,
// for runs that call one.
func (ls *lister) known(sess *session) (listing, bool) {
	if sess.record == nil || sess.record.Tools == nil || ls.opts.Keep.Lists || ls.fresh.Load() {
		return listing{}, false
	}
	l := listing{items: sess.record.Tools, cut: sess.record.Cut}
	l.pages = append(l.pages, ls.opts.read(l.items))
	return l, true
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
