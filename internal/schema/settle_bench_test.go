package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
)

func BenchmarkSettle(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"type": "object", "properties": {`)
	for i := range 20 {
		fmt.Fprintf(&text, `"field_%d": {"type": "string", "description": "What the field number %d is good for, told at length", "enum": ["a", "b"]}, `, i, i)
	}
	text.WriteString(`"n": {"type": "integer", "minimum": 1}}, "required": ["n"], "additionalProperties": false}`)
	raw := []byte(text.String())
	s := Settler{Parser: jsonx.Parser{Options: jsonx.Options{Depth: 100}}}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Settle(raw); err != nil {
			b.Fatal(err)
		}
	}
}
