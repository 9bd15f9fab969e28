package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
)

// Stdio speaks newline-delimited JSON with a running child process. The SDK's
// transport is not used because it gives up on the first line that is not JSON,
// blocks forever on a server that does not read, and does not handle process
// groups.
type Stdio struct {
	Child *process.Child // stopping it is the caller's
	lines *lineReader    // over the child's stdout
}

// NewStdio returns the transport to a child. limit applies to one line; log,
// which must not be nil, gets a warning about text that is not a message.
func NewStdio(child *process.Child, limit *CurrentLimit, log *slog.Logger) *Stdio {
	return &Stdio{Child: child, lines: newLineReader(child.Stdout, limit, log)}
}

// Skipped returns the text that the server has printed so far that is not a
// message.
func (t *Stdio) Skipped() Skipped { return t.lines.skippedSoFar() }

// Connect implements [mcp.Transport].
func (t *Stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &stdioConn{
		Stdio:  t,
		frames: make(chan *frame),
		done:   signal{c: make(chan struct{})},
	}
	go c.writeFrames()
	return c, nil
}

// stdioConn is the connection over a child's stdin and stdout. Read is called
// by one goroutine.
type stdioConn struct {
	*Stdio
	queue  []jsonrpc.Message // rest of a batch
	frames chan *frame
	done   signal
}

// frame is one message on its way to the server's stdin.
type frame struct {
	data      []byte
	abandoned atomic.Bool // its writer waits no longer
	sent      chan error
}

// SessionID implements [mcp.Connection].
func (c *stdioConn) SessionID() string { return "" }

// Read implements [mcp.Connection]. It returns a *badMessageError for JSON that
// is not a message.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		line, err := c.lines.next()
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				err = io.EOF
			}
			return nil, err
		}
		if line[0] == '{' {
			return decodeMessage(line)
		}
		// Batches exist up to revision 2025-03-26.
		parts, _ := jsonx.Elements(line)
		for _, p := range parts {
			if m, err := decodeMessage(p); err == nil {
				c.queue = append(c.queue, m)
			}
		}
	}
	m := c.queue[0]
	c.queue = c.queue[1:]
	return m, nil
}

// Write implements [mcp.Connection]. It returns when the message is written or ctx is
// done, whichever comes first. Once begun, a message is always written in full, so that
// the ones after it stay readable.
func (c *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	f := &frame{data: append(data, '\n'), sent: make(chan error, 1)}
	select {
	case c.frames <- f:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done.c:
		return io.ErrClosedPipe
	}
	select {
	case err := <-f.sent:
		return err
	case <-ctx.Done():
		f.abandoned.Store(true)
		return ctx.Err()
	case <-c.done.c:
		return io.ErrClosedPipe
	}
}

func (c *stdioConn) writeFrames() {
	for {
		select {
		case f := <-c.frames:
			if f.abandoned.Load() {
				continue
			}
			_, err := c.Child.Stdin.Write(f.data)
			f.sent <- err
		case <-c.done.c:
			return
		}
	}
}

// Close implements [mcp.Connection]. It closes the server's stdin, which asks
// it to exit and unblocks a pending write, and returns at once; the session
// stops the process.
func (c *stdioConn) Close() error {
	c.done.give()
	_ = c.Child.Stdin.Close() // a server that has gone closed it for us
	return nil
}
