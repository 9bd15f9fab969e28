package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/text"
)

// longReader is a file that can be read at any offset.
type longReader interface {
	io.ReadSeeker
	io.ReaderAt
}

// longChunk is how much of a long line is examined at a time, in bytes.
const longChunk = 256 << 10

// longLine is the position of a line that is not held in memory.
type longLine struct {
	file       longReader
	start, end int64 // without the line break
	next       int64 // where the next line begins
}

// long searches the line that begins at buf[from] and ends beyond buf[:filled],
// without holding it in memory. Afterwards the buffer has the beginning of the
// line in its place, in case it is shown as context, and the file is at the
// next line. It returns the new fill of the buffer, all of which has been
// searched.
func (s *searcher) long(ctx context.Context, r longReader, from, filled int) (int, error) {
	at, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, workspace.Cause(err)
	}
	l := &longLine{file: r, start: at - int64(filled-from)}
	maybe, err := s.measure(ctx, l, s.buf[from:filled], at)
	if err != nil {
		return 0, err
	}
	if _, err := r.Seek(l.next, io.SeekStart); err != nil {
		return 0, workspace.Cause(err)
	}
	standIn := from + 2*maxExcerpt
	s.buf[standIn] = '\n'
	text := s.buf[:standIn+1]
	if maybe {
		if err := s.tryLong(ctx, l, text, from); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// measure finds the end of the line of which head is in memory, up to the
// offset at. maybe says that it contains one of the texts that a match needs.
func (s *searcher) measure(ctx context.Context, l *longLine, head []byte, at int64) (maybe bool, err error) {
	carry := 0
	for _, n := range s.expr.needs {
		carry = max(carry, len(n.text)-1)
	}
	maybe = s.holdsNeed(head)
	buf := make([]byte, carry+longChunk)
	filled := copy(buf, head[max(0, len(head)-carry):])
	last := head[len(head)-1]
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := l.file.ReadAt(buf[filled:filled+longChunk], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, workspace.Cause(err)
		}
		fresh := buf[filled : filled+n]
		if bytes.IndexByte(fresh, 0) >= 0 {
			return false, errNUL
		}
		ending := bytes.IndexByte(fresh, '\n')
		if ending >= 0 {
			fresh = fresh[:ending]
		}
		if len(fresh) > 0 {
			last = fresh[len(fresh)-1]
		}
		filled += len(fresh)
		maybe = maybe || s.holdsNeed(buf[:filled])
		at += int64(len(fresh))
		if ending >= 0 || err != nil {
			l.end, l.next = at, at
			if ending >= 0 {
				l.next++
			}
			if last == '\r' {
				l.end--
			}
			return maybe, nil
		}
		filled = copy(buf, buf[max(0, filled-carry):filled])
	}
}

// holdsNeed reports whether a text contains what a match needs.
func (s *searcher) holdsNeed(text []byte) bool {
	for i := range s.seekers {
		s.seekers[i].reset()
		if s.seekers[i].seek(text, 0) != nowhere {
			return true
		}
	}
	return len(s.seekers) == 0
}

// tryLong matches the line, whose beginning text[start:] stands for it, and
// records it if it does.
func (s *searcher) tryLong(ctx context.Context, l *longLine, text []byte, start int) error {
	at, err := s.findLong(ctx, l)
	switch {
	case err != nil || at == nowhere:
		return err
	case s.found.matches == s.limit:
		s.found.more = true
		s.showAfter(text, start)
		return nil
	}
	shown, err := s.excerptLong(l, at)
	if err == nil {
		s.match(text, start, len(text)-1)
		s.found.lines[len(s.found.lines)-1].text = shown
	}
	return err
}

// findLong returns a position inside a match in the line, counted from its
// start, or nowhere.
func (s *searcher) findLong(ctx context.Context, l *longLine) (int64, error) {
	in := &longText{ctx: ctx, from: io.NewSectionReader(l.file, l.start, l.end-l.start)}
	if s.dfa != nil {
		at, err := s.dfa.findIn(in)
		if in.err != nil {
			return nowhere, in.err
		}
		if err == nil {
			return at, nil
		}
		s.dfa = nil
		if _, err := in.from.Seek(0, io.SeekStart); err != nil {
			return nowhere, err
		}
	}
	at := s.expr.regexp.FindReaderIndex(bufio.NewReaderSize(in, longChunk))
	if in.err != nil || at == nil {
		return nowhere, in.err
	}
	return int64(at[0]), nil
}

var errThrashing = errors.New("the expression needs too many states")

// findIn returns the position after the first match to end in a line, or
// nowhere. errThrashing means that package regexp should be used; an error of
// in ends the line.
func (d *lineDFA) findIn(in io.Reader) (int64, error) {
	buf := make([]byte, longChunk)
	st, filled, passed := d.start, 0, int64(0)
	for {
		n, err := in.Read(buf[filled:])
		part := buf[:filled+n]
		if err == nil {
			part, _ = text.WholeRunes(part)
		}
		var at int
		if st, at = d.feed(st, part); at != nowhere {
			return passed + int64(at), nil
		}
		passed += int64(len(part))
		switch {
		case err != nil && st.atEnd:
			return passed, nil
		case err != nil:
			return nowhere, nil
		case d.thrashing():
			return nowhere, errThrashing
		}
		filled = copy(buf, buf[len(part):filled+n])
	}
}

// excerptLong is the part of the line around a match that contains at or ends
// there.
func (s *searcher) excerptLong(l *longLine, at int64) (string, error) {
	const around = 64 << 10
	from := max(0, at-around)
	near := make([]byte, min(2*around, l.end-l.start-from))
	if _, err := l.file.ReadAt(near, l.start+from); err != nil && !errors.Is(err, io.EOF) {
		return "", workspace.Cause(err)
	}
	if loc := s.expr.regexp.FindIndex(near); loc != nil {
		at = from + int64(loc[0])
	}
	length := l.end - l.start
	first := max(from, min(at-maxExcerpt/4, length-maxExcerpt))
	last := min(first+maxExcerpt, from+int64(len(near)))
	return cutText(near[first-from:last-from], first > 0, last < length), nil
}

// longText reads the text of a line and keeps the error that ended it: to
// package regexp every error is the end of the text.
type longText struct {
	ctx  context.Context
	from *io.SectionReader
	err  error
}

// Read implements io.Reader.
func (t *longText) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		t.err = err
		return 0, err
	}
	n, err := t.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = workspace.Cause(err)
	}
	return n, err
}
