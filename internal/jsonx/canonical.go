package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Canonical returns JSON with sorted keys, of each the last value, and no white
// space; numbers keep their text. Of invalid JSON the first value counts; where
// there is none, the text comes back as it is. Two texts mean the same if and,
// but for the spelling of numbers, only if their canonical forms are equal.
//
// It gives what decoding and encoding would, at a fraction of the cost: a
// listing has it of every schema.
func Canonical(raw json.RawMessage) string {
	if !Valid(raw) {
		var first json.RawMessage
		if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) != nil {
			return string(raw)
		}
		raw = first
	}
	c := canonizer{raw: raw, out: make([]byte, 0, len(raw)+1)}
	c.value()
	return string(c.out)
}

// canonizer rewrites valid JSON: raw is read up to pos.
type canonizer struct {
	raw     []byte
	pos     int
	out     []byte
	members []writtenMember // of the objects that pos is in
	scratch []byte
}

// writtenMember is a member of an object with the comma behind it, out[from:to].
type writtenMember struct {
	name     []byte
	from, to int
}

func (c *canonizer) value() {
	c.pos = space(c.raw, c.pos)
	switch c.raw[c.pos] {
	case '{':
		c.object()
	case '[':
		c.array()
	case '"':
		c.text()
	default:
		end := skip(c.raw, c.pos)
		c.out = append(c.out, c.raw[c.pos:end]...)
		c.pos = end
	}
}

// more steps over white space and a comma, or over the end of what pos is in.
func (c *canonizer) more() bool {
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

func (c *canonizer) array() {
	c.pos++
	c.out = append(c.out, '[')
	for c.more() {
		c.value()
		c.out = append(c.out, ',')
	}
	c.out = append(bytes.TrimSuffix(c.out, []byte{','}), ']')
}

func (c *canonizer) object() {
	c.pos++
	c.out = append(c.out, '{')
	first, start := len(c.members), len(c.out)
	for c.more() {
		from := len(c.out)
		name := c.text()
		c.pos = space(c.raw, c.pos) + 1 // behind the colon
		c.out = append(c.out, ':')
		c.value()
		c.out = append(c.out, ',')
		c.members = append(c.members, writtenMember{name, from, len(c.out)})
	}
	c.sort(c.members[first:], start)
	c.members = c.members[:first]
	c.out = append(bytes.TrimSuffix(c.out, []byte{','}), '}')
}

// sort puts the members of an object, out[start:], into their order and leaves
// out those that come again.
func (c *canonizer) sort(members []writtenMember, start int) {
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

// text writes a string and returns what it says.
func (c *canonizer) text() []byte {
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

// isPlain reports whether a string has no escapes and needs none.
func isPlain(token []byte) bool {
	for _, b := range token {
		if b == '\\' || b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
