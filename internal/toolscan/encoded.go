package toolscan

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minEncoded is the length in bytes of the shortest chunk that is decoded.
const minEncoded = 24

// encoded reports a chunk that is text in base64 or hexadecimal digits.
func (s *scanner) encoded(chunk string) {
	if s.inner || len(chunk) < minEncoded {
		return
	}
	for part := range strings.FieldsFuncSeq(chunk, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+/-_=", r))
	}) {
		if len(part) < minEncoded {
			continue
		}
		clear, ok := decode(part)
		if !ok {
			continue
		}
		inner := newScanner(s.known)
		inner.inner = true
		inner.text(clear)
		severity := Medium
		for _, f := range inner.found {
			if f.Severity == High {
				severity = High
			}
		}
		s.add("encoded-text", severity, excerpt(clear, 0, len(clear)))
	}
}

// decode returns the text that a chunk encodes.
func decode(chunk string) (string, bool) {
	if out, err := hex.DecodeString(chunk); err == nil {
		return string(out), isSentence(string(out))
	}
	chunk = strings.NewReplacer("-", "+", "_", "/").Replace(strings.Trim(chunk, "="))
	out, err := base64.RawStdEncoding.DecodeString(chunk[:len(chunk)-len(chunk)%4])
	return string(out), err == nil && isSentence(string(out))
}

// isSentence reports whether decoded bytes are text of several words.
func isSentence(t string) bool {
	if !utf8.ValidString(t) || len(strings.Fields(t)) < 3 {
		return false
	}
	return !strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}
