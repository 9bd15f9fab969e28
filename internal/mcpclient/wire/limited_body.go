package wire

import (
	"bufio"
	"io"
)

// limitedBody fails when a body exceeds its limit, which io.LimitReader would
// hide.
type limitedBody struct {
	io.Closer
	r     io.Reader
	left  int64
	limit Limit
}

func limited(c io.Closer, r io.Reader, limit Limit) *limitedBody {
	return &limitedBody{Closer: c, r: r, left: limit.Bytes, limit: limit}
}

// Read implements [io.Reader].
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

// byteOrderMark is what some programs begin UTF-8 with.
const byteOrderMark = "\xEF\xBB\xBF"

// withoutMark skips a byte order mark at the beginning.
type withoutMark struct {
	r     *bufio.Reader
	begun bool
}

// Read implements [io.Reader].
func (w *withoutMark) Read(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if head, _ := w.r.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
			_, _ = w.r.Discard(len(head)) // it is in the buffer
		}
	}
	return w.r.Read(p)
}
