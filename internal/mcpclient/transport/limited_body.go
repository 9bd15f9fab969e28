package transport

import "io"

// limitedBody fails when a body goes over its limit, which io.LimitReader hides.
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
