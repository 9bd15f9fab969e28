package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// twenty is a settings file with 20 servers.
func twenty() string {
	var b strings.Builder
	b.WriteString("mcpServers:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "  server-%d:\n    command: npx\n    args: [-y, \"@scope/server-%d\", --flag]\n    env: {TOKEN: $TOKEN, MODE: fast}\n    timeout: 30s\n    includeTools: [a, b]\n", i, i)
	}
	return b.String()
}

func BenchmarkLoad(b *testing.B) {
	for name, text := range map[string]string{"none": "", "servers=20": twenty()} {
		b.Run(name, func(b *testing.B) {
			home := b.TempDir()
			o := Options{Dir: home, Environ: []string{"HOME=" + home}, SystemDir: filepath.Join(home, "none")}
			if text != "" {
				writeBench(b, filepath.Join(home, ".config", "toolreg", "settings.yaml"), text)
			}
			for b.Loop() {
				if _, _, err := Load(o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	x := table.NewIndex()
	text := []byte(twenty())
	for b.Loop() {
		layers.Read(x, ScopeUser, "s.yaml", text)
	}
}

func writeBench(b *testing.B, path, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}
