package builtin

import "testing"

func BenchmarkNames(b *testing.B) {
	for b.Loop() {
		Names()
		Canonical()
	}
}

func BenchmarkDefinitions(b *testing.B) {
	for b.Loop() {
		definitions(b)
	}
}
