package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Canonical returns JSON with sorted keys, of each the last value, and no white
// space; numbers keep their text. Of what is no JSON the first value counts;
// where there is none, the text comes back as it is. Two texts mean the same if
// and, but for the spelling of numbers, only if their canonical forms are equal.
//
// It gives what decoding and encoding would, at a fraction of the cost: a
// listing has it of every schema.
func Canonical(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if !json.Valid(raw) {
		var first json.RawMessage
		if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) != nil {
			return string(raw)
		}
		raw = first
	}
	c := canonizer{in: raw, out: make([]byte, 0, len(raw))}
	c.value()
	return string(c.out)
}

// canonizer walks over valid JSON.
type canonizer struct {
	in  []byte
	at  int
	out []byte
}

// written is a member of an object: its key, decoded, and where it is in out.
type written struct {
	key        []byte
	start, end int
}

func (c *canonizer) space() { c.at = space(c.in, c.at) }

func (c *canonizer) value() {
	c.space()
	switch c.in[c.at] {
	case '{':
		c.object()
	case '[':
		c.array()
	case '"':
		c.string()
	default:
		start := c.at
		c.at = skip(c.in, c.at)
		c.out = append(c.out, c.in[start:c.at]...)
	}
	c.space()
}

// array writes an array; what follows an element is a comma or its end.
func (c *canonizer) array() {
	c.out = append(c.out, '[')
	c.at++
	for c.space(); c.in[c.at] != ']'; c.at++ {
		c.value()
		if c.in[c.at] == ']' {
			break
		}
		c.out = append(c.out, ',')
	}
	c.at++
	c.out = append(c.out, ']')
}

// object writes the members as they come, and then anew in the order of their
// keys, the last of each.
func (c *canonizer) object() {
	begin := len(c.out)
	members := make([]written, 0, 8)
	c.at++
	for c.space(); c.in[c.at] != '}'; c.at++ {
		c.space()
		m := written{start: len(c.out)}
		m.key = c.string()
		c.out = append(c.out, ':')
		c.space()
		c.at++ // the colon
		c.value()
		m.end = len(c.out)
		members = append(members, m)
		if c.in[c.at] == '}' {
			break
		}
	}
	c.at++
	slices.SortStableFunc(members, func(a, b written) int { return bytes.Compare(a.key, b.key) })
	unsorted := bytes.Clone(c.out[begin:])
	c.out = append(c.out[:begin], '{')
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(members[i+1].key, m.key) {
			continue
		}
		if len(c.out) > begin+1 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, unsorted[m.start-begin:m.end-begin]...)
	}
	c.out = append(c.out, '}')
}

// string writes a string as [Marshal] does, and returns it decoded.
func (c *canonizer) string() []byte {
	start := c.at
	plain := true
	for c.at++; c.in[c.at] != '"'; c.at++ {
		switch b := c.in[c.at]; {
		case b == '\\':
			plain = false
			c.at++
		case b >= utf8.RuneSelf:
			plain = false
		}
	}
	c.at++
	quoted := c.in[start:c.at]
	if plain {
		c.out = append(c.out, quoted...)
		return quoted[1 : len(quoted)-1]
	}
	s, _ := Text(quoted) // valid JSON: cannot fail
	c.out = AppendQuote(c.out, s)
	return []byte(s)
}
