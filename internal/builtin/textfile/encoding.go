// Package textfile detects what a file contains: text in some encoding, or an
// image, audio or other media. It decodes text and encodes it again in the same
// encoding.
package textfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Encoding is the encoding of a text file. The zero value is UTF-8.
type Encoding int

// The encodings that are recognized.
const (
	UTF8 Encoding = iota
	UTF8WithBOM
	UTF16LE   // with a byte order mark
	UTF16BE   // with a byte order mark
	Plain16LE // UTF-16 without one
	Plain16BE
	Windows1252
	Unknown // in doubt; its bytes are kept as those of Windows-1252
	ISO2022JP
	ShiftJIS
	EUCJP
	GB18030
	Big5
	EUCKR
)

// encodingNames are the names of the encodings for messages.
var encodingNames = [...]string{
	UTF8:        "UTF-8",
	UTF8WithBOM: "UTF-8",
	UTF16LE:     "UTF-16 (little endian)",
	UTF16BE:     "UTF-16 (big endian)",
	Plain16LE:   "UTF-16 (little endian, without a byte order mark)",
	Plain16BE:   "UTF-16 (big endian, without a byte order mark)",
	Windows1252: "Windows-1252",
	Unknown:     "an unknown encoding as if it were Windows-1252, which is probably wrong; iconv can convert the file",
	ISO2022JP:   "ISO-2022-JP",
	ShiftJIS:    "Shift_JIS",
	EUCJP:       "EUC-JP",
	GB18030:     "GB18030",
	Big5:        "Big5",
	EUCKR:       "EUC-KR",
}

// String returns the encoding's name for messages.
func (e Encoding) String() string { return encodingNames[e] }

// Converted reports whether text in the encoding is converted as a whole, by
// [Encoding.Reader].
func (e Encoding) Converted() bool { return e.table() != nil }

// The byte order marks of UTF-8 and of both variants of UTF-16.
const (
	BOM     = "\xef\xbb\xbf"
	BOM16LE = "\xff\xfe"
	BOM16BE = "\xfe\xff"
)

// Errors of [Decode] for files that are not text, or text that cannot be
// written back. They complete a sentence that starts with the name of the file.
var (
	ErrNotText   = errors.New("is not a text file")
	ErrRoundTrip = errors.New("is text that cannot be written back unchanged: it contains invalid characters")
)

// ErrEncoding is wrapped by the errors of [Encoding.Bytes], which also complete
// a sentence that starts with the name of the file.
var ErrEncoding = errors.New("cannot encode")

// Decode decodes the content of a file and removes its byte order mark. Encoding
// the text again returns the same bytes; if it would not, for example because of
// incomplete characters, the error is ErrRoundTrip. If the content is not text,
// the error is ErrNotText. Invalid bytes in UTF-8 text are kept, so that valid
// lines can be edited and the others do not change.
func Decode(data []byte) (string, Encoding, error) {
	text, enc, err := decodeBytes(data)
	if err != nil {
		return "", enc, err
	}
	if enc == UTF8 || enc == UTF8WithBOM {
		return text, enc, nil // no bytes were changed
	}
	again, err := enc.Bytes(text)
	if err != nil || !bytes.Equal(again, data) {
		return "", enc, ErrRoundTrip
	}
	return text, enc, nil
}

func decodeBytes(data []byte) (string, Encoding, error) {
	switch s := string(data); {
	case strings.HasPrefix(s, BOM16LE):
		return decodeTable(data, UTF16LE)
	case strings.HasPrefix(s, BOM16BE):
		return decodeTable(data, UTF16BE)
	case strings.IndexByte(s, 0) >= 0:
		e := plain16(data)
		if e == UTF8 {
			return "", 0, ErrNotText
		}
		return decodeTable(data, e)
	case isISO2022JP(data):
		return decodeTable(data, ISO2022JP)
	case utf8.ValidString(s):
		return withoutBOM(s)
	case MostlyControl(data):
		return "", 0, ErrNotText
	case hasUTF8Line(s):
		return withoutBOM(s)
	}
	e := guess(data)
	if e.table() != nil {
		return decodeTable(data, e)
	}
	return FromWindows1252(data), e, nil
}

func decodeTable(data []byte, e Encoding) (string, Encoding, error) {
	text, err := e.table().NewDecoder().Bytes(data)
	if err != nil {
		return "", e, ErrRoundTrip
	}
	return string(text), e, nil
}

func withoutBOM(s string) (string, Encoding, error) {
	if rest, ok := strings.CutPrefix(s, BOM); ok {
		return rest, UTF8WithBOM, nil
	}
	return s, UTF8, nil
}

// hasUTF8Line reports whether a line with non-ASCII characters is valid UTF-8.
func hasUTF8Line(s string) bool {
	for line := range strings.Lines(s) {
		if BeyondASCII(line) {
			return true
		}
	}
	return false
}

// BeyondASCII reports whether text is valid UTF-8 with non-ASCII characters.
func BeyondASCII(text string) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) < len(text)
}

// FromWindows1252 decodes a text. It maps the five undefined bytes to the code points with the
// same numbers, as browsers do, so that they can be written back.
func FromWindows1252(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		r := charmap.Windows1252.DecodeByte(c)
		if r == utf8.RuneError {
			r = rune(c)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// MostlyControl reports whether more than 30 % of the first bytes are control
// characters.
func MostlyControl(data []byte) bool {
	data = data[:min(len(data), 4096)]
	n := 0
	for _, c := range data {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
			n++
		}
	}
	return n*10 > len(data)*3
}

// plain16 recognizes UTF-16 without a byte order mark: at least every other character is of Latin scripts, so
// that one of its bytes, always the same one, is zero. It returns UTF8 if the data is something else.
func plain16(data []byte) Encoding {
	data = data[:min(len(data), SniffBytes)&^1]
	var zeros [2]int
	for i, c := range data {
		if c == 0 {
			zeros[i%2]++
		}
	}
	e := Plain16BE
	if zeros[1] > 0 {
		e = Plain16LE
	}
	if min(zeros[0], zeros[1]) > 0 || max(zeros[0], zeros[1]) < max(2, len(data)/4) {
		return UTF8
	}
	text, err := e.table().NewDecoder().String(string(data))
	if err != nil || strings.ContainsRune(strings.TrimSuffix(text, string(utf8.RuneError)), utf8.RuneError) ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return UTF8
	}
	return e
}

// Bytes encodes a text. The error contains the first character that the
// encoding cannot represent.
func (e Encoding) Bytes(text string) ([]byte, error) {
	switch e {
	case UTF8WithBOM:
		return []byte(BOM + text), nil
	case Windows1252, Unknown:
		return encodeWindows1252(text)
	}
	if table := e.table(); table != nil {
		out, err := table.NewEncoder().Bytes([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("is %v text, which %w all of these characters; leave them out, or convert the file with write_file first", e, ErrEncoding)
		}
		return out, nil
	}
	return []byte(text), nil
}

func encodeWindows1252(text string) ([]byte, error) {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		b, ok := charmap.Windows1252.EncodeRune(r)
		if r >= 0x80 && r < 0xa0 {
			b, ok = byte(r), charmap.Windows1252.DecodeByte(byte(r)) == utf8.RuneError
		}
		if !ok {
			return nil, fmt.Errorf(
				"is %v text, which %w %q (U+%04X); leave it out, or convert the file with write_file first",
				Windows1252, ErrEncoding, r, r)
		}
		out = append(out, b)
	}
	return out, nil
}

// Reader returns the text after the byte order mark as UTF-8, except for
// Windows-1252, which the caller decodes line by line.
func (e Encoding) Reader(in *bufio.Reader) *bufio.Reader {
	if e == UTF8WithBOM {
		_, _ = in.Discard(len(BOM)) // cannot fail: Peek has read it
	}
	if table := e.table(); table != nil {
		return bufio.NewReaderSize(table.NewDecoder().Reader(in), 64<<10)
	}
	return in
}

// Line decodes a line of a file that is neither UTF-8 nor converted as a whole, as it
// is encoded by itself.
func Line(line []byte) (string, Encoding) {
	e := guess(line)
	if table := e.table(); table != nil {
		if text, err := table.NewDecoder().Bytes(line); err == nil {
			return string(text), e
		}
	}
	return FromWindows1252(line), e
}
