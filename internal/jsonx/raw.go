package jsonx

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// The functions of this file look into JSON without copying it: what they
// return are parts of the given bytes. They expect valid JSON (json.Valid) and
// yield nothing of anything else.

// Members yields the members of an object in order. A key may come twice. What
// is no object has none.
func Members(raw json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := open(raw, '{')
		for i > 0 && i < len(raw) && raw[i] == '"' {
			keyEnd := skip(raw, i)
			if keyEnd < 0 {
				return
			}
			key, ok := Text(raw[i:keyEnd])
			start := space(raw, keyEnd)
			if !ok || start >= len(raw) || raw[start] != ':' {
				return
			}
			start = space(raw, start+1)
			end := skip(raw, start)
			if end < 0 || !yield(key, raw[start:end:end]) {
				return
			}
			i = next(raw, end)
		}
	}
}

// Elements returns the elements of an array, and false when raw is no array.
func Elements(raw json.RawMessage) ([]json.RawMessage, bool) {
	i := open(raw, '[')
	if i < 0 {
		return nil, false
	}
	out := []json.RawMessage{}
	for i < len(raw) && raw[i] != ']' {
		end := skip(raw, i)
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

// Get returns the last value of a key of an object, nil if there is none.
func Get(raw json.RawMessage, key string) json.RawMessage {
	var out json.RawMessage
	for k, v := range Members(raw) {
		if k == key {
			out = v
		}
	}
	return out
}

// Text returns the string that raw holds, and false when it is no string. What
// is no valid UTF-8, or half a surrogate pair, becomes U+FFFD.
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

// KindOf returns the kind of the value that raw begins with, as its first byte
// tells.
func KindOf(raw json.RawMessage) Kind {
	i := space(raw, 0)
	if i >= len(raw) {
		return None
	}
	switch c := raw[i]; {
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

// Depth returns how many objects and arrays stand within each other at most.
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

// Flatten returns raw with null in place of what is nested deeper than most
// objects and arrays, for decoders that refuse the whole for it.
func Flatten(raw json.RawMessage, most int) json.RawMessage {
	out := make(json.RawMessage, 0, len(raw))
	depth, start := 0, 0 // start of what is not in out yet
	for i := 0; i >= 0 && i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i = skipString(raw, i)
		case (c == '{' || c == '[') && depth == most:
			out = append(append(out, raw[start:i]...), "null"...)
			if i = skipNested(raw, i); i < 0 { // it has no end
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

// IsNull reports whether raw is null or nothing at all.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// open returns the index of the first element behind an opening bracket, the
// closing bracket's where there is none, and -1 when raw is something else.
func open(raw []byte, bracket byte) int {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != bracket {
		return -1
	}
	return space(raw, i+1)
}

// next returns the index of the element behind the comma at or behind i, -1 at
// the end.
func next(raw []byte, i int) int {
	i = space(raw, i)
	if i >= len(raw) || raw[i] != ',' {
		return -1
	}
	return space(raw, i+1)
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// skip returns the index behind the value that starts at i, -1 at its lack.
func skip(raw []byte, i int) int {
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

func skipString(raw []byte, i int) int {
	for i++; i < len(raw); {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		slashes := 0
		for end-slashes-1 >= i && raw[end-slashes-1] == '\\' {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return -1
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
