package search

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
)

// largeWorkspace creates a workspace of 4,000 source files, about 30 MB.
func largeWorkspace(b *testing.B) workspace.Options {
	b.Helper()
	opts, dir := place(b, map[string]string{".gitignore": "*.o\nbuild/\n/tmp/**\n!keep.o\n"})
	body := strings.Repeat("func example(value int) error { return fmt.Errorf(\"value %d is out of range\", value) }\n", 80)
	for i := range 4000 {
		ext := []string{"go", "ts", "md", "o"}[i%4]
		tooltest.Put(b, filepath.Join(dir, fmt.Sprintf("pkg%d/sub%d/file%d.%s", i%40, i%7, i, ext)), body)
	}
	tooltest.Put(b, filepath.Join(dir, "pkg0/needle.go"), "the one Needle\n")
	return opts
}

func BenchmarkGrep(b *testing.B) {
	opts := largeWorkspace(b)
	for name, params := range map[string]string{
		"rare literal": `{"pattern":"needle"}`,
		"exact case":   `{"pattern":"Needle","case_sensitive":true}`,
		"common word":  `{"pattern":"return"}`,
		"regex":        `{"pattern":"needle\\w*|absent\\d+"}`,
		"no literal":   `{"pattern":"[A-Z]{5}\\d"}`,
	} {
		b.Run(name, func(b *testing.B) {
			tool := find(b, opts, "grep")
			for b.Loop() {
				if _, err := tool.Run(b.Context(), tooltest.Call(params)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGlob(b *testing.B) {
	opts := largeWorkspace(b)
	for name, params := range map[string]string{"all": `{"pattern":"**"}`, "extension": `{"pattern":"**/*.ts"}`, "folder": `{"pattern":"pkg1/**/*.{go,md}"}`} {
		b.Run(name, func(b *testing.B) {
			tool := find(b, opts, "glob")
			for b.Loop() {
				if _, err := tool.Run(b.Context(), tooltest.Call(params)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
