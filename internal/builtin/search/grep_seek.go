package search

import "bytes"

// seeker finds one need in a text from front to back. It remembers the
// positions it has already found, to avoid searching twice.
type seeker struct {
	need *need
	next int // the last position found, unknown or nowhere
	low  int // the next position of the anchor in lower case
	high int // and in upper case
}

const (
	nowhere = -1
	unknown = -2
)

// reset prepares for another text.
func (k *seeker) reset() { k.next, k.low, k.high = unknown, unknown, unknown }

// seek returns the first position at or after from where the need occurs, or
// nowhere. from never decreases between two resets.
func (k *seeker) seek(text []byte, from int) int {
	if k.next == nowhere || k.next >= from {
		return k.next
	}
	if k.need.fold {
		k.next = k.seekFold(text, from)
	} else {
		k.next = nowhere
		if i := bytes.Index(text[from:], k.need.text); i >= 0 {
			k.next = from + i
		}
	}
	return k.next
}

func (k *seeker) seekFold(text []byte, from int) int {
	n := k.need
	low := n.text[n.anchor]
	high := low
	if 'a' <= low && low <= 'z' {
		high = low - 'a' + 'A'
	}
	for at := from + n.anchor; ; {
		k.low = byteFrom(text, low, k.low, at)
		hit := k.low
		if high != low {
			k.high = byteFrom(text, high, k.high, at)
			if hit == nowhere || k.high != nowhere && k.high < hit {
				hit = k.high
			}
		}
		if hit == nowhere {
			return nowhere
		}
		start := hit - n.anchor
		if end := start + len(n.text); end <= len(text) && equalFold(text[start:end], n.text) {
			return start
		}
		at = hit + 1
	}
}

// byteFrom advances known, a position of c, to the first position at or after
// from.
func byteFrom(text []byte, c byte, known, from int) int {
	if known == nowhere || known >= from {
		return known
	}
	if from >= len(text) {
		return nowhere
	}
	i := bytes.IndexByte(text[from:], c)
	if i < 0 {
		return nowhere
	}
	return from + i
}

// equalFold compares ASCII text with lower-case text of the same length.
func equalFold(text, folded []byte) bool {
	for i, c := range text {
		if lower(c) != folded[i] {
			return false
		}
	}
	return true
}
