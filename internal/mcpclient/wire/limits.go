package wire

import (
	"bufio"
	"fmt"
	"io"
	"sync/atomic"
)

// Limit is the maximum size of one message in bytes, and the setting that
// defines it.
type Limit struct {
	Bytes   int64
	Setting string
}

// Exceeded returns the error for a message or a body that is larger than the limit.
func (l Limit) Exceeded(what string) *AnswerError {
	return &AnswerError{fmt.Sprintf("a %s larger than the limit of %s (%s)", what, size(l.Bytes), l.Setting)}
}

// AnswerError reports that the server's answer cannot be used, for example because it is larger than
// its limit. The request may have had effects.
type AnswerError struct{ Reason string }

func (e *AnswerError) Error() string { return e.Reason }

// CurrentLimit is the limit in force: the answer to a call may be larger than
// messages during connecting and listing. Call Store before Load. It is safe
// for concurrent use.
type CurrentLimit struct{ now atomic.Pointer[Limit] }

// Load returns the limit.
func (c *CurrentLimit) Load() Limit { return *c.now.Load() }

// Store changes the limit.
func (c *CurrentLimit) Store(l Limit) { c.now.Store(&l) }

// size formats a number of bytes.
func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// limitedBody returns an error when a body exceeds its limit, unlike
// io.LimitReader, which would truncate it silently.
type limitedBody struct {
	io.Closer
	r     io.Reader
	left  int64
	limit Limit
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.limit.Exceeded("body")
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, b.limit.Exceeded("body")
	}
	return n, err
}

// byteOrderMark is the UTF-8 byte order mark that some programs print first.
const byteOrderMark = "\xEF\xBB\xBF"

// withoutMark skips a byte order mark at the beginning.
type withoutMark struct {
	r     *bufio.Reader
	begun bool
}

func (w *withoutMark) Read(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if head, _ := w.r.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
			_, _ = w.r.Discard(len(head)) // it is in the buffer
		}
	}
	return w.r.Read(p)
}
