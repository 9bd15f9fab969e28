package jsonx

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError reports what is wrong with a JSON text and where.
type SyntaxError struct {
	Pointer string // JSON pointer to the value with the mistake
	Offset  int    // in bytes from the start
	Message string // with line and column if they help
}

// Error returns the message.
func (e *SyntaxError) Error() string { return e.Message }

// within adds the step from an object or array to the value with the mistake.
func (e *SyntaxError) within(step string) *SyntaxError {
	e.Pointer = "/" + EscapeToken(step) + e.Pointer
	return e
}

// scanner reads the tokens of a JSON text.
type scanner struct {
	data []byte
	pos  int // of the next byte

	surrogate bool // a string may have an unpaired surrogate
}

// peek skips white space and returns the byte after it. At the end of the text
// it returns false and stays before the white space.
func (s *scanner) peek() (byte, bool) {
	for i := s.pos; i < len(s.data); i++ {
		if c := s.data[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.pos = i
			return c, true
		}
	}
	return 0, false
}

// next skips white space and the byte after it, which it returns; 0 at the end
// of the text.
func (s *scanner) next() byte {
	if s.pos == len(s.data) || s.data[s.pos] <= ' ' && s.skipSpace() == len(s.data) {
		return 0
	}
	s.pos++
	return s.data[s.pos-1]
}

// skipSpace returns the position after white space.
func (s *scanner) skipSpace() int {
	s.pos = space(s.data, s.pos)
	return s.pos
}

func (s *scanner) fail(format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: s.pos, Message: fmt.Sprintf(format, args...)}
}

// place describes the position of the scanner for messages.
func (s *scanner) place() string {
	line, column := NewLines(s.data).At(s.pos)
	return fmt.Sprintf("line %d, column %d", line, column)
}

// unexpected returns the error for the next byte; where describes its context.
func (s *scanner) unexpected(where string) *SyntaxError {
	c, ok := s.peek()
	if !ok {
		return s.early()
	}
	return s.invalid(c, where)
}

// early returns the error for a text that ends too early.
func (s *scanner) early() *SyntaxError { return s.fail("unexpected end, at %s", s.place()) }

// invalid returns the error for an unexpected byte; where describes its context.
func (s *scanner) invalid(c byte, where string) *SyntaxError {
	return s.fail("unexpected character %s, at %s", strings.TrimRight(quoteByte(c)+" "+where, " "), s.place())
}

func quoteByte(c byte) string {
	switch c {
	case '\'':
		return `'\''`
	case '"':
		return `'"'`
	}
	quoted := strconv.Quote(string(rune(c)))
	return "'" + quoted[1:len(quoted)-1] + "'"
}

func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}
