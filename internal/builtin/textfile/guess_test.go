package textfile

import (
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

func TestGuess(t *testing.T) {
	for _, tt := range []struct {
		in   encoding.Encoding
		text string
		want Encoding
	}{
		{japanese.ShiftJIS, "こんにちは、世界\n", ShiftJIS},
		{japanese.ShiftJIS, "# ファイルを読み込む\nname = \"テスト\"\n", ShiftJIS},
		{japanese.ShiftJIS, "エラー", ShiftJIS},
		{japanese.EUCJP, "この設定ファイルは自動的に作成されます。\n", EUCJP},
		{japanese.EUCJP, "// テストデータ\n", EUCJP},
		{simplifiedchinese.GBK, "你好", GB18030},
		{simplifiedchinese.GBK, "中文测试文件，用来检查编码。\n", GB18030},
		{simplifiedchinese.GB18030, "int main() { // 返回用户的名字\n}\n", GB18030},
		{simplifiedchinese.GBK, "用户名,密码\n张三,123\n", GB18030},
		{traditionalchinese.Big5, "這是一個測試檔案,用來檢查編碼\n", Big5},
		{traditionalchinese.Big5, "使用者名稱：請輸入您的名字", Big5},
		{korean.EUCKR, "안녕하세요, 세계입니다\n", EUCKR},
		{korean.EUCKR, "/* 파일을 읽는 함수 */", EUCKR},
		{charmap.Windows1252, "caf\u00e9 noir, gar\u00e7on na\u00efve\n", Windows1252},
		{charmap.Windows1252, "Gr\u00f6\u00dfe \u00fcber \u00c4rger; M\u00fc\u00dfiggang\n", Windows1252},
		{charmap.Windows1252, "\u00ab\u00c0 la carte\u00bb, dit-il \u2013 \u201coui\u201d \u20ac5\n", Windows1252},
		{charmap.Windows1252, "coraz\u00f3n ma\u00f1ana \u00bfqu\u00e9? \u00a9 2024", Windows1252},
		{charmap.Windows1251, "Привет, мир! Это простой текст.\n", Unknown},
		{charmap.KOI8R, "Настройки программы\n", Unknown},
		{charmap.ISO8859_7, "Καλημέρα κόσμε\n", Unknown},
	} {
		data, err := tt.in.NewEncoder().Bytes([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := guess(data); got != tt.want {
			t.Errorf("%q in %v is read as %v", tt.text, tt.in, got)
			continue
		}
		text, e, err := Decode(data)
		if err != nil || tt.want != Unknown && text != tt.text {
			t.Errorf("%q in %v is decoded to %q, %v, %v", tt.text, tt.in, text, e, err)
		}
	}
}

// Text that begins with many ASCII bytes may end inside a character.
func TestDetectInsideACharacter(t *testing.T) {
	data, err := japanese.ShiftJIS.NewEncoder().Bytes([]byte("ファイルの名前"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 3; n <= len(data); n++ {
		if got, ok := Detect(data[:n]); got != ShiftJIS || !ok {
			t.Errorf("the first %d bytes are %v", n, got)
		}
	}
}

func TestISO2022JP(t *testing.T) {
	data, err := japanese.ISO2022JP.NewEncoder().Bytes([]byte("件名: テスト\n"))
	if err != nil {
		t.Fatal(err)
	}
	if text, e, err := Decode(data); text != "件名: テスト\n" || e != ISO2022JP || err != nil {
		t.Errorf("%q %v %v", text, e, err)
	}
	if e, _ := Detect([]byte("\x1b[31mred\x1b[0m $B")); e != UTF8 {
		t.Error(e)
	}
}

// UTF-16 without a byte order mark is read and written back; what only has zero bytes is no text.
func TestPlainUTF16(t *testing.T) {
	for text, want := range map[string]Encoding{
		"h\x00i\x00\r\x00\n\x00": Plain16LE, "\x00h\x00i\x00\n": Plain16BE, "a\x00\xe9\x00-N": Plain16LE, "h\x00i\x00\x3d\xd8\x00\xdeh\x00i\x00": UTF8,
		"hello\x00": UTF8, "ab\x00cd\x00e\x00": UTF8, "\x01\x00\x02\x00": UTF8, "a\x00\x00\xd8": UTF8, "a\x00": UTF8, "abcdefgh\x00i\x00j": UTF8, "\x00\x00": UTF8,
	} {
		got, ok := Detect([]byte(text))
		if got != want || ok != (want != UTF8) {
			t.Errorf("%q: %v, %t, want %v", text, got, ok, want)
		}
		decoded, e, err := Decode([]byte(text))
		if (err == nil) != ok || e != want {
			t.Errorf("%q: decoded as %q, %v, %v", text, decoded, e, err)
		}
		if again, err := e.Bytes(decoded); ok && (string(again) != text || err != nil) {
			t.Errorf("%q: written back as %q, %v", text, again, err)
		}
	}
}
