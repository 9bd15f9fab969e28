package builtin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// textEncoding is how a file stores its text. The zero value is UTF-8.
type textEncoding int

const (
	encodingUTF8 textEncoding = iota
	encodingUTF8BOM
	encodingUTF16LE // with a byte order mark
	encodingUTF16BE // likewise
	encodingWindows1252
)

// String returns the encoding's name for messages.
func (e textEncoding) String() string {
	switch e {
	case encodingUTF16LE:
		return "UTF-16 (little endian)"
	case encodingUTF16BE:
		return "UTF-16 (big endian)"
	case encodingWindows1252:
		return "Windows-1252"
	}
	return "UTF-8"
}

const (
	utf8BOM    = "\xef\xbb\xbf"
	utf16LEBOM = "\xff\xfe"
	utf16BEBOM = "\xfe\xff"
)

var (
	errNotText   = errors.New("is not a text file")
	errRoundTrip = errors.New("is text that cannot be written back as it was: it holds broken characters")
)

// textOf decodes the content of a file, without its byte order mark. Encoding
// the same text again gives the same bytes: where it would not, as with half
// characters, the error says so. errNotText tells that it is no text.
func textOf(data []byte) (string, textEncoding, error) {
	text, enc, err := decodeBytes(data)
	if err != nil {
		return "", enc, err
	}
	if enc == encodingUTF8 || enc == encodingUTF8BOM {
		return text, enc, nil // no byte was touched
	}
	again, err := enc.bytes(text)
	if err != nil || !bytes.Equal(again, data) {
		return "", enc, errRoundTrip
	}
	return text, enc, nil
}

func decodeBytes(data []byte) (string, textEncoding, error) {
	switch s := string(data); {
	case strings.HasPrefix(s, utf16LEBOM):
		text, err := decodeUTF16(data[2:], binary.LittleEndian)
		return text, encodingUTF16LE, err
	case strings.HasPrefix(s, utf16BEBOM):
		text, err := decodeUTF16(data[2:], binary.BigEndian)
		return text, encodingUTF16BE, err
	case strings.IndexByte(s, 0) >= 0:
		return "", 0, errNotText
	case utf8.ValidString(s):
		if rest, ok := strings.CutPrefix(s, utf8BOM); ok {
			return rest, encodingUTF8BOM, nil
		}
		return s, encodingUTF8, nil
	case mostlyControl(data):
		return "", 0, errNotText
	}
	return decodeWindows1252(data), encodingWindows1252, nil
}

// decodeWindows1252 gives the five bytes without a character the code point of
// their own number, as browsers do, so that they can be written back.
func decodeWindows1252(data []byte) string {
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

// mostlyControl reports whether more than 30 % of the first bytes are control
// characters.
func mostlyControl(data []byte) bool {
	data = data[:min(len(data), 4096)]
	n := 0
	for _, c := range data {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
			n++
		}
	}
	return n*10 > len(data)*3
}

func decodeUTF16(data []byte, order binary.ByteOrder) (string, error) {
	if len(data)%2 != 0 {
		return "", errRoundTrip
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

// bytes encodes a text. The error names the first character that the encoding
// does not have.
func (e textEncoding) bytes(text string) ([]byte, error) {
	switch e {
	case encodingUTF8BOM:
		return []byte(utf8BOM + text), nil
	case encodingUTF16LE:
		return encodeUTF16(utf16LEBOM, text, binary.LittleEndian), nil
	case encodingUTF16BE:
		return encodeUTF16(utf16BEBOM, text, binary.BigEndian), nil
	case encodingWindows1252:
		return encodeWindows1252(text)
	}
	return []byte(text), nil
}

func encodeUTF16(bom, text string, order binary.AppendByteOrder) []byte {
	out := append(make([]byte, 0, 2+2*len(text)), bom...)
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

func encodeWindows1252(text string) ([]byte, error) {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		b, ok := charmap.Windows1252.EncodeRune(r)
		if r >= 0x80 && r < 0xa0 {
			b, ok = byte(r), charmap.Windows1252.DecodeByte(byte(r)) == utf8.RuneError
		}
		if !ok {
			return nil, fmt.Errorf("is %v text, which has no character %q (U+%04X); leave it out, or convert the file with write_file first",
				encodingWindows1252, r, r)
		}
		out = append(out, b)
	}
	return out, nil
}
