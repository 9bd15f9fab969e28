package ui

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// KeyCode identifies a key.
type KeyCode int

// The keys that full-screen programs use.
const (
	KeyText KeyCode = iota // a character, or pasted text
	KeyEnter
	KeyEscape
	KeyUp
	KeyDown
	KeyLeft
	KeyRight
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
	KeyBackspace
	KeyDelete
	KeyDeleteWord // Ctrl-W
	KeyDeleteLine // Ctrl-U
	KeyInterrupt  // Ctrl-C
	KeyEndOfInput // Ctrl-D
	KeySuspend    // Ctrl-Z
	KeyRedraw     // Ctrl-L
	KeyOther
)

// Key is one key, or text that was pasted at once.
type Key struct {
	Code KeyCode
	Text string // text of KeyText, without control characters
}

// controlKey returns the control key of a byte.
func controlKey(c byte) KeyCode {
	switch c {
	case '\r', '\n':
		return KeyEnter
	case 0x01:
		return KeyHome
	case 0x02:
		return KeyLeft
	case 0x03:
		return KeyInterrupt
	case 0x04:
		return KeyEndOfInput
	case 0x05:
		return KeyEnd
	case 0x06:
		return KeyRight
	case 0x08, 0x7f:
		return KeyBackspace
	case 0x0c:
		return KeyRedraw
	case 0x0e:
		return KeyDown
	case 0x10:
		return KeyUp
	case 0x15:
		return KeyDeleteLine
	case 0x17:
		return KeyDeleteWord
	case 0x1a:
		return KeySuspend
	}
	return KeyOther
}

// sequenceKey returns the key of a sequence, by what follows ESC [ or ESC O.
func sequenceKey(sequence string) KeyCode {
	switch sequence {
	case "A":
		return KeyUp
	case "B":
		return KeyDown
	case "C":
		return KeyRight
	case "D":
		return KeyLeft
	case "H", "1~", "7~":
		return KeyHome
	case "F", "4~", "8~":
		return KeyEnd
	case "3~":
		return KeyDelete
	case "5~":
		return KeyPageUp
	case "6~":
		return KeyPageDown
	}
	return KeyOther
}

// What terminals send before and after pasted text.
const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	maxPaste   = 64 << 10
)

// decodeKey decodes the first key of the input and returns its length, or 0 if
// it is incomplete. final means that nothing follows immediately: then ESC is
// the key itself.
func decodeKey(typed []byte, final bool) (Key, int) {
	c := typed[0]
	switch {
	case c == 0x1b:
		return decodeEscape(typed, final)
	case c < ' ' || c == 0x7f:
		return Key{Code: controlKey(c)}, 1
	case !utf8.FullRune(typed) && !final:
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(typed)
	if r == utf8.RuneError && n == 1 {
		return Key{Code: KeyOther}, 1
	}
	return Key{Code: KeyText, Text: string(r)}, n
}

func decodeEscape(typed []byte, final bool) (Key, int) {
	if isPaste(typed) {
		return decodePaste(typed)
	}
	if len(typed) == 1 {
		if final {
			return Key{Code: KeyEscape}, 1
		}
		return Key{}, 0
	}
	if typed[1] == 0x1b {
		return Key{Code: KeyEscape}, 1
	}
	if typed[1] != '[' && typed[1] != 'O' { // Alt and a key
		return Key{Code: KeyOther}, 2
	}
	for i := 2; i < len(typed); i++ {
		if c := typed[i]; c >= 0x40 && c <= 0x7e { // the last byte of a sequence
			return Key{Code: sequenceKey(string(typed[2 : i+1]))}, i + 1
		} else if c < 0x20 || c > 0x7e {
			return Key{Code: KeyOther}, i
		}
	}
	if final {
		return Key{Code: KeyOther}, len(typed)
	}
	return Key{}, 0
}

// isPaste reports whether the input begins with pasted text, whose end may take
// long to arrive.
func isPaste(typed []byte) bool { return bytes.HasPrefix(typed, []byte(pasteStart)) }

func decodePaste(typed []byte) (Key, int) {
	text, _, ended := bytes.Cut(typed[len(pasteStart):], []byte(pasteEnd))
	if !ended && len(text) < maxPaste {
		return Key{}, 0
	}
	n := len(pasteStart) + len(text)
	if ended {
		n += len(pasteEnd)
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), ""))
	return Key{Code: KeyText, Text: line}, n
}
