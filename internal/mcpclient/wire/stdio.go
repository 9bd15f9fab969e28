package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
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
	data []byte
	sent chan error
}

// NewStdio returns the link to a child with these streams. The link closes stdin, and the
// caller stops the child. limit applies to one line. log, which must not be nil, gets a
// warning about text that is not a message.
func NewStdio(stdout io.Reader, stdin io.WriteCloser, limit *CurrentLimit, log *slog.Logger) *Stdio {
	return &Stdio{lines: newLineReader(stdout, limit, log), stdin: stdin, frames: make(chan *frame), done: newSignal()}
}

// SkipLong lets the session survive an answer that exceeds the limit: its request fails with a
// [*AnswerError]. Call it before [Start].
func (l *Stdio) SkipLong() { l.lines.skipsLong = true }

// Checked skips the syntax check of lines, because the sender has done it. Call it before [Start].
func (l *Stdio) Checked() { l.lines.checked = true }

// Skipped returns the text so far on the server's stdout that is not a message.
func (l *Stdio) Skipped() Skipped {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return l.lines.skipped
}

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
			if !s.receiveMalformed(err) && bad.long {
				return bad.cause
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
		return ctx.Err()
	case <-l.done.c:
		return io.ErrClosedPipe
	}
}

func (l *Stdio) writeFrames() {
	for {
		select {
		case f := <-l.frames:
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

// lineReader finds the messages in a server's stdout: lines that are a JSON
// object or array. Other output, which many servers print (banners, logs, npm),
// is skipped up to a limit.
type lineReader struct {
	r         *bufio.Reader
	limit     *CurrentLimit
	log       *slog.Logger
	first     bool // nothing has been read yet
	skipsLong bool // a line that exceeds the limit is a *badMessageError
	checked   bool // lines are valid, except one that is cut off at the end

	mu      sync.Mutex
	skipped Skipped
}

// maxSkipped limits how many bytes of other text a server may print.
const maxSkipped = 1 << 20

// Skipped is text on a server's stdout that is not a message.
type Skipped struct {
	Lines, Bytes int64
	First        string // the first such line, cut
}

func newLineReader(r io.Reader, limit *CurrentLimit, log *slog.Logger) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit, log: log, first: true}
}

// next returns the next line of JSON, without surrounding space. The line
// belongs to the caller. A malformed message is a *badMessageError.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		if l.first && len(line) > 0 {
			line, l.first = text.WithoutMark(line), false
			if bytes.HasPrefix(line, []byte("Content-Length:")) {
				return nil, errors.New("it writes messages with Content-Length headers, as language servers do, and not one on each line")
			}
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case (line[0] == '{' || line[0] == '[') && (l.checked && err == nil || jsonx.Valid(line)):
			return line, nil // on an error the next call returns it again
		case line[0] == '{' && errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF // it ended in the middle of a message
		default:
			if err := l.skip(line); err != nil {
				return nil, err
			}
			if line[0] == '{' && bytes.Contains(line, []byte(`"jsonrpc"`)) {
				return nil, invalidMessage(line)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads up to a newline or the end, at most limit bytes. A long line is
// collected in parts, because a slice that grows would keep up to three times
// its size in memory.
func (l *lineReader) line() ([]byte, error) {
	var parts [][]byte
	total := 0
	for {
		part, err := l.r.ReadSlice('\n')
		total += len(part)
		parts = append(parts, slices.Clone(part))
		switch most := l.limit.Load(); {
		case int64(total) > most.Bytes && l.skipsLong:
			return nil, l.skipLong(parts[0], part, total, most)
		case int64(total) > most.Bytes:
			return nil, most.Exceeded("message")
		case errors.Is(err, bufio.ErrBufferFull):
		case len(parts) == 1:
			return parts[0], err
		default:
			return slices.Concat(parts...), err
		}
	}
}

// maxLong is how much longer than its limit a line that is skipped may be.
const maxLong = 4

// skipLong skips the rest of a line that exceeds the limit. The error says which request the line
// answers. head is its beginning, part was read last, and total is their length.
func (l *lineReader) skipLong(head, part []byte, total int, most Limit) error {
	tail := slices.Clone(part)
	for ; !bytes.HasSuffix(tail, []byte("\n")); total += len(part) {
		if int64(total) > maxLong*most.Bytes {
			return most.Exceeded("message")
		}
		var err error
		if part, err = l.r.ReadSlice('\n'); err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		tail = append(tail[max(0, len(tail)-maxID):], part...)
	}
	return &badMessageError{answer: true, id: idOfLong(head, tail), reason: "too long",
		long: true, cause: most.Exceeded("message")}
}

func (l *lineReader) skip(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipped.Lines == 0 {
		l.skipped.First = text.Valid(text.Head(line, 300))
		l.log.Warn("the server prints text on stdout, which is reserved for messages; skipped", "line", l.skipped.First)
	}
	l.skipped.Lines++
	l.skipped.Bytes += int64(len(line))
	if l.skipped.Bytes > maxSkipped {
		return &AnswerError{"more than " + size(maxSkipped) + " of text on stdout that is not a message"}
	}
	return nil
}
