package jsonx

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The functions in this file read JSON without copying it: they return slices
// of the given bytes. They expect valid JSON (json.Valid); for
// other text they return no value.

// Members yields the members of an object in order, including duplicates. A
// value that is not an object has none.
func Members(raw json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := firstElement(raw, '{')
		for i > 0 && i < len(raw) && raw[i] == '"' {
			c := memberAt(raw, i)
			if c.End < 0 || !yield(c.Key, raw[c.Start:c.End:c.End]) {
				return
			}
			i = next(raw, c.End)
		}
	}
}

// Elements returns the elements of an array; false if raw is not an array.
func Elements(raw json.RawMessage) ([]json.RawMessage, bool) {
	i := firstElement(raw, '[')
	if i < 0 {
		return nil, false
	}
	out := []json.RawMessage{}
	for i < len(raw) && raw[i] != ']' {
		end := skipValue(raw, i)
		if end < 0 {
			return nil, false
		}
		out = append(out, raw[i:end:end])
		if i = next(raw, end); i < 0 {
			break
		}
	}
	return out, true
}

// Get returns the last value of a key in an object; nil if there is none.
func Get(raw json.RawMessage, key string) json.RawMessage {
	var out json.RawMessage
	for k, v := range Members(raw) {
		if k == key {
			out = v
		}
	}
	return out
}

// Child is a member of an object or an element of an array in a text: its name or index, and
// the offsets where the name and the value begin and where the value ends. An element has no
// name, so Name is that of the value.
type Child struct {
	Key              string
	Name, Start, End int
}

// Children yields the children of the object or array that begins at an offset of raw.
func Children(raw json.RawMessage, at int) iter.Seq[Child] {
	return func(yield func(Child) bool) {
		at = space(raw, at)
		isObject := at < len(raw) && raw[at] == '{'
		i := space(raw, at+1)
		for index := 0; i >= 0 && i < len(raw) && raw[i] != '}' && raw[i] != ']'; index++ {
			c := Child{Name: i, Start: i}
			if isObject {
				c = memberAt(raw, i)
			} else {
				c.Key, c.End = strconv.Itoa(index), skipValue(raw, i)
			}
			if c.End < 0 || !yield(c) {
				return
			}
			i = next(raw, c.End)
		}
	}
}

// memberAt returns the member of an object that begins at i. Its End is -1 if there is none.
func memberAt(raw []byte, i int) Child {
	c := Child{Name: i, End: -1}
	if end := skipValue(raw, i); end >= 0 {
		key, ok := Text(raw[i:end])
		if end = space(raw, end); ok && end < len(raw) && raw[end] == ':' {
			c.Key, c.Start = key, space(raw, end+1)
			c.End = skipValue(raw, c.Start)
		}
	}
	return c
}

// Text returns the value of a string; false if raw is not a string. Invalid
// UTF-8 and unpaired surrogates become U+FFFD.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if !utf8.Valid(inner) {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	return unescape(inner)
}

// KindOf returns the kind of the value in raw by its first byte.
func KindOf(raw json.RawMessage) Kind {
	i := space(raw, 0)
	if i >= len(raw) {
		return None
	}
	return kindOf(raw[i])
}

func kindOf(first byte) Kind {
	switch c := first; {
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '"':
		return String
	case c == 't':
		return True
	case c == 'f':
		return False
	case c == 'n':
		return Null
	case c == '-' || c >= '0' && c <= '9':
		return Number
	}
	return None
}

// Depth returns the maximum nesting of objects and arrays.
func Depth(raw json.RawMessage) int {
	deepest, depth := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			if i = skipString(raw, i) - 1; i < 0 {
				return deepest
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// Flatten replaces values that are nested more than most levels deep with null, for
// decoders that would reject the whole text.
func Flatten(raw json.RawMessage, most int) json.RawMessage {
	out := make(json.RawMessage, 0, len(raw))
	depth, start := 0, 0 // start is that of the text that is not in out yet
	for i := 0; i >= 0 && i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i = skipString(raw, i)
		case (c == '{' || c == '[') && depth == most:
			out = append(append(out, raw[start:i]...), "null"...)
			if i = skipNested(raw, i); i < 0 { // it is not terminated
				return out
			}
			start = i
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			i++
		default:
			i++
		}
	}
	return append(out, raw[start:]...)
}

// AppendCompact appends raw without the white space between its tokens to dst.
func AppendCompact(dst []byte, raw json.RawMessage) []byte {
	start := 0 // of the text that is not in dst yet
	for i := 0; i >= 0 && i < len(raw); {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
		case ' ', '\t', '\n', '\r':
			dst = append(dst, raw[start:i]...)
			i = space(raw, i)
			start = i
		default:
			i++
		}
	}
	return append(dst, raw[start:]...)
}

// IsNull reports whether raw is null or empty.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// IsEmptyList reports whether raw is a list without elements, which is also how PHP writes an empty object.
func IsEmptyList(raw json.RawMessage) bool {
	i := firstElement(raw, '[')
	return i >= 0 && i < len(raw) && raw[i] == ']'
}

// firstElement returns the index of the first element after an opening bracket, or of the
// closing bracket if there is no element; -1 if raw does not begin with bracket.
func firstElement(raw []byte, bracket byte) int {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != bracket {
		return -1
	}
	return space(raw, i+1)
}

// next returns the index of the element after the next comma at or after i; -1
// at the end.
func next(raw []byte, i int) int {
	i = space(raw, i)
	if i >= len(raw) || raw[i] != ',' {
		return -1
	}
	return space(raw, i+1)
}

// skipValue returns the index after the value that starts at i; -1 if there is none.
func skipValue(raw []byte, i int) int {
	if i >= len(raw) {
		return -1
	}
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
		return skipNested(raw, i)
	}
	for i < len(raw) && strings.IndexByte(",]} \t\r\n", raw[i]) < 0 {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i; -1 if it does not
// end.
func skipString(raw []byte, i int) int {
	for i++; ; {
		if i = literalEnd(raw, i); i >= len(raw) {
			return -1
		}
		switch raw[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
}

func skipNested(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			if i = skipString(raw, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// Valid reports whether data is one JSON value. It is like [json.Valid] but many times
// faster, because all data from servers is checked with it.
func Valid(data []byte) bool {
	s := scanner{data: data}
	return s.value() && s.skipSpace() == len(data)
}

// value skips a value with everything in it.
func (s *scanner) value() bool {
	var few [64]byte
	open := few[:0] // the closing brackets of the open objects and arrays
	for {
		c := s.next()
		if c == '{' || c == '[' {
			end := c + 2
			if len(open) == maxDepth {
				return false
			}
			open = append(open, end)
			if at := s.skipSpace(); at == len(s.data) || s.data[at] != end {
				if c == '{' && !s.key() {
					return false
				}
				continue
			}
		} else if !s.scalar(c) {
			return false
		}
		for {
			if len(open) == 0 {
				return true
			}
			end := open[len(open)-1]
			c := s.next()
			if c == ',' {
				if end == '}' && !s.key() {
					return false
				}
				break
			}
			if c != end {
				return false
			}
			open = open[:len(open)-1]
		}
	}
}

// key skips the key of a member and the colon after it.
func (s *scanner) key() bool { return s.next() == '"' && s.text() == "" && s.next() == ':' }

// scalar skips the rest of a scalar that begins with c.
func (s *scanner) scalar(c byte) bool {
	switch c {
	case '"':
		return s.text() == ""
	case 't':
		return s.word("rue")
	case 'f':
		return s.word("alse")
	case 'n':
		return s.word("ull")
	case 0:
		return false
	}
	s.pos--
	return s.number() == ""
}
