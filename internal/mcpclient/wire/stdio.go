package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Stdio is the [Link] to a running child process: newline-delimited JSON on its stdin and
// stdout.
type Stdio struct {
	lines  *lineReader // over the child's stdout
	stdin  io.WriteCloser
	frames chan *frame
	done   *signal
}

// frame is one message on its way to the server's stdin.
type frame struct {
	data      []byte
	abandoned atomic.Bool // send no longer waits for it
	sent      chan error
}

// NewStdio returns the link to a child with these streams. The link closes stdin, and the
// caller stops the child. limit applies to one line. log, which must not be nil, gets a
// warning about text that is not a message.
func NewStdio(stdout io.Reader, stdin io.WriteCloser, limit *CurrentLimit, log *slog.Logger) *Stdio {
	return &Stdio{lines: newLineReader(stdout, limit, log), stdin: stdin, frames: make(chan *frame), done: newSignal()}
}

// SkipLong lets the session survive an answer that exceeds the limit: its request fails with a
// [*LimitError]. Call it before [Start].
func (l *Stdio) SkipLong() { l.lines.skipsLong = true }

// Checked skips the check of each line's syntax, because the sender has made it. Call it
// before [Start].
func (l *Stdio) Checked() { l.lines.checked = true }

// Skipped returns the text so far on the server's stdout that is not a message.
func (l *Stdio) Skipped() Skipped { return l.lines.skippedSoFar() }

// run implements [Link]. It reads until the end of stdout, even after ctx is done: a server that
// blocks writing to its stdout would not notice that its stdin was closed.
func (l *Stdio) run(ctx context.Context, s *Session) error {
	s.spawn(l.writeFrames)
	defer l.done.close()
	defer context.AfterFunc(ctx, l.close)()
	for {
		line, err := l.lines.next()
		if err == nil {
			err = s.receiveAll(ctx, line)
		}
		if bad, ok := errors.AsType[*badMessageError](err); ok {
			if !s.receiveMalformed(err) && bad.long != nil {
				return bad.long
			}
			continue
		}
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
		if err != nil {
			return err
		}
	}
}

// send implements [Link]. It returns when the message is written or ctx is done, whichever comes
// first. A message that was begun is always written in full, so that the ones after it stay
// readable.
func (l *Stdio) send(ctx context.Context, _ *Session, m message) error {
	data, err := jsonrpc.EncodeMessage(m.Message)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	f := &frame{data: append(data, '\n'), sent: make(chan error, 1)}
	select {
	case l.frames <- f:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done.c:
		return io.ErrClosedPipe
	}
	select {
	case err := <-f.sent:
		return err
	case <-ctx.Done():
		f.abandoned.Store(true)
		return ctx.Err()
	case <-l.done.c:
		return io.ErrClosedPipe
	}
}

func (l *Stdio) writeFrames() {
	for {
		select {
		case f := <-l.frames:
			if f.abandoned.Load() {
				continue
			}
			_, err := l.stdin.Write(f.data)
			f.sent <- err
		case <-l.done.c:
			return
		}
	}
}

// close closes the server's stdin, which asks it to exit and unblocks a
// pending write, and returns at once.
func (l *Stdio) close() {
	l.done.close()
	_ = l.stdin.Close() // the pipe may be broken already
}
