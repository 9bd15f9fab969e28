package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// TTY is the controlling terminal of the process, beside its standard streams.
// One question at a time is asked; further ones wait.
type TTY struct {
	// Color allows colours in what is asked.
	Color bool
	// Pager and Editor are command lines of the person's programs; "" means the
	// usual ones.
	Pager, Editor string
	// Before is called before a question is written, such as to take progress
	// lines off the screen, and what it returns after the answer. Both may be
	// nil.
	Before func() (after func())

	in, out *os.File
	mu      sync.Mutex
}

// begin makes the terminal free for one question: others wait until end.
func (t *TTY) begin() (end func()) {
	t.mu.Lock()
	after := func() {}
	if t.Before != nil {
		if f := t.Before(); f != nil {
			after = f
		}
	}
	return func() {
		after()
		t.mu.Unlock()
	}
}

// OpenTTY opens the controlling terminal. An error means that nobody is there
// to ask: the caller then has no Confirmer. Close the TTY when done.
func OpenTTY() (*TTY, error) {
	in, out, err := openTTY()
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	return &TTY{in: in, out: out}, nil
}

// Close closes the terminal.
func (t *TTY) Close() error {
	if t.out == t.in {
		return t.in.Close()
	}
	return errors.Join(t.in.Close(), t.out.Close())
}

// reopen opens the terminal anew for a child. Handing out our own files would
// make them blocking, and a blocking read cannot be cancelled.
func (t *TTY) reopen() (in, out *os.File, err error) {
	if in, err = os.OpenFile(t.in.Name(), os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile(t.out.Name(), os.O_RDWR, 0); err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return in, out, nil
}

// Size returns columns and rows, 80 and 24 where they are not known.
func (t *TTY) Size() (columns, rows int) {
	columns, rows = size(t.out)
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 4096

// ErrNoAnswer is the error when the person gave no answer, as at the end of
// input.
var ErrNoAnswer = errors.New("no answer")

// Ask writes text and reads one line, without its end. What was typed before is
// thrown away first, so that nothing answers a question it has not seen. The
// error is the cause of ctx, or wraps ErrNoAnswer.
func (t *TTY) Ask(ctx context.Context, text string) (string, error) {
	defer t.begin()()
	return t.ask(ctx, text)
}

func (t *TTY) ask(ctx context.Context, text string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if err := flush(t.in); err != nil {
		return "", fmt.Errorf("discarding earlier input: %w", err)
	}
	line := ""
	err := t.write(ctx, text)
	if err == nil {
		line, err = t.readRedrawn(ctx, text)
	}
	if err != nil { // the person pressed no Enter: end the line for them
		_ = t.out.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(t.out, "\n")
	}
	return line, err
}

// write writes text, which may hold styles of ours, and gives up with ctx: a terminal may be stopped by Ctrl-S.
func (t *TTY) write(ctx context.Context, text string) error {
	return t.writeEscapes(ctx, Styled(text))
}

// writeEscapes is write for text that is safe to show but for escape sequences
// that we made ourselves.
func (t *TTY) writeEscapes(ctx context.Context, text string) error {
	if t.out.SetWriteDeadline(time.Time{}) == nil {
		stop := context.AfterFunc(ctx, func() { _ = t.out.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	_, err := io.WriteString(t.out, text)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}

// readRedrawn reads a line, and writes text again when the process goes on after
// it was stopped: what the shell wrote meanwhile stands where the question was.
func (t *TTY) readRedrawn(ctx context.Context, text string) (string, error) {
	continued, forget := watchContinued()
	done := make(chan struct{})
	var redrawing sync.WaitGroup
	redrawing.Go(func() {
		for {
			select {
			case <-continued:
				_ = t.write(ctx, text) // the read fails too
			case <-done:
				return
			}
		}
	})
	line, err := t.readLine(ctx)
	forget()
	close(done)
	redrawing.Wait()
	return line, err
}

// readLine reads up to Enter. Ctrl-C arrives as a signal, which cancels ctx, or
// as a character where the terminal is raw.
func (t *TTY) readLine(ctx context.Context) (string, error) {
	read := func() (string, error) { return scanLine(t.in) }
	var line string
	var err error
	if t.in.SetReadDeadline(time.Time{}) == nil {
		stop := context.AfterFunc(ctx, func() { _ = t.in.SetReadDeadline(time.Unix(1, 0)) })
		line, err = read()
		stop()
	} else {
		line, err = readWithoutDeadline(ctx, read)
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return line, nil
}

// readWithoutDeadline runs read where a console knows no deadlines. A read that
// nobody waits for any more ends with the process.
func readWithoutDeadline(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := read()
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// scanLine reads byte by byte, so that nothing behind the line is taken.
func scanLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		if n == 1 {
			switch b[0] {
			case '\n', '\r':
				return strings.TrimSpace(string(line)), nil
			case 0x03, 0x04, 0x1a: // Ctrl-C, Ctrl-D, Ctrl-Z of a raw terminal
				return "", io.EOF
			}
			if len(line) < maxAnswer {
				line = append(line, b[0])
			}
		}
		if err != nil {
			return "", err
		}
	}
}
