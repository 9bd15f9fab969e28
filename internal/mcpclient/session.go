package mcpclient

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/process"
)

const (
	// quiet is the time a server gets after its stdin was closed, grace what it
	// gets after SIGTERM before its group is killed: what runs in a container
	// or saves a file on the way out needs more than an instant.
	quiet = 300 * time.Millisecond
	grace = 1300 * time.Millisecond
	// maxTeardown bounds the end of a session in all.
	maxTeardown = 2 * time.Second
	// lastWords is how long a dying server's end is awaited for an error text.
	lastWords = time.Second
)

// session is one connection to a server, from its start to its end.
type session struct {
	transport string // stdio, http, sse
	client    *mcp.ClientSession
	wire      *wire
	child     *process.Child          // stdio
	lines     *lineReader             // stdio
	guard     *httpGuard              // http and sse
	limit     *limit                  // bytes of one message
	version   atomic.Pointer[string]  // that initialize agreed on, nil before
	mask      *strings.Replacer       // see hide
	cancel    context.CancelCauseFunc // ends everything that the session does
	once      sync.Once
	logs      sync.Once // log messages were asked for

	mu     sync.Mutex
	serial int
	calls  map[int]context.CancelCauseFunc // running calls
}

// modern reports whether the session speaks revision 2026-07-28 or later.
func (c *session) modern() bool {
	return c.client.InitializeResult().ProtocolVersion >= firstModern
}

// mirrors reports whether params may have to be repeated in HTTP headers.
func (c *session) mirrors() bool { return c.transport == transportHTTP && c.modern() }

// generation returns what Protocols should know on a later run.
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
		c.child.Stop(quiet, grace)
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
