package registry

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// canonical returns JSON with sorted keys and no spaces; text that is not JSON
// as it is. Numbers keep their digits. It gives what decoding and encoding
// would, at a fraction of the cost: a listing has it of every schema.
func canonical(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if !json.Valid(raw) {
		// The first value counts, as far as there is one.
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

// member is one of an object: its key as decoded, and where it is in out.
type member struct {
	key        []byte
	start, end int
}

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
		for c.at < len(c.in) && strings.IndexByte(",]} \t\r\n", c.in[c.at]) < 0 {
			c.at++
		}
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
	members := make([]member, 0, 8)
	c.at++
	for c.space(); c.in[c.at] != '}'; c.at++ {
		c.space()
		m := member{start: len(c.out)}
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
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	written := bytes.Clone(c.out[begin:])
	c.out = append(c.out[:begin], '{')
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(members[i+1].key, m.key) {
			continue
		}
		if c.out[len(c.out)-1] != '{' || len(c.out)-1 != begin {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, written[m.start-begin:m.end-begin]...)
	}
	c.out = append(c.out, '}')
}

// string writes a string as encoding/json does, and returns it decoded.
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
	text := quoted[1 : len(quoted)-1]
	if plain {
		c.out = append(c.out, quoted...)
		return text
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil { // valid JSON: cannot fail
		return text
	}
	encoded, err := marshal(s)
	if err != nil { // a string: cannot fail
		encoded = quoted
	}
	c.out = append(c.out, encoded...)
	return []byte(s)
}

func (c *canonizer) space() {
	for c.at < len(c.in) && (c.in[c.at] == ' ' || c.in[c.at] == '\t' || c.in[c.at] == '\r' || c.in[c.at] == '\n') {
		c.at++
	}
}
