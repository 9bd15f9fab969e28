package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// decodedAndEncoded returns what Canonical must return, because fingerprints that
// people have approved depend on it.
func decodedAndEncoded(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if len(raw) == 0 || dec.Decode(&v) != nil {
		return string(raw)
	}
	text, err := Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

func BenchmarkCanonical(b *testing.B) {
	raw := json.RawMessage(`{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"string","description":"one of the params of it"},`, 30) + `"q":{}}}`)
	for name, f := range map[string]func(json.RawMessage) string{"walk": Canonical, "decode": decodedAndEncoded} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f(raw)
			}
		})
	}
}
