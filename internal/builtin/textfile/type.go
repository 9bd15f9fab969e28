package textfile

import (
	"bytes"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// SniffBytes is the number of bytes at the start of a file that determine its
// type.
const SniffBytes = 4096

// MediaType returns the type of an image, audio, video or PDF file by its first bytes, or "" for
// other files. Text that happens to start like such a file is still text.
func MediaType(head []byte) string {
	if _, isText := Detect(head); isText && !bytes.HasPrefix(head, []byte("%PDF-")) {
		return ""
	}
	if kind := registry.Sniff(head); kind != "" {
		return kind
	}
	if kind := Type(head); strings.HasPrefix(kind, "image/") {
		return kind
	}
	return ""
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
		e = plain16(head)
		return e, e != UTF8
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

// Characters that make up a large part of any text in their language.
const (
	oftenSimplified  = "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从动两长新高数据库件系统用户名请输入错误测试字件内容设置"
	oftenTraditional = "的一是不了在人有我他這中大來上國個到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手用主行方又如前所本見經頭面公同三已老從動兩長新高數據庫件系統用戶名請輸入錯誤測試字內容設定"
	oftenKorean      = "이다는을에의가하고지로사기한어를은자도리나시아서그스라인대일들있해정보수전부으니않면여것등과와제주장구상원세성안녕습합글파"
	oftenKanji       = "日本人大年出中国会上生分行事者見月間時前後新文字名入力設定用語"
)

// table returns the tables of an encoding of several bytes a character, or nil.
func (e Encoding) table() encoding.Encoding {
	switch e {
	case UTF16LE:
		return xunicode.UTF16(xunicode.LittleEndian, xunicode.UseBOM)
	case UTF16BE:
		return xunicode.UTF16(xunicode.BigEndian, xunicode.UseBOM)
	case Plain16LE:
		return xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM)
	case Plain16BE:
		return xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM)
	case ISO2022JP:
		return japanese.ISO2022JP
	case ShiftJIS:
		return japanese.ShiftJIS
	case EUCJP:
		return japanese.EUCJP
	case GB18030:
		return simplifiedchinese.GB18030
	case Big5:
		return traditionalchinese.Big5
	case EUCKR:
		return korean.EUCKR
	}
	return nil
}

// minOften is the share of frequent characters from which a text counts as one in
// their language. Text in another encoding has next to none.
const minOften = 0.15

// guess returns the encoding of text that is not UTF-8: the one in which it is valid
// and has most of the characters that are frequent in its language; else Windows-1252,
// or [Unknown] where that is in doubt. Text may be the beginning of a file, and end
// inside a character.
func guess(text []byte) Encoding {
	if i := bytes.LastIndexByte(text, '\n'); i > len(text)/2 {
		text = text[:i]
	}
	best, most := Windows1252, minOften
	for _, e := range []Encoding{EUCJP, ShiftJIS, GB18030, Big5, EUCKR} {
		for _, cut := range []int{0, 1} {
			decoded, err := e.table().NewDecoder().Bytes(text[:max(len(text)-cut, 0)])
			if err != nil || bytes.ContainsRune(decoded, utf8.RuneError) {
				continue
			}
			if share := e.often(string(decoded)); share > most {
				best, most = e, share
			}
			break
		}
	}
	if best == Windows1252 && !isWestern(text) {
		return Unknown
	}
	return best
}

// often returns the share of frequent characters among those beyond ASCII, without
// punctuation.
func (e Encoding) often(text string) float64 {
	list := map[Encoding]string{GB18030: oftenSimplified, Big5: oftenTraditional, EUCKR: oftenKorean}[e]
	all, found := 0, 0
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf, r >= 0x3000 && r <= 0x303f, r >= 0xff00 && r <= 0xff60:
			continue
		case list == "" && r >= 0x3041 && r <= 0x30fc, list == "" && strings.ContainsRune(oftenKanji, r),
			list != "" && strings.ContainsRune(list, r):
			found++
		}
		all++
	}
	if all == 0 {
		return 0
	}
	return float64(found) / float64(all)
}

// isWestern reports whether the bytes look like Windows-1252: in no language that it is
// for do three letters with accents follow each other more often than not.
func isWestern(text []byte) bool {
	letters, inRuns, run := 0, 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] >= 0xc0 {
			run++
			letters++
			continue
		}
		if run >= 3 {
			inRuns += run
		}
		run = 0
	}
	return 2*inRuns <= letters
}

// isISO2022JP reports whether ASCII text switches to Japanese characters.
func isISO2022JP(text []byte) bool {
	return (bytes.Contains(text, []byte("\x1b$B")) || bytes.Contains(text, []byte("\x1b$@"))) &&
		bytes.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
