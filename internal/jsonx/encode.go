package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Marshal is json.Marshal but does not escape <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil // without the newline
}

// Decode decodes one JSON value like json.Unmarshal into an any, but with numbers as
// json.Number, which keeps their text.
func Decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data[dec.InputOffset():])) > 0 {
		return nil, errors.New("text after the JSON value")
	}
	return v, nil
}

// Quote returns s as a JSON string.
func Quote(s string) string { return string(AppendQuote(nil, s)) }

// AppendQuote appends s to dst as a JSON string, as [Marshal] writes it:
// invalid UTF-8 becomes U+FFFD, and the line separators U+2028 and U+2029,
// which end lines in JavaScript, are escaped.
func AppendQuote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0 // start of the text that is not appended yet
	for i, r := range s {
		switch {
		case r == '\uFFFD' && !strings.HasPrefix(s[i:], "\uFFFD"): // an invalid byte
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			start = i + 1
			continue
		case r == '"', r == '\\':
			dst = append(append(dst, s[start:i]...), '\\', byte(r))
		case r == '\b', r == '\f', r == '\n', r == '\r', r == '\t':
			dst = append(append(dst, s[start:i]...), '\\', "btn_fr"[r-'\b'])
		case r < ' ', r == '\u2028', r == '\u2029':
			dst = append(append(dst, s[start:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			continue
		}
		start = i + 1
		if r >= 0x80 {
			start = i + 3
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// appendName is AppendQuote, but fast for the names that most members have.
func appendName(dst []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return AppendQuote(dst, name)
		}
	}
	return append(append(append(dst, '"'), name...), '"')
}

// quoted is Quote with a fast path for the most frequent schema keywords.
func quoted(s string) string {
	switch s {
	case "type":
		return `"type"`
	case "properties":
		return `"properties"`
	case "required":
		return `"required"`
	case "items":
		return `"items"`
	case "enum":
		return `"enum"`
	case "object":
		return `"object"`
	}
	return Quote(s)
}
