package jsonx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
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
	return s.fail("unexpected character %s, at %s", strings.TrimRight(strconv.QuoteRune(rune(c))+" "+where, " "), s.place())
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// The methods of scanner below skip a token. If it is invalid, they return where,
// such as "in a string", and stop at the invalid byte or the end of the text;
// otherwise they return "".

// text skips a string after its opening quote.
func (s *scanner) text() (wrongIn string) {
	for {
		i := literalEnd(s.data, s.pos)
		if s.pos = i; i == len(s.data) {
			return "in a string"
		}
		switch s.data[i] {
		case '"':
			s.pos++
			return ""
		case '\\':
			s.pos++
			if wrongIn = s.escape(); wrongIn != "" {
				return wrongIn
			}
		default:
			return "in a string"
		}
	}
}

// literalEnd returns the index of the first byte that a string cannot contain literally: a
// quote, a backslash or a control character. It checks eight bytes at a time: the
// first such byte is the first one whose highest bit is set by the subtractions,
// because a borrow affects only later bytes.
func literalEnd(data []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := w^ones*'"', w^ones*'\\'
		if special := ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
		i += 8
	}
	for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
		i++
	}
	return i
}

// escape skips what follows a backslash.
func (s *scanner) escape() (wrongIn string) {
	if s.pos == len(s.data) {
		return "in an escape of a string"
	}
	switch s.data[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return ""
	case 'u':
		s.pos++
	default:
		return "in an escape of a string"
	}
	s.surrogate = s.surrogate || s.pos < len(s.data) && s.data[s.pos]|0x20 == 'd'
	for end := s.pos + 4; s.pos < end; s.pos++ {
		if s.pos == len(s.data) || !isHex(s.data[s.pos]) {
			return `in a \u escape of a string`
		}
	}
	return ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// word skips true, false or null.
func (s *scanner) word(word string) bool {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// number skips a number. The caller checks what follows.
func (s *scanner) number() (wrongIn string) {
	d, i := s.data, s.pos
	if i < len(d) && d[i] == '-' {
		i++
	}
	if i < len(d) && d[i] == '0' {
		i++
	} else if i = s.digits(i); i < 0 {
		return "in a number"
	}
	if i < len(d) && d[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return "after the decimal point of a number"
		}
	}
	if i < len(d) && d[i]|0x20 == 'e' {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		if i = s.digits(i); i < 0 {
			return "in the exponent of a number"
		}
	}
	s.pos = i
	return ""
}

// digits returns the index after the digits at i. If there are none, it returns -1
// and stops at i.
func (s *scanner) digits(i int) int {
	start := i
	for i < len(s.data) && s.data[i]-'0' <= 9 {
		i++
	}
	if i == start {
		s.pos = i
		return -1
	}
	return i
}

// token returns the text of the token that began at start and was skipped.
func (p *Parser) token(start int, wrongIn string) (string, *SyntaxError) {
	if wrongIn == "" {
		return p.src[start:p.pos], nil
	}
	at := p.pos
	p.pos = start
	if at == len(p.data) {
		return "", p.early()
	}
	return "", p.invalid(p.data[at], wrongIn)
}

// literal reads true, false or null.
func (p *Parser) literal(word string) (string, *SyntaxError) {
	switch rest := p.src[p.pos:]; {
	case p.word(word):
		return word, nil
	case strings.HasPrefix(word, rest):
		return "", p.early()
	default:
		end := strings.IndexFunc(rest, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' })
		if end < 0 {
			end = len(rest)
		}
		return "", p.fail("unexpected word %q, at %s", rest[:min(end, 20)], p.place())
	}
}

// string reads a string and returns its JSON text.
func (p *Parser) string() (string, *SyntaxError) {
	start := p.pos
	p.pos++
	p.surrogate = false
	if wrongIn := p.text(); wrongIn != "" {
		return p.token(start, wrongIn)
	}
	token := p.src[start:p.pos]
	if p.surrogate {
		token = mendSurrogates(token)
	}
	return token, nil
}

// mendSurrogates replaces unpaired surrogates in a string, because of which strict
// parsers would reject the whole document.
func mendSurrogates(token string) string {
	text := unquote(token)
	if !strings.ContainsRune(text, utf8.RuneError) {
		return token
	}
	return Quote(text)
}
