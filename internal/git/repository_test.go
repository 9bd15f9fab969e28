package git

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Links are followed as the kernel does: ".." is the parent of the folder that a link leads to. What does not
// exist stays as it is named.
func TestFollowLinks(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"link": "a/b", "up": "link/..", "dangling": "up/new", "absolute": top + "/a//./b", "loop": "loop"}
	for i := range 60 {
		links[fmt.Sprint("n", i)] = fmt.Sprint("n", i+1)
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Skip(err)
		}
	}
	for path, want := range map[string][]string{
		"a/b":             {"a/b"},
		"a/b/":            {"a/b"},
		"link/x/../y":     {"a/b/y", "link"},
		"up":              {"a", "up", "link"},
		"up/b/new":        {"a/b/new", "up", "link"},
		"dangling":        {"a/new", "dangling", "up", "link"},
		"absolute/x":      {"a/b/x", "absolute"},
		"missing/../link": {"a/b", "link"},
	} {
		var got []string
		real := FollowLinks(top+"/"+path, func(link string) { got = append(got, link) })
		for i, text := range append([]string{real}, got...) {
			if i == 0 {
				got = nil
			}
			rel, err := filepath.Rel(top, text)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	for path, want := range map[string]string{"loop": "loop", "n0": "n40", "n20": "n60"} {
		if got := ResolveLinks(filepath.Join(top, path)); got != filepath.Join(top, want) {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	if got := ResolveLinks("relative"); got != "relative" {
		t.Errorf("a relative path became %q", got)
	}
}
