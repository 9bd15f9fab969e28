package jsonx

import (
	"encoding/json"
	"strings"
	"testing"
)

var validSeeds = []string{
	``, ` `, `{}`, `[]`, `{"a":1}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a" 1}`, `{a:1}`, `{"a":[{"b":null}]} `, `{}x`, "\x00",
	`"plain text of some length"`, `"with \"quotes\" and \\"`, `"\u00e9\uD800"`, `"\u00g0"`, `"\x"`, `"\`, `"open`, "\"control\x1f\"", "\"\xff invalid UTF-8 é\u2028\"", "\"12345678\n\"",
	`0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5e+10`, `1e`, `1E-`, `+1`, `0x1`, `NaN`, `true`, `tru`, `truee`, `false`, `null`, `nul`, "\t\r\n 1 \v",
	strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001),
}

func TestValidAgreesWithTheLibrary(t *testing.T) {
	for _, s := range validSeeds {
		if want := json.Valid([]byte(s)); Valid([]byte(s)) != want {
			t.Errorf("%.60q: want %v", s, want)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range validSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if want := json.Valid(data); Valid(data) != want {
			t.Errorf("%q: want %v", data, want)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	text := []byte(`{"result":{"content":[{"type":"text","text":"` + strings.Repeat(`a line of text\n`, 1<<16) + `"}]}}`)
	for name, valid := range map[string]func([]byte) bool{"jsonx": Valid, "json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !valid(text) {
					b.Fatal("it is valid")
				}
			}
		})
	}
}
