package guards

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/git"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place creates a workspace with files for a user without settings.
func place(t testing.TB, files map[string]string) (string, git.User) {
	t.Helper()
	return tooltest.Place(t, files), git.User{Home: t.TempDir(), ConfigHome: t.TempDir()}
}
