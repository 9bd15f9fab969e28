//lint:file-ignore SA1019 what a later revision deprecates, servers of today still do: logging

package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
)

const (
	// eofGrace is the time a server has to exit after its stdin was closed, termGrace
	// the time after SIGTERM before its group is killed: a server that runs in a
	// container or saves a file on exit needs more than an instant.
	eofGrace  = 300 * time.Millisecond
	termGrace = 1300 * time.Millisecond
	// maxEnd limits the time for ending a session.
	maxEnd = 2 * time.Second
	// maxLogLevel is how long a server may take to confirm the log level.
	maxLogLevel = 100 * time.Millisecond
)

// session is one connection to a server, from its start to its end.
type session struct {
	transport string // stdio, http, sse
	client    *mcp.ClientSession
	conn      *transport.Conn  // nil if there is no connection
	stdio     *transport.Stdio // nil for others
	after     func()           // to call when the child has ended
	confined  bool             // the child runs in the sandbox
	http      *transport.HTTP  // http and sse
	limit     *transport.CurrentLimit
	mask      *strings.Replacer       // see hide
	cancel    context.CancelCauseFunc // stops everything that the session does
	once      sync.Once
	logs      sync.Once // log messages were requested

	usage
}

// usage says how a session is used, and whether it still is.
type usage struct {
	mu     sync.Mutex
	serial int
	calls  map[int]context.CancelCauseFunc // running calls
	used   time.Time                       // when the last call ended, or the session began
	idled  bool                            // it is being closed because nobody used it
	ended  bool                            // by end
}

// modern reports whether the session speaks revision 2026-07-28 or later.
func (c *session) modern() bool {
	return c.client.InitializeResult().ProtocolVersion >= transport.FirstModern
}

// hasParamHeaders reports whether params may have to be repeated in HTTP headers.
func (c *session) hasParamHeaders() bool { return c.transport == transportHTTP && c.modern() }

// generation returns what Protocols should remember for later runs.
func (c *session) generation() string {
	switch {
	case c.transport == transportSSE:
		return knownSSE
	case c.modern():
		return knownModern
	}
	return knownLegacy
}

// begin registers a call, so that end can cancel it.
// The error is errIdled: the call has to be made over a new session.
func (c *session) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idled {
		return nil, nil, errIdled
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
	}, nil
}

// errIdled tells that the session was closed before the call, because nobody used
// it.
var errIdled = errors.New("the session was closed because it was not used")

// idle reports whether nothing was called for a time; then nothing can be any more.
func (c *session) idle(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idled = c.idled || len(c.calls) == 0 && time.Since(c.used) >= d
	return c.idled
}

// died reports whether the session is over although nobody ended it, and about when
// that happened: after its last call.
func (c *session) died() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, !c.ended
}

// token returns a progress token that no other call of the session has.
func (c *session) token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	return fmt.Sprintf("toolreg-%d", c.serial)
}

// end ends the session within maxEnd: its calls, the connection, the process
// group. It may be called more than once and from several goroutines; each call
// returns when everything has ended.
func (c *session) end() { c.endWith(errClosed) }

// endWith is end with the cause for which calls fail.
func (c *session) endWith(cause error) {
	c.once.Do(func() {
		c.mu.Lock()
		c.ended = true
		for _, cancel := range c.calls {
			cancel(cause)
		}
		c.mu.Unlock()
		c.cancel(errClosed)
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.close()
		}()
		timer := time.NewTimer(maxEnd)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
		}
	})
}

func (c *session) close() {
	if c.conn != nil {
		_ = c.conn.Close() // the server's answer makes no difference
	}
	if c.stdio != nil {
		c.stdio.Child.Stop(eofGrace, termGrace)
		_ = c.stdio.Child.Stdout.Close()
		c.after()
	}
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.conn != nil {
		c.conn.Wait()
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// serverInfo returns the server's name and version as it sent them.
func (c *session) serverInfo() json.RawMessage {
	result := c.conn.HandshakeResult()
	if info := jsonx.Get(result, "serverInfo"); info != nil {
		return info
	}
	return jsonx.Get(jsonx.Get(result, "_meta"), mcp.MetaKeyServerInfo)
}

// askForLogs asks a legacy server for its log messages, once: many send none
// unless asked. It waits for the answer, since a server may handle requests
// concurrently and start with the call. Over HTTP, where that costs a round trip,
// it asks only if all messages are wanted. A modern server is told the level with
// each request.
func (c *session) askForLogs(ctx context.Context, level string) {
	c.logs.Do(func() {
		caps := c.client.InitializeResult().Capabilities
		if level == "" || c.stdio == nil && level != "debug" || c.modern() || caps == nil || caps.Logging == nil {
			return
		}
		c.conn.SetLogLevel(ctx, level, maxLogLevel)
	})
}
