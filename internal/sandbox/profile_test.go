package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A system supports the sandbox if it has every part, and says which it lacks.
func TestSupport(t *testing.T) {
	fine, bare, missing := Part{Name: "seccomp", OK: true, Detail: "new"}, Part{Name: "Landlock"}, Part{Name: "user namespaces", Detail: "forbidden"}
	for _, c := range []struct {
		parts   []Part
		full    bool
		missing []string
	}{
		{nil, false, nil}, {[]Part{fine}, true, nil}, {[]Part{fine, fine}, true, nil},
		{[]Part{fine, missing, bare}, false, []string{"user namespaces (forbidden)", "Landlock"}},
	} {
		s := Support{Parts: c.parts}
		if diff := cmp.Diff(c.missing, s.Missing()); s.Full() != c.full || diff != "" {
			t.Errorf("%+v: full is %v, missing (-want +got):\n%s", c.parts, s.Full(), diff)
		}
	}
}
