package keep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/text"
)

// within limits how long a run waits for a keeper's answer, and startWithin how long it waits for a
// keeper that it or another run is starting, before it starts a server of its own.
const within, startWithin = 2 * time.Second, 10 * time.Second

// stderrTail is how much of the server's stderr a run keeps, in bytes.
const stderrTail = 8 << 10

// ErrNone reports that no keeper has the server.
var ErrNone = errors.New("the server is not kept")

func (f *Failure) Error() string { return f.Phase + ": " + f.Reason }

// Conn is a run's connection to a keeper. To the run it looks like the server's process, with Stdin
// and Stdout.
type Conn struct {
	Opened
	Socket  string // its path
	Started bool   // by this run

	// Declined and Unclear report questions of the server that were declined before they reached
	// the run: one that came during no request, and one that may have been about the request with
	// this id. Both may be nil.
	Declined func(what, reason string)
	Unclear  func(id int64)
	// Dropped is called if the answer to the request with this id cannot be used.
	Dropped func(id int64, reason string)

	conn   net.Conn
	r      *bufio.Reader
	stderr func(text string) // may be nil
	done   chan struct{}

	mu   sync.Mutex
	tail string
	how  string // it ended
	once sync.Once
}

// Start starts a keeper: argv and environment of a program that reads a [Spec] from stdin and
// closes stdout once it listens.
type Start struct {
	Argv, Env []string
	Spec      func() *Spec
}

// Attach connects to the keeper of a server. If there is none, it starts one; if start is nil, the
// error is ErrNone. stderr, which may be nil, receives what the server prints.
//
// The error is a *[Failure] if the server cannot be used, or the cause of ctx. Any other error
// means that the server cannot be kept. If a connection is returned with an error, it describes the
// error and must be stopped too.
func (f *Folder) Attach(ctx context.Context, a Attach, start *Start, stderr func(text string)) (*Conn, error) {
	soon, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	c, err := f.attach(soon, a)
	if err != nil && start != nil && soon.Err() == nil {
		starting, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("not started within %s", startWithin))
		defer cancel()
		if c, err = f.start(starting, a, start); err == nil {
			c.Started = true
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && start == nil:
		return nil, ErrNone
	case err != nil:
		return nil, err
	}
	c.stderr = stderr
	return c, c.awaitHandshake(ctx)
}

// start starts a keeper, unless another run has just done so.
func (f *Folder) start(ctx context.Context, a Attach, start *Start) (*Conn, error) {
	unlock, err := f.dir.Lock(ctx, a.Name[:filePart+serverPart])
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c, err := f.attach(ctx, a); err == nil {
		return c, nil
	}
	spec := start.Spec()
	spec.Socket, spec.Name = f.path(a.Name), a.Name
	input, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	said, err := process.Detach(ctx,
		process.Spec{Argv: start.Argv, Dir: string(os.PathSeparator), Env: start.Env}, input)
	if err == nil && len(said) > 0 {
		err = errors.New(text.Escape(string(bytes.TrimSpace(said))))
	}
	if err != nil {
		return nil, err
	}
	return f.attach(ctx, a)
}

func (f *Folder) attach(ctx context.Context, a Attach) (*Conn, error) {
	return dial(ctx, f.path(a.Name), notification(methodAttach, a))
}

// dial connects to a keeper, sends the first message and waits until the keeper has accepted
// it.
func dial(ctx context.Context, path string, first []byte) (*Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	c := &Conn{Socket: path, conn: conn, r: bufio.NewReaderSize(conn, 64<<10), done: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err = checkPeer(conn); err == nil {
		_, err = conn.Write(first)
	}
	if err == nil {
		var method string
		if method, _, err = c.next(); err == nil && method != methodHere {
			err = errors.New("it is not the socket of a kept server")
		}
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

// errNotOurs reports a socket that belongs to another user.
var errNotOurs = errors.New("another user has the socket")

// checkPeer returns an error unless the process at the other end belongs to this user.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var user int
	var failed error
	err = raw.Control(func(fd uintptr) { user, failed = peerUser(int(fd)) })
	if err = errors.Join(err, failed); err == nil && user != os.Getuid() {
		err = errNotOurs
	}
	return err
}

// awaitHandshake waits for the result of the handshake with the server.
func (c *Conn) awaitHandshake(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		method, params, err := c.next()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("the process that keeps it ended: %w", err)
		case method == methodOpen:
			return json.Unmarshal(params, &c.Opened)
		case method == methodFailed:
			failure := &Failure{}
			return errors.Join(json.Unmarshal(params, failure), failure)
		}
		c.Notified(method, params)
	}
}

// maxMessage limits the messages of a keeper before the session begins, in bytes. The
// longest has the server's instructions.
const maxMessage = 64 << 20

// next reads a message of the keeper itself.
func (c *Conn) next() (method string, params json.RawMessage, err error) {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxMessage {
			return "", nil, err
		}
	}
	method, _ = jsonx.Text(jsonx.Get(line, "method"))
	return method, jsonx.Get(line, "params"), nil
}

// Stdout is what the server sends.
func (c *Conn) Stdout() io.Reader { return connReader{c} }

// connReader reads what the server sends. Any read error becomes io.EOF.
type connReader struct{ c *Conn }

func (r connReader) Read(p []byte) (int, error) {
	n, err := r.c.r.Read(p)
	if err != nil {
		r.c.end("the process that kept it ended")
		err = io.EOF
	}
	return n, err
}

// Stdin is what the server receives. Closing it detaches the run.
func (c *Conn) Stdin() io.WriteCloser { return c.conn }

// Notified handles a notification of the keeper, and reports whether it was one.
func (c *Conn) Notified(method string, params json.RawMessage) bool {
	var n note
	if !strings.HasPrefix(method, "toolreg/") || json.Unmarshal(params, &n) != nil {
		return false
	}
	switch method {
	case methodStderr:
		c.printed(n.Text)
	case methodEnded:
		c.end(n.How)
	case methodDeclined:
		if c.Declined != nil {
			c.Declined(n.What, n.Reason)
		}
	case methodDropped:
		if c.Dropped != nil {
			c.Dropped(n.ID, n.Reason)
		}
	case methodUnclear:
		if c.Unclear != nil {
			c.Unclear(n.ID)
		}
	}
	return true
}

// appendTail returns the end of what was printed so far and s.
func appendTail(tail, s string) string {
	tail += s
	if cut := len(tail) - stderrTail; cut > 0 {
		tail = text.Valid([]byte(tail[cut:]))
	}
	return tail
}

func (c *Conn) printed(s string) {
	c.mu.Lock()
	c.tail = appendTail(c.tail, s)
	c.mu.Unlock()
	if c.stderr != nil {
		c.stderr(s)
	}
}

func (c *Conn) end(how string) {
	c.once.Do(func() {
		c.mu.Lock()
		c.how = how
		c.mu.Unlock()
		close(c.done)
	})
}

// Done is closed when the server has ended, or the run has detached from it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Ending returns how the server has ended, in words.
func (c *Conn) Ending() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.how
}

// StderrTail returns the last lines that the server has printed, at most 8 KiB.
func (c *Conn) StderrTail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tail
}

// Stop detaches the run. The server continues.
func (c *Conn) Stop(_, _ time.Duration) {
	_ = c.conn.Close()
	c.end("")
}

// maxStop limits how long a keeper may take to end.
const maxStop = 15 * time.Second

// Stop ends a keeper and its server, and reports whether there was one. It returns after the server
// has ended. dir is the folder of the socket.
func Stop(ctx context.Context, dir, name string) (stopped bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxStop, errors.New("the process that keeps the server does not end"))
	defer cancel()
	c, err := dial(ctx, filepath.Join(dir, name), notification(methodStop, struct{}{}))
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer c.Stop(0, 0)
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })()
	for {
		if _, _, err = c.next(); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return true, nil
}

// isGone reports whether an error means that there is no keeper behind a socket.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// Runs reports whether the keeper behind a socket has a server that was started at this time.
// Asking does not count as use.
func Runs(ctx context.Context, socket string, since time.Time) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	c, err := dial(ctx, socket, notification(methodAttach, Attach{Name: filepath.Base(socket), Looks: true}))
	if err == nil {
		defer c.Stop(0, 0)
		err = c.awaitHandshake(ctx)
	}
	if _, failed := errors.AsType[*Failure](err); failed || isGone(err) {
		return false, nil
	}
	return err == nil && c.Since.Equal(since), err
}
