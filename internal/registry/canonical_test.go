package registry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// decodedAndEncoded is what canonical has to give: fingerprints that people
// have approved depend on it.
func decodedAndEncoded(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if len(raw) == 0 || dec.Decode(&v) != nil {
		return string(raw)
	}
	text, err := marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, ` [ 1 , [ ] , { } ] `, `{"b":1,"a":{"d":[1,2],"c":null}}`, `{"a":1,"a":2,"A":3}`, `{"\u0061":1,"a":2}`,
		`"\/\u00e9\ud83d\ude00\ud800x"`, "\"\xff\u2028\"", `12345678901234567890.10e+5`, `{"a":1} trailing`, `{"a":`, `nonsense`, `{"a" : true , "b" : -0}`,
		`"<&>"`, `"\u007f` + "\x7f" + `"`, `{"":{"":{}}}`, `[{"b":"\\","a":"\""}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, want := canonical(raw), decodedAndEncoded(raw); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", raw, got, want)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	raw := json.RawMessage(`{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"string","description":"one of the params of it"},`, 30) + `"q":{}}}`)
	for name, f := range map[string]func(json.RawMessage) string{"walk": canonical, "decode": decodedAndEncoded} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f(raw)
			}
		})
	}
}
