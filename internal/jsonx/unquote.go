package jsonx

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote decodes a well-formed JSON string.
func unquote(token string) string {
	inner := token[1 : len(token)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	s, _ := unescape([]byte(inner))
	return s
}

// unescape resolves the escapes of a JSON string several times faster than the
// standard decoder, which matters for results of many megabytes.
func unescape(s []byte) (string, bool) {
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			b.Write(s)
			return b.String(), true
		}
		b.Write(s[:i])
		if s = s[i+1:]; len(s) == 0 {
			return "", false
		}
		if s[0] == 'u' {
			r, n := unicodeEscape(s[1:])
			if n == 0 {
				return "", false
			}
			b.WriteRune(r)
			s = s[1+n:]
			continue
		}
		at := strings.IndexByte(`"\/bfnrt`, s[0])
		if at < 0 {
			return "", false
		}
		b.WriteByte("\"\\/\b\f\n\r\t"[at])
		s = s[1:]
	}
}

// unicodeEscape decodes the digits after \u, including a second escape if both
// form one character. It returns how many bytes they take; 0 if they are
// invalid.
func unicodeEscape(s []byte) (rune, int) {
	first, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 4
	}
	if len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if second, ok := hex4(s[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return r, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 16)
	return rune(n), err == nil
}
