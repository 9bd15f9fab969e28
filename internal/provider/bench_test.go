package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// manyTools returns n tools with schemas of about 600 bytes or, if large is set,
// 2.4 KB.
func manyTools(n int, large bool) []registry.Definition {
	fields := 5
	if large {
		fields = 20
	}
	var b strings.Builder
	b.WriteString(`{"type": "object", "properties": {`)
	for i := range fields {
		fmt.Fprintf(&b, `"field_%d": {"type": "string", "description": "What the field number %d is good for, told at length", "enum": ["a", "b"]}, `, i, i)
	}
	b.WriteString(`"n": {"type": "integer", "minimum": 1}}, "required": ["n"], "additionalProperties": false}`)
	defs := make([]registry.Definition, n)
	for i := range defs {
		defs[i] = registry.Definition{Name: fmt.Sprintf("tool.%d", i), Description: "Does what tools do", InputSchema: json.RawMessage(b.String())}
		if i%2 == 0 {
			defs[i].Source, defs[i].Server = "mcp:s", "s"
		} else {
			defs[i].Source = "command"
		}
	}
	return defs
}

func BenchmarkEncode10000(b *testing.B) {
	for _, large := range []bool{false, true} {
		defs := manyTools(10_000, large)
		for _, f := range Formats() {
			b.Run(fmt.Sprintf("%s/schema=%d", f.Name, len(defs[0].InputSchema)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					out, _ := f.Encode(defs, Options{})
					b.SetBytes(int64(len(out.Data)))
				}
			})
		}
	}
}

func BenchmarkOriginal10000(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("tool_%d", i)
	}
	for b.Loop() {
		if OriginalNames("openai", names)["tool_9999"] == "" {
			b.Fatal("not found")
		}
	}
}
