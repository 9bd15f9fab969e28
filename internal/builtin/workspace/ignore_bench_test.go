package workspace

import (
	"strings"
	"testing"
)

func BenchmarkIgnored(b *testing.B) {
	list := &ignoreList{rules: parseIgnore([]byte(strings.Repeat("*.o\nbuild/\n/tmp/**\n!keep.o\nfoo/*/bar\n**/x[0-9]\nliteral\n", 8)))}
	for b.Loop() {
		list.decide("some/folder/of/a/project/file.go", false)
	}
}
