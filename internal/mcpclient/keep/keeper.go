// Package keep lets a stdio server outlast the run of toolreg that started it.
//
// A keeper is toolreg itself, one detached process for one server. It has the session with
// the server and listens on a unix socket, to which later runs attach:
//
//   - folder.go: the sockets and their names, which say what makes a server the same, and
//     the sessions with HTTP servers, which need no keeper but a file.
//   - conn.go: the run's side. [Folder.Attach] connects to a keeper, starting one if
//     necessary.
//   - keeper.go: the keeper's side. It gives the attached runs the result of the handshake
//     and passes on their requests (client.go) and the server's messages (relay.go). Lists
//     are kept until they change.
//
// Over the socket a run speaks MCP, one message a line, without the handshake. The
// keeper's own messages are notifications whose methods begin with "toolreg/". A keeper
// decides nothing: settings, policy, questions to the person and logs stay in the runs.
package keep

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/text"
)

// Child is the process of a server.
type Child interface {
	PID() int
	Done() <-chan struct{}
	StderrTail() string
}

// Keeper holds the session with one server, and shares it among the runs that attach. It is safe
// for concurrent use.
type Keeper struct {
	spec     *Spec
	listener *net.UnixListener
	socket   os.FileInfo
	alone    *ask.Handler // answers questions that belong to no run
	stop     chan struct{}
	stopping sync.Once
	decided  chan struct{} // closed when session or failure is set
	ended    chan struct{} // closed when the server has ended
	clients  sync.WaitGroup

	leave context.CancelFunc // closes the connections

	session *wire.Session
	child   Child
	failure *Failure

	lists lists

	mu         sync.Mutex
	attached   map[*client]bool
	runs       int         // attached runs, without those that only look
	since      time.Time   // start of the server
	idle       time.Time   // when the last run detached
	timer      *time.Timer // ends the keeper
	closed     bool        // no more runs may attach
	stderr     string      // before the session begins
	subscribed map[string]int
	level      string // lowest level of log messages that was asked for
}

// Listen creates the socket of a keeper and accepts runs, which wait until [Keeper.Serve]
// or [Keeper.Fail] is called. The caller must call Close.
func Listen(ctx context.Context, spec *Spec) (*Keeper, error) {
	// The run that started us has the lock, and found nobody behind this socket.
	if err := os.Remove(spec.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: spec.Socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	info, err := os.Lstat(spec.Socket)
	if err == nil {
		err = os.Chmod(spec.Socket, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	now := time.Now()
	k := &Keeper{spec: spec, listener: listener, socket: info, stop: make(chan struct{}), decided: make(chan struct{}),
		ended: make(chan struct{}), attached: map[*client]bool{}, subscribed: map[string]int{}, since: now, idle: now}
	k.timer = time.AfterFunc(spec.Keep, k.endIdle)
	k.alone = ask.New(ask.Options{
		Server: spec.Server, Workspace: spec.Workspace,
		MaxParams: spec.MaxMessage, Logger: slog.New(slog.DiscardHandler),
		// The keeper declares everything that toolreg supports. A run that cannot answer declines.
		Callbacks: ask.Callbacks{Refused: k.declined,
			Sample: func(context.Context, ask.Sampling) (json.RawMessage, error) {
				return nil, errors.New("no run is attached")
			}},
	})
	ctx, k.leave = context.WithCancel(ctx)
	k.clients.Go(func() { k.accept(ctx) })
	return k, nil
}

// Asker answers questions of the server that belong to no run, and declares what toolreg can
// answer.
func (k *Keeper) Asker() *ask.Handler { return k.alone }

// accept accepts runs until the listener is closed.
func (k *Keeper) accept(ctx context.Context) {
	for {
		conn, err := k.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if checkPeer(conn) != nil {
			_ = conn.Close()
			continue
		}
		k.clients.Go(func() { k.serve(ctx, conn) })
	}
}

// Stderr passes on what the server prints.
func (k *Keeper) Stderr(p []byte) {
	s := text.Valid(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil {
		k.stderr = appendTail(k.stderr, s)
	}
	k.broadcast(notification(methodStderr, note{Text: s}))
}

// broadcast sends a line to all attached runs. k.mu is held.
func (k *Keeper) broadcast(line []byte) {
	for c := range k.attached {
		c.offer(line)
	}
}

// Fail tells the runs that the server cannot be used.
func (k *Keeper) Fail(f *Failure) {
	k.failure = f
	close(k.decided)
}

// Serve shares a session among the runs, until the session has ended, no run has been attached for
// long enough, a run stops the keeper, or ctx is done. The caller then ends the session. ending
// describes how the session has ended by itself.
func (k *Keeper) Serve(ctx context.Context, session *wire.Session, child Child, ending func(error) string) {
	k.mu.Lock()
	k.session, k.child, k.stderr = session, child, ""
	k.mu.Unlock()
	session.ListenToLists(ctx)
	close(k.decided)
	how := "toolreg has stopped it"
	select {
	case <-session.Done():
		how = ending(session.Err())
	case <-k.stop:
	case <-ctx.Done():
	}
	k.refuse()
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.attached {
		c.finish(notification(methodEnded, note{How: how}))
	}
}

func (k *Keeper) end() { k.stopping.Do(func() { close(k.stop) }) }

// endIdle makes Serve return if no run is attached.
func (k *Keeper) endIdle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == 0 {
		k.closed = true
		k.end()
	}
}

// Stopped is closed when the keeper must end.
func (k *Keeper) Stopped() <-chan struct{} { return k.stop }

// refuse removes the socket, so that no more runs can attach. A socket that has been replaced
// belongs to another keeper and stays.
func (k *Keeper) refuse() {
	k.mu.Lock()
	k.closed = true
	k.timer.Stop()
	k.mu.Unlock()
	if now, err := os.Lstat(k.spec.Socket); err == nil && os.SameFile(now, k.socket) {
		_ = os.Remove(k.spec.Socket)
	}
	_ = k.listener.Close()
}

// Close ends the keeper. The server must have ended.
func (k *Keeper) Close() {
	k.refuse()
	close(k.ended)
	time.AfterFunc(lastWrite, k.leave)
	k.clients.Wait()
}

func (k *Keeper) attach(c *client) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.attached[c] = true
	c.offer(notification(methodHere, struct{}{}))
	if !c.Looks {
		k.runs++
		k.timer.Stop()
	}
	tail := k.stderr
	if k.session != nil {
		tail = k.child.StderrTail()
	}
	if tail != "" {
		c.offer(notification(methodStderr, note{Text: tail}))
	}
	return true
}

// detach removes a client. When the last run detaches, the keeper's idle time begins.
func (k *Keeper) detach(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.attached, c)
	if c.Looks {
		return
	}
	if k.runs--; k.runs == 0 {
		k.idle = time.Now()
		if !k.closed {
			k.timer.Reset(k.spec.Keep)
		}
	}
}

// opened describes the session to a run.
func (k *Keeper) opened() Opened {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := Opened{Session: k.session.Opening(), State: State{Since: k.since, Runs: k.runs, PID: k.child.PID()}}
	if k.runs == 0 {
		o.Idle = time.Since(k.idle).Milliseconds()
	}
	return o
}

// lists caches the pages of lists that the server has sent, byte for byte.
type lists struct {
	mu      sync.Mutex
	pages   map[string]page // by method and params
	changes int             // how often a list has changed
}

type page struct {
	result  json.RawMessage
	expires time.Time // zero if it is valid until the list changes
	old     bool      // it was outdated on arrival (ttlMs 0)
}

// get returns a current page, or with any also an outdated one.
func (l *lists) get(key string, any bool) (result json.RawMessage, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.pages[key]
	switch {
	case !ok:
		return nil, false
	case p.old:
		if !any {
			return nil, false
		}
		return p.result, false
	case !p.expires.IsZero() && time.Now().After(p.expires):
		return nil, false
	}
	return p.result, true
}

// put caches a page, unless the list has changed since it was requested.
func (l *lists) put(key string, result json.RawMessage, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if changes != l.changes {
		return
	}
	if l.pages == nil {
		l.pages = map[string]page{}
	}
	if method, params, _ := strings.Cut(key, " "); !strings.Contains(params, `"cursor"`) {
		// Later pages belong to the earlier version of the list.
		maps.DeleteFunc(l.pages, func(other string, _ page) bool { return strings.HasPrefix(other, method+" ") })
	}
	p := page{result: result}
	if ttl := jsonx.Get(result, "ttlMs"); ttl != nil {
		ms, err := strconv.ParseFloat(string(ttl), 64)
		p.old = err != nil || ms <= 0
		p.expires = time.Now().Add(time.Duration(min(ms, 1e9)) * time.Millisecond)
	}
	l.pages[key] = p
}

// forget drops the pages of lists whose methods begin with a prefix.
func (l *lists) forget(prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	maps.DeleteFunc(l.pages, func(key string, _ page) bool { return strings.HasPrefix(key, prefix) })
}

func (l *lists) changed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// listPage returns a page of a list. If pages are always outdated on arrival, a run that calls a
// tool gets the last one, and the server is asked concurrently with the call.
func (c *client) listPage(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	key := r.Method + " " + string(r.Params)
	_, fresh := r.Meta[FreshMeta]
	delete(r.Meta, FreshMeta)
	if !fresh {
		result, current := c.k.lists.get(key, !c.Lists)
		if result != nil && !current {
			c.k.clients.Go(func() { _, _ = c.requestPage(context.WithoutCancel(ctx), key, r) })
		}
		if result != nil {
			return result, nil
		}
	}
	return c.requestPage(ctx, key, r)
}

// requestPage asks the server for a page and keeps it.
func (c *client) requestPage(ctx context.Context, key string, r *wire.Request) (json.RawMessage, error) {
	l := &c.k.lists
	changes := l.changed()
	result, err := c.k.session.Do(ctx, r)
	if err == nil {
		l.put(key, result, changes)
	}
	return result, err
}
