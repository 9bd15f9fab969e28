package process

import (
	"io"
	"slices"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/text"
)

// capture keeps the beginning and the end of a stream in bounded memory. It is
// not safe for concurrent use.
type capture struct {
	limit   int64 // bytes allowed; negative means no limit
	headMax int64 // bytes kept from the start; negative means all
	tailMax int   // bytes kept from the end, after the head
	total   int64
	head    []byte
	tail    []byte // the end of the stream, at most tailMax long
	oldest  int    // where tail begins once it is full, as a ring buffer
}

// newCapture returns a capture for a stream of at most limit bytes, of which it
// keeps keep bytes; 0 means all.
func newCapture(limit, keep int64) *capture {
	if keep > 0 && (limit < 0 || keep < limit) {
		return &capture{limit: limit, headMax: keep / 2, tailMax: int(keep - keep/2)}
	}
	return &capture{limit: limit, headMax: limit}
}

// add adds p and reports whether the stream is within its limit.
func (c *capture) add(p []byte) bool {
	c.total += int64(len(p))
	if c.headMax < 0 {
		c.head = append(c.head, p...)
		return true
	}
	n := min(int64(len(p)), c.headMax-int64(len(c.head)))
	if need := len(c.head) + int(n); need > cap(c.head) {
		// Doubling produces less garbage than append's smaller steps.
		c.head = slices.Grow(c.head, int(min(max(2*int64(cap(c.head)), int64(need)), c.headMax))-len(c.head))
	}
	c.head = append(c.head, p[:n]...)
	if c.tailMax > 0 {
		c.addTail(p[n:])
	}
	return c.limit < 0 || c.total <= c.limit
}

func (c *capture) addTail(p []byte) {
	p = p[max(0, len(p)-c.tailMax):]
	n := min(len(p), c.tailMax-len(c.tail))
	c.tail = append(c.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(c.tail[c.oldest:], p)
		c.oldest = (c.oldest + n) % len(c.tail)
	}
}

// last returns the kept tail.
func (c *capture) last() []byte { return slices.Concat(c.tail[c.oldest:], c.tail[:c.oldest]) }

// result returns what was kept, the length of the part before the cut, and
// whether something was cut, which is never inside a character. The capture must not be
// used afterwards.
func (c *capture) result() (out []byte, head int, cut bool) {
	head = len(c.head)
	if len(c.tail) == 0 {
		return c.head, head, false
	}
	if c.total == int64(len(c.head)+len(c.tail)) {
		out = slices.Concat(c.head, c.last())
		c.head, c.tail = nil, nil // free them: both may be large
		return out, len(out), false
	}
	before, _ := text.WholeRunes(c.head)
	after := c.last()
	for i := 0; i < utf8.UTFMax-1 && len(after) > 0 && !utf8.RuneStart(after[0]); i++ {
		after = after[1:]
	}
	c.head, c.tail = nil, nil
	return slices.Concat(before, after), len(before), true
}

// copyChunks passes what it reads from f to sink until the stream ends.
func copyChunks(f io.Reader, sink func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			sink(buf[:n])
		}
		if err != nil {
			return
		}
	}
}
