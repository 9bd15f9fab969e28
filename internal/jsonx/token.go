package jsonx

import (
	"strings"
	"unicode/utf8"
)

// literal reads true, false or null.
func (s *scanner) literal(word string) (string, *SyntaxError) {
	for i := 1; i < len(word); i++ {
		if s.pos+i >= len(s.src) {
			return "", s.early()
		}
		if s.src[s.pos+i] != word[i] {
			return "", s.fail("unexpected word %q, at %s", s.word(), s.place())
		}
	}
	s.pos += len(word)
	return word, nil
}

// word returns the letters at pos, shortened for a message.
func (s *scanner) word() string {
	end := s.pos
	for end < len(s.src) && end < s.pos+20 && s.src[end]|0x20 >= 'a' && s.src[end]|0x20 <= 'z' {
		end++
	}
	return s.src[s.pos:end]
}

// string reads a string and returns its JSON text.
func (s *scanner) string() (string, *SyntaxError) {
	surrogates := false
	for i := s.pos + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			token := s.src[s.pos : i+1]
			s.pos = i + 1
			if surrogates {
				token = mendSurrogates(token)
			}
			return token, nil
		case c == '\\':
			n, where := escapeLength(s.src[i:])
			if where != "" {
				if i+n >= len(s.src) {
					return "", s.early()
				}
				return "", s.invalid(s.src[i+n], where)
			}
			surrogates = surrogates || n == 6 && s.src[i+2]|0x20 == 'd'
			i += n - 1
		case c < ' ':
			return "", s.invalid(c, "in a string")
		}
	}
	return "", s.early()
}

// escapeLength returns the length of the escape at the beginning of s. If it is
// invalid, it returns the index of the wrong or missing byte, and a description
// of its context.
func escapeLength(s string) (n int, where string) {
	if len(s) < 2 {
		return 1, "in an escape of a string"
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(s) || strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
				return i, `in a \u escape of a string`
			}
		}
		return 6, ""
	}
	return 1, "in an escape of a string"
}

// mendSurrogates rewrites a string that has half a surrogate pair, for which
// strict readers reject the whole document.
func mendSurrogates(token string) string {
	text := unquote(token)
	if !strings.ContainsRune(text, utf8.RuneError) {
		return token
	}
	return Quote(text)
}

// number reads a number. The caller checks what follows.
func (s *scanner) number() (string, *SyntaxError) {
	i := s.pos
	if s.src[i] == '-' {
		i++
	}
	var err *SyntaxError
	if i < len(s.src) && s.src[i] == '0' {
		i++
	} else if i, err = s.digits(i, "in a number"); err != nil {
		return "", err
	}
	if i < len(s.src) && s.src[i] == '.' {
		if i, err = s.digits(i+1, "after the decimal point of a number"); err != nil {
			return "", err
		}
	}
	if i < len(s.src) && s.src[i]|0x20 == 'e' {
		if i++; i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
			i++
		}
		if i, err = s.digits(i, "in the exponent of a number"); err != nil {
			return "", err
		}
	}
	token := s.src[s.pos:i]
	s.pos = i
	return token, nil
}

// digits returns the index after the digits at i, of which there must be at
// least one.
func (s *scanner) digits(i int, where string) (int, *SyntaxError) {
	start := i
	for i < len(s.src) && s.src[i] >= '0' && s.src[i] <= '9' {
		i++
	}
	switch {
	case i > start:
		return i, nil
	case i >= len(s.src):
		return i, s.early()
	}
	return i, s.invalid(s.src[i], where)
}
