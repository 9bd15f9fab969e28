package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
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
		{"\xff\xd8\xff\xe0\x00\x10JFIF\x00\xff\xda\x00", false},
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

// A file with the empty password is read by everybody, one with a password is not.
func TestFilesWithPassword(t *testing.T) {
	for _, tt := range []struct {
		needs          bool
		id, dictionary string
	}{
		{false, `/ID [<07977fd2a0d7c6eb8d793e5899a531d8><07977fd2a0d7c6eb8d793e5899a531d8>]`,
			`<< /Filter /Standard /Length 40 /O <c92422687facee686e373f10b5c7d04738053152f7e2ee30e11c69ec442576ab> /P -4 /R 2 /U <30da6ad6db89b1beef73e3a4ad1cd773d36aed0611ba6f17498aec83e77b40d7> /V 1 >>`},
		{true, `/ID [<be45a802a0a770650c40b110da4235df><be45a802a0a770650c40b110da4235df>]`,
			`<< /Filter /Standard /Length 40 /O <94b3d3786f9711a34b5371081cc22b4e1e051fe4915ab88e4e3fccbbde124cb8> /P -4 /R 2 /U <51eafe1c935dc18133e4e9d33f0d2cae5a5f17bfd9d9e778c09c3cd5a48045d7> /V 1 >>`},
		{false, `/ID [<6c754968c02a55f1ed17a0afcf3032c3><6c754968c02a55f1ed17a0afcf3032c3>]`,
			`<< /Filter /Standard /Length 128 /O <566fa873ee33c797cd3b904fdadf814afa34df9a38f6ed41b984e2c6da2aa6f5> /P -4 /R 3 /U <0292b5ebc372596ad18e6121416bf8e30122456a91bae5134273a6db134c87c4> /V 2 >>`},
		{true, `/ID [<a33ec7edfbb37378bd39fe93f918f32d><a33ec7edfbb37378bd39fe93f918f32d>]`,
			`<< /Filter /Standard /Length 128 /O <0bf85963fe08385ce85fde5773da7a43dc34f12c5e4ebbff16a74791401d9ce6> /P -4 /R 3 /U <d06e5eeb3fbe81f66743e0308b9b1c220122456a91bae5134273a6db134c87c4> /V 2 >>`},
		{false, `/ID [<c798f935ae1bf261c88466a13973b3c2><c798f935ae1bf261c88466a13973b3c2>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV2 /Length 16 >> >> /Filter /Standard /Length 128 /O <566fa873ee33c797cd3b904fdadf814afa34df9a38f6ed41b984e2c6da2aa6f5> /P -4 /R 4 /StmF /StdCF /StrF /StdCF /U <9cbfa53b008de9569559a229d06ef95a0122456a91bae5134273a6db134c87c4> /V 4 >>`},
		{true, `/ID [<e4738831f4c57f3e476cf7b7767aad74><e4738831f4c57f3e476cf7b7767aad74>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV2 /Length 16 >> >> /Filter /Standard /Length 128 /O <0bf85963fe08385ce85fde5773da7a43dc34f12c5e4ebbff16a74791401d9ce6> /P -4 /R 4 /StmF /StdCF /StrF /StdCF /U <0bb306c93f64dbf8a833a7de42df5a9a0122456a91bae5134273a6db134c87c4> /V 4 >>`},
		{false, `/ID [<cccfadc61565af014211a348a428a599><cccfadc61565af014211a348a428a599>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV2 /Length 16 >> >> /EncryptMetadata false /Filter /Standard /Length 128 /O <566fa873ee33c797cd3b904fdadf814afa34df9a38f6ed41b984e2c6da2aa6f5> /P -4 /R 4 /StmF /StdCF /StrF /StdCF /U <adeed34e472825cdc97967147f7d7ccd0122456a91bae5134273a6db134c87c4> /V 4 >>`},
		{false, `/ID [<368ee3e7dc048eaef7e4be5d1fd72f9a><368ee3e7dc048eaef7e4be5d1fd72f9a>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV3 /Length 32 >> >> /Filter /Standard /Length 256 /O <0ecc2a645cc20c4e20c23717717562218b85d0fac2cb083720190bc5aff6fca9be9fb83d1f7d690683adeb3cc4562cbf> /OE <e7510b4f7a999ccf50a95661ec46c616c65b2b94c2fdf8f2139db054f5212b25> /P -4 /Perms <b1330af55eaac70da21b61ec875da347> /R 5 /StmF /StdCF /StrF /StdCF /U <c40672087b8a5324b7d1245090682a63e99687b2f3df3ffff7e9e42dd7d425d6ac91b733b883070725e03da8e5c5f757> /UE <174206005fe96d00d25ee93ecc8358df677984848b748183913fc941e7b6c546> /V 5 >>`},
		{true, `/ID [<9e9d10451efab6fbd5303a2167041422><9e9d10451efab6fbd5303a2167041422>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV3 /Length 32 >> >> /Filter /Standard /Length 256 /O <5659ad46756220b93a94253f3a3c9d8ed958d0b5b22e12ae9687eec6514f6a1304860f2b9cc8c5da23a08197bdce543a> /OE <a0b36551c17df3ad1e15f9247ab744113f37fc7f28bdef9af2729d7c42b627ce> /P -4 /Perms <ae9d738043a0dfed6e8bd00e2529fda7> /R 5 /StmF /StdCF /StrF /StdCF /U <21e5faa5edc11fba4c74dcfccb9a2bcbcc92bc6889ad3bf9c006f274714c587683f13704396b9bea17e5f62fcf32b6ff> /UE <5c9bde4861d675b5e64b6e9ea0fffa9cdce3693b02261d46d1bb28a01aa0c8bc> /V 5 >>`},
		{false, `/ID [<58871880a451c39a252b5e04e9f4c9c7><58871880a451c39a252b5e04e9f4c9c7>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV3 /Length 32 >> >> /Filter /Standard /Length 256 /O <c84ca2f1ccd808736bb3d55c46d62d7e1ed4ee5b1649c11cd6e6c45e82ac5965569b3e84e426c3a484d5a2f5a040d16c> /OE <7d6ad7c5893d9640ae68ff3c3fc68178418f1b1b6461d1997379dbabd194b0d3> /P -4 /Perms <3225a374d37164ef24228d9276c9ab8d> /R 6 /StmF /StdCF /StrF /StdCF /U <c5afe109f934fa7099560fd39338006602768ced215a0b1f8bf7102d71704220c79a8db2692053e0ce9921bcca3f320e> /UE <bb9a46a1005130bb9f110280dcfb9901c0a474bc04235ac2d29202a88e94226c> /V 5 >>`},
		{true, `/ID [<c95c6de69e25866c52517610dcee9672><c95c6de69e25866c52517610dcee9672>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV3 /Length 32 >> >> /Filter /Standard /Length 256 /O <b98ae431e09924b227c9334cb2eff57f75b3238d7324e65e433f2c0a45da0d89e328cb201bbfc969400872975cc92ace> /OE <09105aa23275fc6b94e38cd2f1fa86d24316f025f62e45fa9ce80dc2873dd07a> /P -4 /Perms <1c2c4a3b37d5b6067bfe88353823ca36> /R 6 /StmF /StdCF /StrF /StdCF /U <6b086402f03c1a92312f115061f28b0d0e1cc5656e2d31f21c20c45803c91e434e9ef25db0b6b23d08d0d5d7cf0d5070> /UE <c90017b57a838061e43e0f75504cf28fbd5de701ca296f1616b48f369d17bf6c> /V 5 >>`},
		{false, `/ID [<98884ebdeb19ebb9ca1eee003f134520><98884ebdeb19ebb9ca1eee003f134520>]`,
			`<< /CF << /StdCF << /AuthEvent /DocOpen /CFM /AESV3 /Length 32 >> >> /Filter /Standard /Length 256 /O <612ea5226b6455adfb77b61c3ed186864b24e6e76acc49d957223b50cde3eaf3f6a8084924d766c86fcd37ec569d583d> /OE <43fdd4165188285f0c1ad8f2268bd81af41d501c22b948c1d4bb59fdcb20a807> /P -4 /Perms <c305687d3ee5cbd3809f9ab55600c6c5> /R 6 /StmF /StdCF /StrF /StdCF /U <6cb1366fd2c482dbefa2fafdf7284901cacd1f5993f9a6296da493388f4ad7ad0a18fc6797b0cf020fe411ddc9d10281> /UE <d20f189f491d46146dc597870297e5e5e43e6d569184be5755675c4b289c76b2> /V 5 >>`},
	} {
		for _, file := range []string{
			"%PDF-1.6\n4 0 obj\n" + tt.dictionary + "\nendobj\ntrailer << " + tt.id + " /Encrypt 4 0 R /Size 5 >>\nstartxref\n0\n",
			"%PDF-1.6\r4 0 obj\r" + literals(tt.dictionary) + "endobj\rtrailer<</Encrypt 4 0 R" + literals(tt.id) + ">>\rstartxref\r0\r",
			"%PDF-1.6\ntrailer << /Encrypt " + tt.dictionary + " " + tt.id + " >>\nstartxref\n0\n",
		} {
			c := Sendable([]Content{{Type: ContentResource, MIMEType: "application/pdf", URI: "x:y", Data: []byte(file)}})[0]
			if is := c.Text == fmt.Sprintf("[resource x:y, application/pdf, %d bytes] cannot be shown: it can only be opened with a password", len(file)); is != tt.needs {
				t.Errorf("needs a password: %t, want %t: %q", is, tt.needs, file)
			}
		}
	}
	for _, file := range []string{"/Encrypt 1 0 R", "/Encrypt", "/Encrypt 9 9 R\n9 9 obj\n<< /R 3 /O (", "/Encrypt << /R 6 /O <00> /U <zz> >>", "/EncryptMetadata false"} {
		if needsPassword([]byte(file)) {
			t.Errorf("%q needs a password", file)
		}
	}
}

// literals writes the strings of a dictionary in the other form, and removes the blanks that may be missing.
func literals(dictionary string) string {
	text := regexp.MustCompile(`<[0-9a-f]+>`).ReplaceAllStringFunc(dictionary, func(digits string) string {
		data, _ := hex.DecodeString(digits[1 : len(digits)-1])
		out := "("
		for i, c := range data {
			switch {
			case c == '(' || c == ')' || c == '\\':
				out += "\\" + string(rune(c))
			case c == '\n':
				out += `\n`
			case c == '\r':
				out += `\r`
			case i%2 == 0:
				out += fmt.Sprintf("\\%03o", c)
			default:
				out += string([]byte{c})
			}
		}
		return out + ")"
	})
	return strings.NewReplacer(" /", "/", " (", "(").Replace(text)
}
