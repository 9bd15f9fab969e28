package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// maxNesting is the maximum nesting that encoding/json accepts.
const maxNesting = 10000

// Valid reports whether data is one JSON value, like [json.Valid] but many times
// as fast, because all data from servers is checked with it.
func Valid(data []byte) bool {
	v := validator{data: data}
	return v.value() && v.skipSpace() == len(data)
}

// validator is at pos in data.
type validator struct {
	data []byte
	pos  int
}

// skipSpace returns the position after white space.
func (v *validator) skipSpace() int {
	v.pos = space(v.data, v.pos)
	return v.pos
}

// next skips white space and the byte after it, which it returns; 0 at the end
// of data.
func (v *validator) next() byte {
	if v.pos == len(v.data) || v.data[v.pos] <= ' ' && v.skipSpace() == len(v.data) {
		return 0
	}
	v.pos++
	return v.data[v.pos-1]
}

// value skips a value with all that it contains.
func (v *validator) value() bool {
	var few [64]byte
	open := few[:0] // the brackets that close what is open
	for {
		c := v.next()
		if c == '{' || c == '[' {
			end := c + 2
			if len(open) == maxNesting {
				return false
			}
			open = append(open, end)
			if at := v.skipSpace(); at == len(v.data) || v.data[at] != end {
				if c == '{' && !v.key() {
					return false
				}
				continue
			}
		} else if !v.scalar(c) {
			return false
		}
		for {
			if len(open) == 0 {
				return true
			}
			end := open[len(open)-1]
			c := v.next()
			if c == ',' {
				if end == '}' && !v.key() {
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
func (v *validator) key() bool { return v.next() == '"' && v.text() && v.next() == ':' }

// scalar skips the rest of what begins with c.
func (v *validator) scalar(c byte) bool {
	switch c {
	case '"':
		return v.text()
	case 't':
		return v.word("rue")
	case 'f':
		return v.word("alse")
	case 'n':
		return v.word("ull")
	case 0:
		return false
	}
	v.pos--
	return v.number()
}

// text skips a string after its opening quote.
func (v *validator) text() bool {
	for {
		v.plain()
		if v.pos == len(v.data) {
			return false
		}
		c := v.data[v.pos]
		v.pos++
		switch {
		case c == '"':
			return true
		case c != '\\' || !v.escape():
			return false
		}
	}
}

// plain skips the bytes of a string that need no escape, eight at a time: a
// byte of the word is a quote, a backslash or a control character if the
// subtraction borrows from its highest bit, and no byte before it borrows.
func (v *validator) plain() {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for v.pos+8 <= len(v.data) {
		w := binary.LittleEndian.Uint64(v.data[v.pos:])
		quote, backslash := w^ones*'"', w^ones*'\\'
		if special := ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; special != 0 {
			v.pos += bits.TrailingZeros64(special) / 8
			return
		}
		v.pos += 8
	}
	for v.pos < len(v.data) {
		if c := v.data[v.pos]; c == '"' || c == '\\' || c < ' ' {
			return
		}
		v.pos++
	}
}

// escape skips what follows a backslash.
func (v *validator) escape() bool {
	if v.pos == len(v.data) {
		return false
	}
	v.pos++
	switch v.data[v.pos-1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if len(v.data)-v.pos < 4 {
			return false
		}
		for _, c := range v.data[v.pos : v.pos+4] {
			if !isHex(c) {
				return false
			}
		}
		v.pos += 4
		return true
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (v *validator) word(rest string) bool {
	if len(v.data)-v.pos < len(rest) || string(v.data[v.pos:v.pos+len(rest)]) != rest {
		return false
	}
	v.pos += len(rest)
	return true
}

func (v *validator) number() bool {
	v.accept("-")
	switch {
	case v.accept("0"):
	case !v.digits():
		return false
	}
	if v.accept(".") && !v.digits() {
		return false
	}
	if v.accept("eE") {
		v.accept("+-")
		return v.digits()
	}
	return true
}

// accept skips the next byte if it is one of the bytes.
func (v *validator) accept(bytes string) bool {
	for i := range len(bytes) {
		if v.pos < len(v.data) && v.data[v.pos] == bytes[i] {
			v.pos++
			return true
		}
	}
	return false
}

func (v *validator) digits() bool {
	from := v.pos
	for v.pos < len(v.data) && '0' <= v.data[v.pos] && v.data[v.pos] <= '9' {
		v.pos++
	}
	return v.pos > from
}
