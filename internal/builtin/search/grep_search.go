package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// searchBuffer is large enough to read most files at once.
	searchBuffer = 256 << 10
	// maxLine limits how much of a line is searched, in bytes; the rest is skipped.
	maxLine = 8 << 20
	// maxKept limits the lines kept as context for the next match, in bytes.
	maxKept = 64 << 10
	// maxExcerpt limits the shown part of a line, in bytes.
	maxExcerpt = 500
	// maxConverted limits the size of a file that is decoded to be searched, in
	// bytes.
	maxConverted = 64 << 20
)

// found holds the matches in one file.
type found struct {
	lines   []foundLine
	matches int
	more    bool // there are matches beyond the limit
	cut     int  // lines of which only the first maxLine bytes were searched
	binary  bool // the file was skipped
}

type foundLine struct {
	number int // from 1
	text   string
	match  bool // it matches, and is not only context
	part   bool // text is a part of the line
}

// keep removes the lines after the first n matches.
func (f *found) keep(n int) {
	f.matches = n
	for i, l := range f.lines {
		if !l.match {
			continue
		}
		if n == 0 {
			f.lines = f.lines[:i]
			// Keep the context before the removed match: it may also be context
			// after the previous match.
			return
		}
		n--
	}
}

// searcher searches files one at a time with one buffer. It is not safe for
// concurrent use.
type searcher struct {
	expr    *lineExpr
	context int
	limit   int // maximum number of matching lines

	buf     []byte
	seekers []seeker
	dfa     *lineDFA // nil means use only package regexp
	window
	found found
}

// window is the part of a file in the buffer.
type window struct {
	counted int // a line start in buf
	number  int // the number of the line at counted
	shown   int // lines before this offset are already in found
	after   int // lines of context still to be shown after the last match
}

// errNUL stops the search of a binary file.
var errNUL = errors.New("contains a NUL byte")

// file searches one file. size is its size when it was opened, or 0 if unknown:
// once that much has been read, no further read is needed to detect the end.
func (s *searcher) file(ctx context.Context, r io.Reader, size int64) (found, error) {
	if s.buf == nil {
		s.buf = make([]byte, searchBuffer)
		s.seekers = make([]seeker, len(s.expr.needs))
		for i := range s.seekers {
			s.seekers[i].need = &s.expr.needs[i]
		}
		s.dfa = newLineDFA(s.expr)
	}
	s.window = window{number: 1}
	s.found = found{}
	err := s.windows(ctx, r, size)
	if errors.Is(err, errNUL) {
		return found{binary: true}, nil
	}
	return s.found, err
}

// windows searches the file one bufferful at a time.
func (s *searcher) windows(ctx context.Context, r io.Reader, size int64) error {
	filled, from := 0, 0 // buf[:from] has been searched and is kept as context
	skip := false        // skipping to the end of a line that is too long
	for first := true; ; first = false {
		if filled == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		n, err := io.ReadAtLeast(r, s.buf[filled:], 1)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return text.Cause(err)
		}
		fresh := s.buf[filled : filled+n]
		filled += n
		if first {
			if enc := encodingToConvert(fresh); enc != textfile.UTF8 {
				raw := io.LimitReader(io.MultiReader(bytes.NewReader(bytes.Clone(fresh)), r), maxConverted)
				return s.windows(ctx, enc.Reader(bufio.NewReader(raw)), 0)
			}
		}
		if bytes.IndexByte(fresh, 0) >= 0 {
			return errNUL
		}
		if skip {
			rest := fresh[lineEnd(fresh, 0):]
			skip = len(rest) == 0
			kept := copy(fresh, rest[min(1, len(rest)):])
			filled -= len(fresh) - kept
			fresh = fresh[:kept]
		}
		if first && bytes.HasPrefix(fresh, []byte(textfile.BOM)) {
			from, s.shown = len(textfile.BOM), len(textfile.BOM)
		}
		last = last || first && int64(n) == size && filled < len(s.buf)
		end := filled
		// There is no line break between from and fresh.
		if i := bytes.LastIndexByte(fresh, '\n'); !last && i >= 0 {
			end = filled - len(fresh) + i + 1
		} else if !last && filled-from > maxLine {
			s.buf[filled-1] = '\n'
			s.found.cut++
			skip = true
		} else if !last {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue // read on to the end of the line
		}
		s.search(s.buf[:end], from)
		if last || s.found.more {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		filled, from = s.slide(end, filled)
	}
}

// slide moves the unsearched text to the front of the buffer, after the lines
// that may become context. It returns how much of the buffer is filled and
// where the search continues.
func (s *searcher) slide(end, filled int) (int, int) {
	keep := max(s.lineStart(s.buf[:end], end, s.context), end-maxKept)
	s.number += bytes.Count(s.buf[s.counted:end], []byte{'\n'})
	s.counted = end - keep
	s.shown = max(0, s.shown-keep)
	copy(s.buf, s.buf[keep:filled])
	return filled - keep, end - keep
}

// lineStart returns the start of the line n lines before the line start at.
func (s *searcher) lineStart(text []byte, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
	}
	return at
}

// search finds the matching lines in text[from:], where from is the start of a
// line.
func (s *searcher) search(text []byte, from int) {
	for i := range s.seekers {
		s.seekers[i].reset()
	}
	if s.dfa != nil && s.dfa.flushes > maxDFAFlushes {
		s.dfa = nil
	}
	for from < len(text) {
		at := s.candidate(text, from)
		if at == nowhere {
			break
		}
		start := from + bytes.LastIndexByte(text[from:at], '\n') + 1
		end := lineEnd(text, at)
		if s.matches(text[start:end]) {
			if s.found.matches == s.limit {
				s.found.more = true
				s.showAfter(text, start)
				return
			}
			s.match(text, start, end)
		}
		from = end + 1
	}
	s.showAfter(text, len(text))
}

// candidate returns a position in the next line that may match.
func (s *searcher) candidate(text []byte, from int) int {
	if len(s.seekers) == 0 {
		if s.dfa != nil {
			return s.dfa.findLine(text, from)
		}
		return from
	}
	best := nowhere
	for i := range s.seekers {
		if at := s.seekers[i].seek(text, from); at != nowhere && (best == nowhere || at < best) {
			best = at
		}
	}
	return best
}

func (s *searcher) matches(line []byte) bool {
	if s.dfa == nil {
		return s.expr.regexp.Match(trimCR(line))
	}
	return s.dfa.findLine(line, 0) != nowhere || len(line) == 0 && s.dfa.start.atEnd
}

// match records the line text[start:end] with its context.
func (s *searcher) match(text []byte, start, end int) {
	s.showAfter(text, start)
	first := max(s.shown, s.lineStart(text, start, s.context))
	s.show(text, first, start, s.context)
	s.addLine(text, start, end, true)
	s.found.matches++
	s.after = s.context
}

// showAfter shows the remaining context after the last match, up to the line
// start at limit.
func (s *searcher) showAfter(text []byte, limit int) {
	if s.after > 0 {
		s.after -= s.show(text, s.shown, limit, s.after)
	}
}

// show adds at most n lines of text[from:to] as context and returns their
// number.
func (s *searcher) show(text []byte, from, to, n int) int {
	shown := 0
	for ; from < to && shown < n; shown++ {
		end := to
		if i := bytes.IndexByte(text[from:to], '\n'); i >= 0 {
			end = from + i
		}
		s.addLine(text, from, end, false)
		from = end + 1
	}
	return shown
}

func (s *searcher) addLine(text []byte, start, end int, match bool) {
	if start >= s.counted {
		s.number += bytes.Count(text[s.counted:start], []byte{'\n'})
	} else {
		s.number -= bytes.Count(text[start:s.counted], []byte{'\n'})
	}
	s.counted = start
	s.shown = min(end+1, len(text))
	line := trimCR(text[start:end])
	s.found.lines = append(s.found.lines,
		foundLine{number: s.number, text: s.excerpt(line, match), match: match, part: len(line) > maxExcerpt})
}

// excerpt shortens a long line to the part around its match.
func (s *searcher) excerpt(line []byte, match bool) string {
	if len(line) <= maxExcerpt {
		return text.Valid(line)
	}
	from := 0
	if match {
		if loc := s.expr.regexp.FindIndex(line); loc != nil {
			from = max(0, min(loc[0]-maxExcerpt/4, len(line)-maxExcerpt))
		}
	}
	to := min(from+maxExcerpt, len(line))
	out := strings.ToValidUTF8(string(line[from:to]), "")
	if from > 0 {
		out = "... " + out
	}
	if to < len(line) {
		out += " ... [truncated]"
	}
	return out
}

// encodingToConvert returns the encoding of a file that is converted to be searched, by its
// beginning; UTF8 for all others.
func encodingToConvert(head []byte) textfile.Encoding {
	head = head[:min(len(head), textfile.SniffBytes)]
	if whole, _ := text.WholeRunes(head); utf8.Valid(whole) && bytes.IndexByte(head, 0) < 0 {
		return textfile.UTF8
	}
	if enc, ok := textfile.Detect(head); ok && enc.Converted() {
		return enc
	}
	return textfile.UTF8
}

// seeker finds one need in a text from front to back. It remembers the
// positions it has already found, to avoid searching twice.
type seeker struct {
	need *need
	next int // the last position found, unknown or nowhere
	low  int // the next position of the anchor in lower case
	high int // and in upper case
}

// reset prepares for another text.
func (k *seeker) reset() { k.next, k.low, k.high = unknown, unknown, unknown }

// seek returns the first position at or after from where the need occurs, or
// nowhere. from never decreases between two resets.
func (k *seeker) seek(text []byte, from int) int {
	if k.next == nowhere || k.next >= from {
		return k.next
	}
	if k.need.fold {
		k.next = k.seekFold(text, from)
	} else {
		k.next = nowhere
		if i := bytes.Index(text[from:], k.need.text); i >= 0 {
			k.next = from + i
		}
	}
	return k.next
}

func (k *seeker) seekFold(text []byte, from int) int {
	n := k.need
	low := n.text[n.anchor]
	high := low
	if 'a' <= low && low <= 'z' {
		high = low - 'a' + 'A'
	}
	for at := from + n.anchor; ; {
		k.low = byteFrom(text, low, k.low, at)
		hit := k.low
		if high != low {
			k.high = byteFrom(text, high, k.high, at)
			if hit == nowhere || k.high != nowhere && k.high < hit {
				hit = k.high
			}
		}
		if hit == nowhere {
			return nowhere
		}
		start := hit - n.anchor
		if end := start + len(n.text); end <= len(text) && equalFold(text[start:end], n.text) {
			return start
		}
		at = hit + 1
	}
}

// byteFrom advances known, a position of c, to the first position at or after
// from.
func byteFrom(text []byte, c byte, known, from int) int {
	if known == nowhere || known >= from {
		return known
	}
	if from >= len(text) {
		return nowhere
	}
	i := bytes.IndexByte(text[from:], c)
	if i < 0 {
		return nowhere
	}
	return from + i
}

// equalFold compares ASCII text with lower-case text of the same length.
func equalFold(text, folded []byte) bool {
	for i, c := range text {
		if lower(c) != folded[i] {
			return false
		}
	}
	return true
}
