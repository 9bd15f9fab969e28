package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolreg/toolreg/internal/trust"
)

func TestProjectRoot(t *testing.T) {
	tests := []struct {
		name string
		mk   []string // folders below home; a name that ends in ! is a file
		dir  string
		want string
	}{
		{"nearest .toolreg", []string{"a/.toolreg", "a/b/.toolreg", "a/b/c"}, "a/b/c", "a/b"},
		{"nearest .git below a .toolreg", []string{"a/.toolreg", "a/b/.git", "a/b/c"}, "a/b/c", "a/b"},
		{"a linked work tree", []string{"a/.git!", "a/b"}, "a/b", "a"},
		{"home is no project", []string{".git", ".toolreg", "a/b"}, "a/b", "a/b"},
		{"home itself when we stand in it", []string{".toolreg"}, ".", "."},
		{"no marker", []string{"a/b"}, "a/b", "a/b"},
		{"a file named .toolreg is no marker", []string{"a/.git", "a/b/.toolreg!"}, "a/b", "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			home := trust.Real(t.TempDir())
			for _, path := range test.mk {
				make1(t, filepath.Join(home, path))
			}
			got, note := findRoot(filepath.Join(home, test.dir), home)
			if want := filepath.Join(home, test.want); got != want {
				t.Errorf("root %s, want %s (%s)", got, want, note)
			}
		})
	}
}

// make1 makes a folder, or a file where the path ends in "!".
func make1(t *testing.T, path string) {
	t.Helper()
	file := path[len(path)-1] == '!'
	if file {
		path = path[:len(path)-1]
	}
	dir := path
	if file {
		dir = filepath.Dir(path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if file {
		if err := os.WriteFile(path, []byte("gitdir: x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMarkerOfAnotherUserIsIgnored(t *testing.T) {
	home := trust.Real(t.TempDir())
	marker := filepath.Join(home, "a", ".git")
	dir := filepath.Join(home, "a", "b")
	make1(t, marker)
	make1(t, dir)
	if err := os.Chmod(marker, 0o777); err != nil {
		t.Fatal(err)
	}
	got, note := findRoot(dir, home)
	if got != dir || note != marker+" does not make a project root: it is writable by everybody" {
		t.Errorf("root %s, note %q", got, note)
	}
}
