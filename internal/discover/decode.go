package discover

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	utf "golang.org/x/text/encoding/unicode"
)

// decode decodes UTF-8 and replaces each invalid sequence with U+FFFD, as browsers
// and Node.js do. It keeps a byte order mark.
func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out, err := utf.UTF8.NewDecoder().Bytes(b)
	if err != nil {
		out = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return string(out)
}

// trim removes the characters that JavaScript's trim removes: all kinds of white
// space, and byte order marks.
func trim(b []byte) []byte {
	return bytes.TrimFunc(b, func(r rune) bool {
		return r == '\uFEFF' || unicode.IsSpace(r) && r != '\u0085'
	})
}
