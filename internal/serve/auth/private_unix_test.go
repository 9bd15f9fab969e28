//go:build unix

package auth

import (
	"io/fs"
	"testing"
)

// A file belongs to its reader or to root. Only files of root may be readable by their
// group, and only if another user reads them.
func TestPrivate(t *testing.T) {
	for _, c := range []struct {
		mode        fs.FileMode
		owner, user int
		want        bool
	}{
		{0o600, 1000, 1000, true}, {0o400, 1000, 1000, true}, {0o640, 1000, 1000, false}, {0o604, 1000, 1000, false},
		{0o440, 0, 1000, true}, {0o400, 0, 1000, true}, {0o444, 0, 1000, false}, {0o460, 0, 1000, false},
		{0o440, 0, 0, false}, {0o440, 1001, 1000, false}, {0o600, 1001, 1000, false}, {0o600, 1000, 0, false},
	} {
		if got := checkPrivateFor(c.mode, c.owner, c.user) == nil; got != c.want {
			t.Errorf("mode %o of user %d, read by %d: %v", c.mode, c.owner, c.user, got)
		}
	}
}
