package discover

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writeFile writes a file of a test project; scripts are executable. The lock
// prevents a fork while the file is open for writing, after which executing it
// would fail with ETXTBSY.
func writeFile(t testing.TB, dir, name, content string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// commandLine parses a command line in the same way as the settings.
func commandLine(t testing.TB, line string) settings.Command {
	t.Helper()
	argv, err := process.Split(line)
	if err != nil {
		t.Fatal(err)
	}
	return settings.Command{Argv: argv, Line: line, Origin: settings.Origin{Scope: settings.ScopeProject, Name: "settings.yaml", Line: 3}}
}

// newCommand is NewCommand with what most tests do not care about.
func newCommand(o CommandOptions) registry.Source {
	o.Options = required(o.Options)
	if o.Expand == nil {
		o.Expand = func(c settings.Command) ([]string, error) { return c.Argv, nil }
	}
	return NewCommand(o)
}

// required returns options with a context and a mask that hides nothing, unless they have others.
func required(o Options) Options {
	if o.Context == nil {
		o.Context = json.RawMessage("{}")
	}
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	return o
}

func environ(more ...string) []string { return append([]string{"PATH=" + os.Getenv("PATH")}, more...) }

func readVectors(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func fill(s, dir string) string { return strings.ReplaceAll(s, "{{DIR}}", dir) }
