package process

import (
	"io"
	"slices"
)

// capture keeps the head and the tail of one stream, in bounded memory. It is
// not safe for concurrent use.
type capture struct {
	headMax int64 // bytes kept from the start; negative = all
	tailMax int   // bytes kept from the end, behind the head
	total   int64
	head    []byte
	tail    []byte // the end of the stream, at most 2*tailMax long
}

// newCapture returns a capture for a stream with a limit of so many bytes.
func newCapture(limit int64, headTail bool) *capture {
	if limit >= 0 && headTail {
		return &capture{headMax: limit / 2, tailMax: int(limit - limit/2)}
	}
	return &capture{headMax: limit}
}

// add takes p and reports whether the stream is within its limit.
func (c *capture) add(p []byte) bool {
	c.total += int64(len(p))
	if c.headMax < 0 {
		c.head = append(c.head, p...)
		return true
	}
	n := min(int64(len(p)), c.headMax-int64(len(c.head)))
	c.head = append(c.head, p[:n]...)
	p = p[n:]
	if c.tailMax == 0 {
		return len(p) == 0
	}
	c.addTail(p)
	return true
}

func (c *capture) addTail(p []byte) {
	p = p[max(0, len(p)-c.tailMax):]
	if len(c.tail)+len(p) > 2*c.tailMax {
		// Moving only when the buffer has filled twice keeps the cost of each
		// byte constant.
		keep := c.tailMax - len(p)
		n := copy(c.tail, c.tail[len(c.tail)-keep:])
		c.tail = c.tail[:n]
	}
	c.tail = append(c.tail, p...)
}

// last returns the kept tail.
func (c *capture) last() []byte { return c.tail[max(0, len(c.tail)-c.tailMax):] }

// result returns what was kept, the length of the part before the cut, and
// whether something was cut between head and tail.
func (c *capture) result() (out []byte, head int, cut bool) {
	tail := c.last()
	if len(tail) == 0 {
		return c.head, len(c.head), false
	}
	out = slices.Concat(c.head, tail)
	if c.total == int64(len(out)) {
		return out, len(out), false
	}
	return out, len(c.head), true
}

// copyChunks hands what f gives to sink until the stream ends.
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
