package text

import (
	"encoding/binary"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Invisible reports whether a character moves the cursor, changes the direction
// of text, or has no width on the screen.
func Invisible(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r < 0xad:
		return false
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff: // variation selectors, tags
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800, r == 0x034f, r == 0x17b4, r == 0x17b5:
		// These are fillers and blanks.
		return true
	case r >= 0x180b && r <= 0x180f: // Mongolian selectors
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}

// EscapeJSON makes encoded JSON safe to show: every invisible character becomes
// a \u escape, as a pair of surrogates if necessary, so that the value stays
// the same. Bytes that are not UTF-8 become \ufffd. White space between values
// is kept. JSON without such characters is returned unchanged.
func EscapeJSON(data []byte) []byte {
	first := FirstInvisible(data)
	if first < 0 {
		return data
	}
	out := append(make([]byte, 0, len(data)+64), data[:first]...)
	for i := first; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case data[i] == '\n' || data[i] == '\t' || data[i] == '\r' || !Invisible(r):
			out = append(out, data[i:i+n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// FirstInvisible returns the offset of the first character to escape; -1 if
// there is none.
func FirstInvisible(data []byte) int {
	for i := 0; i < len(data); {
		if i+8 <= len(data) && printable(binary.LittleEndian.Uint64(data[i:])) {
			i += 8
			continue
		}
		if c := data[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 || Invisible(r) {
			return i
		}
		i += n
	}
	return -1
}

// printable reports whether eight bytes are printable ASCII: no byte has its highest
// bit set, not even after adding 1 or subtracting a space. It may return false for
// some printable bytes.
func printable(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	return (w|(w+ones)|(w-ones*' '))&highs == 0
}
