package workspace

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place creates a workspace with files and returns its path too.
func place(t testing.TB, files map[string]string) (Options, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	return Options{Dir: dir, Home: t.TempDir(), ConfigHome: t.TempDir()}, dir
}
