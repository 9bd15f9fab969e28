package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

var benchSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`)

func manyTools(n int) []Source {
	tools := make([]Tool, n)
	for i := range tools {
		tools[i] = mcpTool("server", fmt.Sprintf("tool_%d", i))
		tools[i].InputSchema = benchSchema
	}
	return []Source{&listed{name: "mcp:server", tools: tools}}
}

func BenchmarkLoad10000(b *testing.B) {
	sources := manyTools(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if reg := NewLoader(Options{}).Load(context.Background(), sources, false); reg.Len() != 10_000 {
			b.Fatal(reg.Len())
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	reg := NewLoader(Options{}).Load(context.Background(), manyTools(10_000), false)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Lookup("server__tool_5000"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	reg := NewLoader(Options{}).Load(context.Background(), manyTools(1), false)
	tool := reg.Tools()[0]
	params := json.RawMessage(`{"path":"a/b.go","limit":20}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := reg.Validate(context.Background(), tool, params); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewValidator(benchSchema).Compile(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
