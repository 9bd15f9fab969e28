package jsonx

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrLongLine reports a line that is longer than the limit. It was skipped, and others may follow.
var ErrLongLine = errors.New("the line is longer than the limit")

// Stream reads a stream with one JSON value a line. Create it with [NewStream].
type Stream struct {
	r      *bufio.Reader
	limit  int
	number int
	err    error // of reading
}

// NewStream returns a stream of lines of at most limit bytes.
func NewStream(r io.Reader, limit int) *Stream {
	return &Stream{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Next returns the next line that is not blank, without the space around it. The line belongs to
// the caller. A byte order mark, which Windows shells write first, is skipped. The error is
// [ErrLongLine], or that of reading after the last line, such as [io.EOF].
func (l *Stream) Next() ([]byte, error) {
	for l.err == nil {
		var line []byte
		long, more := false, true
		for l.number++; more; more = errors.Is(l.err, bufio.ErrBufferFull) {
			var part []byte
			part, l.err = l.r.ReadSlice('\n')
			if long = long || len(line)+len(part) > l.limit; long {
				line = nil
			} else {
				line = append(line, part...)
			}
		}
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if line = bytes.TrimSpace(line); long {
			return nil, ErrLongLine
		} else if len(line) > 0 {
			return line, nil
		}
	}
	return nil, l.err
}

// Number returns the number of the line that Next returned last, from 1.
func (l *Stream) Number() int { return l.number }
