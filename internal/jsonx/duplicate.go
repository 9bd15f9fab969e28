package jsonx

import "bytes"

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
