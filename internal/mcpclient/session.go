package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
)

const (
	// eofGrace is the time a server has to exit after its stdin was closed, termGrace
	// the time after SIGTERM before its group is killed: a server that runs in a
	// container or saves a file on exit needs more than an instant.
	eofGrace  = 300 * time.Millisecond
	termGrace = 1300 * time.Millisecond
	// maxEnd limits the time for ending a session.
	maxEnd = 2 * time.Second
)

// The names of the transports in Info.
const (
	transportStdio = "stdio"
	transportHTTP  = "http"
	transportSSE   = "sse"
)

func transportOf(s settings.Server) string {
	switch {
	case s.Type == transportSSE:
		return transportSSE
	case s.HTTPURL != "" || s.URL != "":
		return transportHTTP
	}
	return transportStdio
}

// The generations of the protocol, as [Known] names them.
const (
	knownLegacy = "legacy"
	knownModern = "modern"
	knownSSE    = "sse"
)

// session is one connection to a server, from start to end: the protocol session, its
// transport, and its usage.
type session struct {
	transport string        // stdio, http, sse
	wire      *wire.Session // nil if there is no connection
	stdio     *wire.Stdio   // nil for others
	child     child         // with stdio: the server's process
	after     func()        // to call when the child has ended
	kept      *keep.Conn    // the child belongs to a keeper; nil means to this run
	record    *httpRecord   // the HTTP session outlasts the run; nil means it ends with it
	continued bool          // an earlier run began it
	confined  bool          // the child runs in the sandbox
	http      *wire.HTTP    // http and sse
	jar       http.CookieJar

	registered func() bool // whether the login's client registered itself; nil without a login
	limit      *wire.CurrentLimit
	mask       func(string) string // see hide
	once       sync.Once

	usage
}

// child is the process of a stdio server: a *process.Child, or a *keep.Conn to the process
// that has it.
type child interface {
	Done() <-chan struct{} // closed when it has ended, or the run has detached from it
	Ending() string        // how it ended, in words
	StderrTail() string
	Stop(quiet, grace time.Duration)
}

type ownChild struct{ *process.Child }

func (c ownChild) Ending() string { return fmt.Sprintf("it exited (%s)", c.Exit()) }

// usage records how a session is used, and whether it still is.
type usage struct {
	mu     sync.Mutex
	serial int
	calls  map[int]context.CancelCauseFunc // running calls
	used   time.Time                       // when the last call ended, or the session began
	idled  bool                            // it is being closed because it was unused
	ended  bool                            // end or forgotten was called
	leaves bool                            // the last running call ends it
}

// generation returns how the server was reached, as in [Known].
func (c *session) generation() string {
	switch {
	case c.transport == transportSSE:
		return knownSSE
	case c.wire.Modern():
		return knownModern
	}
	return knownLegacy
}

// begin registers a call, so that end can cancel it. If the error is errEnded,
// the call has to be made over a new session.
func (c *session) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idled || c.ended {
		return nil, nil, errEnded
	}
	ctx, cancel := context.WithCancelCause(ctx)
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
		c.used = time.Now()
		if c.leaves && len(c.calls) == 0 {
			go c.endWith(errForgotten)
		}
	}, nil
}

// errEnded reports that the session ended before the call was sent: it was unused, or another call
// found that its server had exited.
var errEnded = errors.New("the session ended before the call")

// idle reports whether the session was unused for d. If so, no more calls can
// begin.
func (c *session) idle(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idled = c.idled || len(c.calls) == 0 && time.Since(c.used) >= d
	return c.idled
}

// errForgotten is the error of requests that were sent in a session that the server has forgotten.
var errForgotten = &wire.SessionLostError{MayHaveRun: true}

// forgotten ends a session that the server has forgotten. No more calls begin; running ones may
// still get their answers.
func (c *session) forgotten() {
	c.mu.Lock()
	c.ended, c.leaves = true, true
	c.wire.Retire(&wire.SessionLostError{}) // unsent requests are repeated in a new session
	running := len(c.calls)
	c.mu.Unlock()
	if running == 0 {
		c.endWith(errForgotten)
	}
}

// isLeaving reports whether forgotten was called.
func (c *session) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaves
}

// died reports whether the session ended by itself, and about when: after its last
// call.
func (c *session) died() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, !c.ended
}

// end ends the session within maxEnd: its calls, the connection, the process
// group. It may be called more than once and from several goroutines; each call
// returns when everything has ended.
func (c *session) end() { c.endWith(wire.ErrClosed) }

// endWith is end, with the error for running calls.
func (c *session) endWith(cause error) {
	c.once.Do(func() {
		if _, lost := errors.AsType[*wire.SessionLostError](cause); lost {
			c.record.forget()
		}
		c.mu.Lock()
		c.ended = true
		for _, cancel := range c.calls {
			cancel(cause)
		}
		c.mu.Unlock()
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.close(cause)
		}()
		select {
		case <-over:
		case <-time.After(maxEnd):
		}
	})
}

func (c *session) close(cause error) {
	if c.wire != nil {
		c.wire.Close(cause)
	}
	if c.stdio != nil {
		c.child.Stop(eofGrace, termGrace)
		c.after()
	}
	if c.wire != nil {
		c.wire.Wait()
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// offers reports whether the server declares the capability what: tools, prompts, resources or
// completions. A server that declares none of the first three is assumed to have tools, because
// some forget to declare them.
func (c *session) offers(what string) bool {
	caps := c.wire.Server().Capabilities
	switch what {
	case "tools":
		return caps.Tools != nil || caps.Prompts == nil && caps.Resources == nil
	case "prompts":
		return caps.Prompts != nil
	case "completions":
		return caps.Completions != nil
	}
	return what == "resources" && caps.Resources != nil
}

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

// forget removes the record, because the server has ended the session.
func (r *httpRecord) forget() {
	if r == nil {
		return
	}
	if err := r.folder.ForgetSession(r.ctx, r.name, &r.Session); err != nil {
		r.warn(err)
	}
}
