package textfile

import (
	"bytes"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/text"
)

// SniffBytes is the number of bytes at the start of a file that determine its
// type.
const SniffBytes = 4096

// MediaType returns the type of an image, audio, video or PDF file, or "" for
// other files. Text that happens to start like such a file is still text.
func MediaType(head []byte, name string) string {
	if bytes.HasPrefix(head, []byte("%PDF-")) {
		return "application/pdf"
	}
	if _, isText := Detect(head); isText {
		return ""
	}
	mime := Type(head)
	if mime == "application/ogg" {
		return "audio/ogg"
	}
	for _, kind := range []string{"image/", "audio/", "video/"} {
		if strings.HasPrefix(mime, kind) {
			return mime
		}
	}
	return extensionType(name)
}

// Detect determines the encoding from the first bytes of a file. ok is false if
// the file is not text: it has a NUL byte and is no UTF-16, or has more than 30 % control
// characters.
func Detect(head []byte) (e Encoding, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")):
		return 0, false // UTF-32
	case bytes.HasPrefix(head, []byte(BOM16LE)):
		return UTF16LE, true
	case bytes.HasPrefix(head, []byte(BOM16BE)):
		return UTF16BE, true
	case bytes.IndexByte(head, 0) >= 0:
		e, order := plain16(head)
		return e, order != nil
	case MostlyControl(head):
		return 0, false
	case bytes.HasPrefix(head, []byte(BOM)):
		return UTF8WithBOM, true
	}
	if whole, _ := text.WholeRunes(head); utf8.Valid(whole) {
		if isISO2022JP(head) {
			return ISO2022JP, true
		}
		return UTF8, true
	}
	return guess(head), true
}

// Type returns the media type of a binary file as far as its first bytes
// determine it.
func Type(head []byte) string {
	mime, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return mime
}

// extensionType returns the media type for the extension of a file name, for
// files whose first bytes do not determine it.
func extensionType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".heic":
		return "image/heic"
	case ".avif":
		return "image/avif"
	case ".tif", ".tiff":
		return "image/tiff"
	case ".mp3":
		return "audio/mpeg"
	case ".aac":
		return "audio/aac"
	case ".m4a":
		return "audio/mp4"
	case ".flac":
		return "audio/flac"
	case ".mov":
		return "video/quicktime"
	case ".mkv":
		return "video/x-matroska"
	case ".mpg", ".mpeg":
		return "video/mpeg"
	}
	return ""
}
