package sandbox

import (
	"runtime"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, folder string
		want         bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}, {"/a", "/", true}, {"/", "/", true}, {"/b", "/a", false},
	} {
		if got := isWithin(c.path, c.folder); got != c.want {
			t.Errorf("%s is in %s: %v", c.path, c.folder, got)
		}
	}
}

func TestResolveRoot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has other roots")
	}
	for _, path := range []string{"/", "//", "/../.."} {
		if r, err := resolve(path); r.path != "/" || !r.isDir || err != nil {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
}
