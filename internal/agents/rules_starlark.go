package agents

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// call is a call in a Starlark file.
type call struct {
	name string
	line int
	args map[string]any // a string, a []any, or nil for other literals
}

const maxNesting = 16 // the maximum nesting of lists

// starlark reads the calls in a file without evaluating anything. Every statement
// must be a call with named arguments that are literals.
type starlark struct {
	file string
	src  string
	at   int
	line int
}

// calls returns the calls in the file. The error has the line that cannot be read.
func (s *starlark) calls() (out []call, err error) {
	defer func() {
		if p, ok := recover().(*document.Problem); ok {
			out, err = nil, document.NewError([]document.Problem{*p})
		}
	}()
	s.line = 1
	for s.skip(); s.at < len(s.src); s.skip() {
		out = append(out, s.call())
	}
	return out, nil
}

// fail stops the parser with a panic, which calls recovers.
func (s *starlark) fail(format string, args ...any) {
	panic(&document.Problem{File: s.file, Line: s.line, Col: 1, Message: fmt.Sprintf(format, args...)})
}

// skip skips white space, comments and statement separators.
func (s *starlark) skip() {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case '\n':
			s.line++
		case ' ', '\t', '\r', ';':
		case '#':
			for s.at+1 < len(s.src) && s.src[s.at+1] != '\n' {
				s.at++
			}
		default:
			return
		}
		s.at++
	}
}

// take skips a character and reports whether it was the next one.
func (s *starlark) take(c byte) bool {
	s.skip()
	if s.at < len(s.src) && s.src[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *starlark) name() string {
	s.skip()
	start := s.at
	for s.at < len(s.src) && (s.src[s.at] == '_' || s.src[s.at] >= 'a' && s.src[s.at] <= 'z' ||
		s.src[s.at] >= 'A' && s.src[s.at] <= 'Z' || s.at > start && s.src[s.at] >= '0' && s.src[s.at] <= '9') {
		s.at++
	}
	return s.src[start:s.at]
}

func (s *starlark) call() call {
	c := call{line: s.line, args: map[string]any{}}
	if c.name = s.name(); c.name == "" || !s.take('(') {
		s.fail("expected a call such as prefix_rule(…); nothing else is read")
	}
	for !s.take(')') {
		key := s.name()
		if key == "" || !s.take('=') {
			s.fail("%s: expected an argument NAME = VALUE", c.name)
		}
		if _, twice := c.args[key]; twice {
			s.fail("%s: %s is given twice", c.name, key)
		}
		c.args[key] = s.value(0)
		if !s.take(',') && !strings.HasPrefix(s.rest(), ")") {
			s.fail("%s: expected , or ) after %s", c.name, key)
		}
	}
	return c
}

func (s *starlark) rest() string { s.skip(); return s.src[s.at:] }

func (s *starlark) value(depth int) any {
	rest := s.rest()
	switch {
	case depth > maxNesting:
		s.fail("lists are nested too deeply")
	case s.take('['):
		list := []any{}
		for !s.take(']') {
			list = append(list, s.value(depth+1))
			if !s.take(',') && !strings.HasPrefix(s.rest(), "]") {
				s.fail("expected , or ] in a list")
			}
		}
		return list
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "'"):
		return s.text()
	}
	for _, word := range []string{"True", "False", "None"} {
		if strings.HasPrefix(rest, word) {
			s.at += len(word)
			return nil
		}
	}
	s.fail("expected a string or a list; values are read, not computed")
	return nil
}

func (s *starlark) text() string {
	quote := s.src[s.at : s.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.src[s.at:], triple) {
		quote = triple
	}
	s.at += len(quote)
	var b strings.Builder
	for !strings.HasPrefix(s.src[s.at:], quote) {
		switch {
		case s.at >= len(s.src) || s.src[s.at] == '\n' && len(quote) == 1:
			s.fail("a string is not closed")
		case s.src[s.at] == '\\':
			b.WriteString(s.escape())
			continue
		case s.src[s.at] == '\n':
			s.line++
		}
		b.WriteByte(s.src[s.at])
		s.at++
	}
	s.at += len(quote)
	if !utf8.ValidString(b.String()) {
		s.fail("a string is not valid UTF-8")
	}
	return b.String()
}

func (s *starlark) escape() string {
	if s.at+1 >= len(s.src) {
		s.fail("a string is not closed")
	}
	c := s.src[s.at+1]
	known := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': `\`, '"': `"`, '\'': "'"}[c]
	if known == "" {
		s.fail(`unknown escape \%c in a string`, c)
	}
	s.at += 2
	return known
}
