package jsonx

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Canonical returns JSON with sorted keys and without white space; of duplicate keys
// it keeps the last, and numbers keep their text. For invalid JSON the
// first value is used; if there is none, the text is returned unchanged. Apart
// from the spelling of numbers, two texts have the same meaning if and only if
// their canonical forms are equal.
//
// The result is the same as that of decoding and encoding, at a fraction of the
// cost, which matters because listings canonicalize every schema.
func Canonical(raw json.RawMessage) string { return string(new(Canonizer).Append(nil, raw)) }

// Append appends what [Canonical] returns to dst.
func (c *Canonizer) Append(dst []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return dst
	}
	if !Valid(raw) {
		var first json.RawMessage
		if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) != nil {
			return append(dst, raw...)
		}
		raw = first
	}
	if c.members == nil {
		c.members = make([]writtenMember, 0, 32)
	}
	c.raw, c.pos, c.out = raw, 0, slices.Grow(dst, len(raw)+1)
	c.value()
	dst, c.raw, c.out = c.out, nil, nil
	return dst
}

// Canonizer writes canonical forms of JSON one after the other, for which it needs memory only
// once. The zero value is ready to use.
type Canonizer struct {
	raw     []byte // valid JSON
	pos     int    // in raw
	out     []byte
	members []writtenMember // members of the objects that contain pos
	scratch []byte
}

// writtenMember is a member of an object with the comma after it, out[from:to].
type writtenMember struct {
	name     []byte
	from, to int
}

func (c *Canonizer) value() {
	c.pos = space(c.raw, c.pos)
	switch c.raw[c.pos] {
	case '{':
		c.object()
	case '[':
		c.array()
	case '"':
		c.text()
	default:
		end := skipValue(c.raw, c.pos)
		c.out = append(c.out, c.raw[c.pos:end]...)
		c.pos = end
	}
}

// more skips white space and a comma, or the end of the enclosing value. It
// reports whether there is another element.
func (c *Canonizer) more() bool {
	c.pos = space(c.raw, c.pos)
	switch c.raw[c.pos] {
	case '}', ']':
		c.pos++
		return false
	case ',':
		c.pos = space(c.raw, c.pos+1)
	}
	return true
}

func (c *Canonizer) array() {
	c.pos++
	c.out = append(c.out, '[')
	for c.more() {
		c.value()
		c.out = append(c.out, ',')
	}
	c.out = append(bytes.TrimSuffix(c.out, []byte{','}), ']')
}

func (c *Canonizer) object() {
	c.pos++
	c.out = append(c.out, '{')
	first, start := len(c.members), len(c.out)
	for c.more() {
		from := len(c.out)
		name := c.text()
		c.pos = space(c.raw, c.pos) + 1 // after the colon
		c.out = append(c.out, ':')
		c.value()
		c.out = append(c.out, ',')
		c.members = append(c.members, writtenMember{name, from, len(c.out)})
	}
	c.sort(c.members[first:], start)
	c.members = c.members[:first]
	c.out = append(bytes.TrimSuffix(c.out, []byte{','}), '}')
}

// sort sorts the members of an object, out[start:], and removes duplicates.
func (c *Canonizer) sort(members []writtenMember, start int) {
	sorted := true
	for i := 1; i < len(members) && sorted; i++ {
		sorted = bytes.Compare(members[i-1].name, members[i].name) < 0
	}
	if sorted {
		return
	}
	slices.SortStableFunc(members, func(a, b writtenMember) int { return bytes.Compare(a.name, b.name) })
	c.scratch = append(c.scratch[:0], c.out[start:]...)
	c.out = c.out[:start]
	for i, m := range members {
		if i+1 == len(members) || !bytes.Equal(members[i+1].name, m.name) {
			c.out = append(c.out, c.scratch[m.from-start:m.to-start]...)
		}
	}
}

// text writes a string and returns its value.
func (c *Canonizer) text() []byte {
	end := skipString(c.raw, c.pos)
	token := c.raw[c.pos:end]
	c.pos = end
	if isPlain(token) {
		c.out = append(c.out, token...)
		return token[1 : len(token)-1]
	}
	s, _ := Text(token)
	c.out = AppendQuote(c.out, s)
	return []byte(s)
}

// isPlain reports whether a string has no escapes and needs none. Like plain, it checks
// eight bytes at a time.
func isPlain(token []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(token) >= 8; token = token[8:] {
		w := binary.LittleEndian.Uint64(token)
		if backslash := w ^ ones*'\\'; (w|(backslash-ones)&^backslash)&highs != 0 {
			return false
		}
	}
	for _, b := range token {
		if b == '\\' || b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// DuplicateKey returns the first duplicate key in a JSON text at any depth; ok
// is false if there is none or the text is not JSON.
func DuplicateKey(data []byte) (key string, ok bool) {
	if !mayRepeat(data) {
		return "", false
	}
	p := Parser{checks: true}
	_, err := p.parse(data)
	return p.twice, err == nil && p.Duplicate
}

// mayRepeat reports whether an object in valid JSON has a duplicate key, or too many
// keys for a linear search. It is fast because listings check every tool.
func mayRepeat(raw []byte) bool {
	var few [32][]byte // most values need no more, so nothing is allocated
	var shallow [16]int
	keys := few[:0]     // keys of the objects that contain i
	open := shallow[:0] // for each open bracket, the number of keys before it; -1 for an array
	atKey := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end := skipString(raw, i)
			if end < 0 {
				return false
			}
			if atKey {
				key, before := keyOf(raw[i:end]), keys[open[len(open)-1]:]
				if len(before) == maxScan || contains(before, key) {
					return true
				}
				keys, atKey = append(keys, key), false
			}
			i = end - 1
		case '{':
			open, atKey = append(open, len(keys)), true
		case '[':
			open, atKey = append(open, -1), false
		case ',':
			atKey = len(open) > 0 && open[len(open)-1] >= 0
		case '}', ']':
			if len(open) == 0 {
				return false
			}
			if base := open[len(open)-1]; base >= 0 {
				keys = keys[:base]
			}
			open, atKey = open[:len(open)-1], false
		}
	}
	return false
}

// keyOf returns the value of a string.
func keyOf(token []byte) []byte {
	if isPlain(token) {
		return token[1 : len(token)-1]
	}
	s, _ := Text(token)
	return []byte(s)
}

func contains(keys [][]byte, key []byte) bool {
	for _, k := range keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}
