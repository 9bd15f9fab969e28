package text

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEscapeJSON(t *testing.T) {
	tests := []struct{ in, want string }{
		{"{\n  \"a\": 1\r\n}\t", "{\n  \"a\": 1\r\n}\t"},
		{`"日本 😀"`, `"日本 😀"`},
		{"\"\u202e\u200b\x7f\u009b\"", `"\u202e\u200b\u007f\u009b"`},
		{"\"\U000e0041\"", `"\udb40\udc41"`},
		{"\"\u2028\"", `"\u2028"`},
		{"\"\xff\"", `"\ufffd"`},
		{"\"a\x1bb\"", `"a\u001bb"`},
	}
	for _, tt := range tests {
		if got := string(EscapeJSON([]byte(tt.in))); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.in, got, tt.want)
		}
	}
}

func FuzzEscapeJSON(f *testing.F) {
	f.Add("a\u202e\U000e0041\x7f")
	f.Fuzz(func(t *testing.T, s string) {
		plain, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		escaped := EscapeJSON(plain)
		if FirstInvisible(escaped) >= 0 {
			t.Fatalf("%q leaves %q", s, escaped)
		}
		var a, b string
		if json.Unmarshal(plain, &a) != nil || json.Unmarshal(escaped, &b) != nil || a != b {
			t.Fatalf("%q becomes %q", a, b)
		}
	})
}

func BenchmarkEscapeJSONForeign(b *testing.B) {
	data := []byte(strings.Repeat(`{"日本語":"text é"},`, 1000))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		EscapeJSON(data)
	}
}
