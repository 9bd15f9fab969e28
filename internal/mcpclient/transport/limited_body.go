package transport

import (
	"bytes"
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

// limitedEvents fails when one event of a stream exceeds the limit that applies
// when it arrives. The SDK has one limit for all events, which has to be that
// of the largest.
type limitedEvents struct {
	io.ReadCloser
	limit  *CurrentLimit
	failed func(error) error
	size   int64 // of the event so far
	blank  bool  // whether the line is blank so far
}

// Read implements [io.Reader].
func (e *limitedEvents) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		e.size += int64(len(rest) - len(after))
		if limit := e.limit.Load(); e.size > limit.Bytes {
			return 0, e.failed(limit.Exceeded("message"))
		}
		e.blank = e.blank && len(bytes.TrimSuffix(line, []byte("\r"))) == 0
		if ended && e.blank {
			e.size = 0
		}
		e.blank = e.blank || ended // a new line is blank so far
		rest = after
	}
	return n, err
}
