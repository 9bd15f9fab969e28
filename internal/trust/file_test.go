package trust

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReal(t *testing.T) {
	dir := Real(t.TempDir())
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{"": "", dir + "/link/link": dir, dir + "/link/./none": dir + "/link/none", dir: dir} {
		if got := Real(path); got != want {
			t.Errorf("Real(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		path, folder string
		want         bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/a/b/../c", "/a/", true}, {"/a", "/", true},
		{"/ab", "/a", false}, {"/a/..", "/a", false}, {"/", "/a", false}, {"a", "/a", false}, {"/a/..b", "/a", true},
	} {
		if got := Within(filepath.FromSlash(test.path), filepath.FromSlash(test.folder)); got != test.want {
			t.Errorf("Within(%q, %q) = %v", test.path, test.folder, got)
		}
	}
}
