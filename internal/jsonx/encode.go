package jsonx

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Marshal is json.Marshal but does not escape <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil // without the newline
}

// Decode decodes one JSON value like json.Unmarshal into an any, but with numbers as
// json.Number, which keeps their text.
func Decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data[dec.InputOffset():])) > 0 {
		return nil, errors.New("text after the JSON value")
	}
	return v, nil
}

// Quote returns s as a JSON string.
func Quote(s string) string { return string(AppendQuote(nil, s)) }

// AppendQuote appends s to dst as a JSON string, as [Marshal] writes it:
// invalid UTF-8 becomes U+FFFD, and the line separators U+2028 and U+2029,
// which end lines in JavaScript, are escaped.
func AppendQuote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	plain := 0
	for plain < len(s) && s[plain] >= ' ' && s[plain] < utf8.RuneSelf && s[plain] != '"' && s[plain] != '\\' {
		plain++
	}
	if dst = append(dst, '"'); plain == len(s) { // most texts
		return append(append(dst, s...), '"')
	}
	start := 0 // start of the text that is not appended yet
	for i, r := range s {
		switch {
		case r == '\uFFFD' && !strings.HasPrefix(s[i:], "\uFFFD"): // an invalid byte
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			start = i + 1
			continue
		case r == '"', r == '\\':
			dst = append(append(dst, s[start:i]...), '\\', byte(r))
		case r == '\b', r == '\f', r == '\n', r == '\r', r == '\t':
			dst = append(append(dst, s[start:i]...), '\\', "btn_fr"[r-'\b'])
		case r < ' ', r == '\u2028', r == '\u2029':
			dst = append(append(dst, s[start:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			continue
		}
		start = i + 1
		if r >= 0x80 {
			start = i + 3
		}
	}
	return append(append(dst, s[start:]...), '"')
}

func withArticle(kind string) string {
	switch kind {
	case "bool":
		return "a boolean"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + kind
}

// jsonType returns the JSON type that a Go type has; isNumber is set for a number that does
// not fit.
func jsonType(t reflect.Type, isNumber bool) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem(), isNumber)
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	if isNumber {
		return "an integer in range"
	}
	return "an integer"
}

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
