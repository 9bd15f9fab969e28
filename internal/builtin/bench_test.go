package builtin

import "testing"

func BenchmarkNames(b *testing.B) {
	for b.Loop() {
		Names()
		Aliases()
	}
}

func BenchmarkDefinitions(b *testing.B) {
	for b.Loop() {
		definitions(b)
	}
}
