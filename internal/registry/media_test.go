package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	pngBytes  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	jpegBytes = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	pdfBytes  = "%PDF-1.7\n"
)

// Media are what their first bytes say.
func TestSettled(t *testing.T) {
	image := func(kind, data string) Content {
		return Content{Type: ContentImage, MIMEType: kind, Data: []byte(data)}
	}
	blob := func(kind, data string) Content {
		return Content{Type: ContentResource, URI: "x:y", MIMEType: kind, Data: []byte(data)}
	}
	unknown := Content{Type: ContentResource, URI: "toolreg:attachment", MIMEType: "application/octet-stream"}
	broken, pdf := unknown, unknown
	broken.Data = []byte("\x00\x01")
	pdf.MIMEType, pdf.Data = "application/pdf", []byte(pdfBytes)
	tests := []struct {
		name      string
		got, want Content
	}{
		{"a PNG labelled JPEG", image("image/jpeg", pngBytes), image("image/png", pngBytes)},
		{"a JPEG labelled PNG", image("image/png", jpegBytes), image("image/jpeg", jpegBytes)},
		{"image/jpg", image("image/jpg", jpegBytes), image("image/jpeg", jpegBytes)},
		{"a bare type", image("png", pngBytes), image("image/png", pngBytes)},
		{"a bare type that bytes do not show", image("HEIC", "\x00\x00\x00\x18ftypjunk"), image("image/heic", "\x00\x00\x00\x18ftypjunk")},
		{"no type", image("", pngBytes), image("image/png", pngBytes)},
		{"parameters", image("Image/PNG; q=1", pngBytes), image("image/png", pngBytes)},
		{"GIF", image("image/png", "GIF89a\x01\x00"), image("image/gif", "GIF89a\x01\x00")},
		{"WebP", image("image/png", "RIFF\x1e\x00\x00\x00WEBPVP8 "), image("image/webp", "RIFF\x1e\x00\x00\x00WEBPVP8 ")},
		{"a PDF labelled image", image("image/png", pdfBytes), pdf},
		{"no image", image("image/png", "\x00\x01"), broken},
		{"no image and no type", image("", "\x00\x01"), broken},
		{"an image labelled sound", Content{Type: ContentAudio, MIMEType: "audio/wav", Data: []byte(pngBytes)}, image("image/png", pngBytes)},
		{"sound of an old name", Content{Type: ContentAudio, MIMEType: "audio/x-wav", Data: []byte("RIFF\x00\x00\x00\x00WAVE")}, Content{Type: ContentAudio, MIMEType: "audio/wav", Data: []byte("RIFF\x00\x00\x00\x00WAVE")}},
		{"sound in a container", Content{Type: ContentAudio, MIMEType: "audio/webm", Data: []byte("\x1aE\xdf\xa3\x01webm")}, Content{Type: ContentAudio, MIMEType: "audio/webm", Data: []byte("\x1aE\xdf\xa3\x01webm")}},
		{"empty", image("image/png", ""), TextContent("[image image/png without data]")},
		{"empty without a type", image("", ""), TextContent("[image without data]")},
		{"an empty resource", blob("image/png", ""), TextContent("[resource x:y image/png without data]")},
		{"an error message labelled image", image("image/png", "window not found"), TextContent("window not found")},
		{"encoded twice", image("image/png", base64.StdEncoding.EncodeToString([]byte(pngBytes))), image("image/png", pngBytes)},
		{"a data URL encoded again", image("image/jpeg", "data:image/png;base64,"+base64.StdEncoding.EncodeToString([]byte(pngBytes))), image("image/png", pngBytes)},
		{"SVG", image("image/svg+xml", "<svg/>"), image("image/svg+xml", "<svg/>")},
		{"a blob of text", blob("text/plain", "héllo\n"), Content{Type: ContentResource, URI: "x:y", MIMEType: "text/plain", Text: "héllo\n"}},
		{"a blob of JSON", blob("application/json", "{}"), Content{Type: ContentResource, URI: "x:y", MIMEType: "application/json", Text: "{}"}},
		{"a blob of text with a charset", blob("text/CSV; charset=utf-8", "a,b"), Content{Type: ContentResource, URI: "x:y", MIMEType: "text/csv; charset=utf-8", Text: "a,b"}},
		{"a blob of code", blob("application/x-sh", "echo"), Content{Type: ContentResource, URI: "x:y", MIMEType: "application/x-sh", Text: "echo"}},
		{"a blob without a type", blob("", "BM is text"), Content{Type: ContentResource, URI: "x:y", Text: "BM is text"}},
		{"a blob of no text", blob("text/plain", "\x00\x01"), blob("text/plain", "\x00\x01")},
		{"a blob of a PNG", blob("application/octet-stream", pngBytes), blob("image/png", pngBytes)},
		{"a blob that is a program's", blob("application/x-thing", "\x00\x01"), blob("application/x-thing", "\x00\x01")},
		{"text without a URI", Content{Type: ContentResource, Text: "a"}, Content{Type: ContentResource, URI: "toolreg:attachment", Text: "a"}},
		{"text", TextContent(pngBytes), TextContent(pngBytes)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.got.Settled()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(got, got.Settled()); diff != "" {
				t.Errorf("settled again: %s", diff)
			}
		})
	}
}

func TestMedia(t *testing.T) {
	for name, tt := range map[string]struct {
		data, kind string
		want       Content
	}{
		"an image": {pngBytes, "application/octet-stream", Content{Type: ContentImage, MIMEType: "image/png", Data: []byte(pngBytes)}},
		"a sound":  {"\x00\x01", "audio/mp3", Content{Type: ContentAudio, MIMEType: "audio/mpeg", Data: []byte("\x00\x01")}},
		"a file":   {pdfBytes, "application/x-pdf", Content{Type: ContentResource, MIMEType: "application/pdf", URI: "u", Data: []byte(pdfBytes)}},
		"text":     {"a", "", Content{Type: ContentResource, URI: "u", Text: "a"}},
		"no image": {"\x00\x01", "image/png", Content{Type: ContentResource, URI: "toolreg:attachment", MIMEType: "application/octet-stream", Data: []byte("\x00\x01")}},
	} {
		if diff := cmp.Diff(tt.want, Media([]byte(tt.data), tt.kind, "u")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDecodeBase64(t *testing.T) {
	for _, tt := range []struct {
		encoded, data, kind string
		ok                  bool
	}{
		{"aGk=", "hi", "", true},
		{"aGk", "hi", "", true},
		{"aG\r\nk=\n", "hi", "", true},
		{"data:image/png;base64,aGk=", "hi", "image/png", true},
		{"data:;base64,aGk=", "hi", "", true},
		{"_-8=", "\xff\xef", "", true},
		{"", "", "", true},
		{"a!", "", "", false},
	} {
		data, kind, ok := DecodeBase64([]byte(tt.encoded))
		if ok != tt.ok || ok && (data == nil || !bytes.Equal(data, []byte(tt.data)) || kind != tt.kind) {
			t.Errorf("%q: %q %q %t", tt.encoded, data, kind, ok)
		}
	}
}

// What a program prints is settled as well.
func TestParseContentMedia(t *testing.T) {
	got, err := ParseContent(json.RawMessage(`[{"type":"image","data":"data:image/jpeg;base64,iVBORw=="},{"type":"image","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain","blob":"aGk"}}]`))
	want := []Content{{Type: ContentImage, MIMEType: "image/png", Data: []byte("\x89PNG")}, TextContent("[image image/png without data]"), {Type: ContentResource, URI: "x:y", MIMEType: "text/plain", Text: "hi"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := ParseContent(json.RawMessage(`[{"type":"image","data":"*"}]`)); err == nil {
		t.Error("data that is not base64 was accepted")
	}
}

func TestOrStructured(t *testing.T) {
	text := func(s string) []Content { return []Content{TextContent(s)} }
	image := []Content{TextContent(""), {Type: ContentImage, Data: []byte(pngBytes)}}
	for _, tt := range []struct {
		content    []Content
		structured string
		want       []Content
	}{
		{text(" \n"), `{"a":1}`, text(`{"a":1}`)},
		{nil, `{"a":1}`, text(`{"a":1}`)},
		{append(text(""), text("\t")...), `[1]`, text(`[1]`)},
		{text("x"), `{"a":1}`, text("x")},
		{image, `{"a":1}`, image},
		{text(""), ``, text("")},
		{text(""), `null`, text("")},
	} {
		if diff := cmp.Diff(tt.want, OrStructured(tt.content, []byte(tt.structured))); diff != "" {
			t.Errorf("%v, %s: %s", tt.content, tt.structured, diff)
		}
	}
}

// An API that is sent a damaged image or PDF file rejects all later requests, too.
func TestSendable(t *testing.T) {
	chunk := func(name string, size int) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(size))) + name + strings.Repeat("x", size) + "crc."
	}
	png := "\x89PNG\r\n\x1a\n" + chunk("IHDR", 13) + chunk("IDAT", 40)
	for _, tt := range []struct {
		data   string
		damage bool
	}{
		{png + chunk("IEND", 0), false},
		{png + chunk("IEND", 0) + "more bytes than a chunk has", false},
		{png, false},
		{png[:60], true},
		{"\x89PNG\r\n\x1a\nNot found\x00\x00\x00\x00", true},
		{"\x89PNG", true},
		{jpegBytes + "\xff\xda\x00\xff\xd9", false},
		{jpegBytes + "\xff\xda\x00\xff\xd9 more bytes", false},
		{jpegBytes + "\xff\xda\x00", true},
		{jpegBytes, true},
		{"RIFF\x0e\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00", false},
		{"RIFF\xff\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00", true},
		{"GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00", false},
		{"GIF89a\x01\x00\x01", true},
		{pdfBytes + "1 0 obj\nstartxref\n0\n%%EOF\n", false},
		{pdfBytes + "1 0 obj\n", true},
		{"\x00\x01 something else", false},
	} {
		c := []Content{TextContent("t"), Media([]byte(tt.data), "", "x:y")}
		got := Sendable(c)
		if is := got[1].Type == ContentText && strings.HasSuffix(got[1].Text, "cannot be shown: it is damaged or cut off"); is != tt.damage {
			t.Errorf("%q: %+v", tt.data, got[1])
		}
		if c[1].Data == nil || got[0].Text != "t" {
			t.Errorf("%q: the result itself was changed, or its text", tt.data)
		}
	}
}
