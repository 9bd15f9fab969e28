package jsonx

// maxNesting is the maximum nesting that encoding/json accepts.
const maxNesting = 10000

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
			if len(open) == maxNesting {
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
