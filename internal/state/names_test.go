package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// namesIn returns the record of a project with this content of its file, and the file.
func namesIn(t *testing.T, f *Folders, project, content string) (n *Names, file string) {
	t.Helper()
	n, err := f.Names(project)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(n.dir.Path, n.file)
	if content != "" {
		if err := os.MkdirAll(n.dir.Path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return n, file
}

// A file that is damaged or of another version is an error, and stays as it is; one
// without names has none.
func TestNamesOfOddFiles(t *testing.T) {
	for content, ok := range map[string]bool{
		"": true, `{"version":1,"project":"/p"}`: true, `{"version":1,"names":null}`: true,
		"{": false, "{}": false, `{"version":2,"names":{}}`: false, `{"version":1,"names":{"a":1}}`: false, `{"version":1,"names":["a"]}`: false,
	} {
		n, file := namesIn(t, &Folders{Environ: []string{"XDG_STATE_HOME=" + t.TempDir()}}, "/p", content)
		if names, err := n.Read(); (err == nil) != ok || len(names) != 0 {
			t.Errorf("%q has %v, %v", content, names, err)
		}
		held, err := n.Update(t.Context(), func(all map[string][]Holder) { all["a"] = []Holder{{Server: "s", File: "f"}} })
		if (err == nil) != ok || len(held) == 1 != ok {
			t.Errorf("%q becomes %v, %v", content, held, err)
		}
		if data, _ := os.ReadFile(file); !ok && string(data) != content {
			t.Errorf("%q became %q", content, data)
		}
	}
	n, file := namesIn(t, &Folders{Environ: []string{"XDG_STATE_HOME=" + t.TempDir()}}, "/p", "{}")
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Read(); !errors.Is(err, ErrDamaged) {
		t.Errorf("names that were given out are forgotten with an empty file: %v", err)
	}
}

// A server that is removed from a file is forgotten in all projects; the same name in
// another file is another server.
func TestForgetServer(t *testing.T) {
	f := &Folders{Environ: []string{"XDG_STATE_HOME=" + t.TempDir()}}
	if err := f.ForgetServer(t.Context(), "s", "f"); err != nil {
		t.Errorf("nothing recorded: %v", err)
	}
	for _, project := range []string{"/p", "/q"} {
		n, _ := namesIn(t, f, project, "")
		if _, err := n.Update(t.Context(), func(all map[string][]Holder) {
			all["a"] = []Holder{{Server: "s", File: "f"}}
			all["b"] = []Holder{{Server: "s", File: "f"}, {Server: "s", File: "g"}, {Server: "r", File: "f"}}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.ForgetServer(t.Context(), "s", "f"); err != nil {
		t.Fatal(err)
	}
	for _, project := range []string{"/p", "/q"} {
		n, _ := namesIn(t, f, project, "")
		got, err := n.Read()
		if diff := cmp.Diff(map[string][]Holder{"b": {{Server: "s", File: "g"}, {Server: "r", File: "f"}}}, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", project, err, diff)
		}
	}
}

// The record of a project is emptied, and forgotten even if it is damaged; without a name there is
// none.
func TestForgetNames(t *testing.T) {
	f := &Folders{Environ: []string{"XDG_STATE_HOME=" + t.TempDir()}}
	n, file := namesIn(t, f, "/p", "")
	if _, err := n.Update(t.Context(), func(map[string][]Holder) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a record without names was written")
	}
	for _, c := range []struct {
		content string
		names   int
	}{
		{`{"version":1,"project":"/p","names":{"a":[{"server":"s","file":"f"}],"b":[]}}`, 2}, {"damaged", 0},
	} {
		namesIn(t, f, "/p", c.content)
		if got, err := n.Forget(t.Context()); got != c.names || err != nil {
			t.Errorf("of %s %d names are forgotten, %v", c.content, got, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s stays", c.content)
		}
	}
	namesIn(t, f, "/p", `{"version":1,"project":"/p","names":{"a":[{"server":"s","file":"f"}]}}`)
	if _, err := n.Update(t.Context(), func(all map[string][]Holder) { delete(all, "a") }); err != nil {
		t.Fatal(err)
	}
	if names, err := n.Read(); len(names) != 0 || err != nil {
		t.Errorf("after the last name was removed: %v, %v", names, err)
	}
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Forget(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a folder in place of the record: %v", err)
	}
}
