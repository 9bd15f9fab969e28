package workspace

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/text"
)

// linked creates a workspace full of links.
func linked(t testing.TB) (opts Options, dir, outside string) {
	t.Helper()
	dir, outside = tooltest.Linked(t)
	return Options{Dir: dir}, dir, outside
}

func TestResolve(t *testing.T) {
	opts, dir, outside := linked(t)
	tooltest.Link(t, "nowhere/../a.txt", filepath.Join(dir, "to-nowhere"))
	alias := filepath.Join(t.TempDir(), "alias")
	tooltest.Link(t, dir, alias)
	const out = "leads outside the workspace"
	tests := []struct{ name, want, refused string }{
		{name: "a.txt", want: "a.txt"},
		{name: ".", want: "."},
		{name: "./deep//er/../er/b.txt", want: "deep/er/b.txt"},
		{name: "new/file", want: "new/file"},
		{name: "a.txt/below", want: "a.txt/below"},
		{name: "a.txt/..", want: "."},
		{name: dir, want: "."},
		{name: dir + "/a.txt", want: "a.txt"},
		{name: alias + "/deep/er/b.txt", want: "deep/er/b.txt"},
		{name: alias + "/new", want: "new"},
		{name: "to-file", want: "a.txt"},
		{name: "to-link/b.txt", want: "deep/er/b.txt"},
		{name: "to-link/new.txt", want: "deep/er/new.txt"},
		{name: "abs-inside/er/b.txt", want: "deep/er/b.txt"},
		{name: "to-folder/up", want: "a.txt"},
		{name: "dangling", want: "nowhere"},
		{name: "~file", want: "~file"},
		{name: "..dots", want: "..dots"},

		{name: "", refused: "is empty"},
		{name: "a\x00b", refused: "NUL"},
		{name: "..", refused: out},
		{name: "../" + filepath.Base(dir) + "/a.txt", refused: out},
		{name: "deep/../../x", refused: out},
		{name: "~", refused: "~"},
		{name: "~/x", refused: "~"},
		{name: "file:///etc/passwd", refused: "URL"},
		{name: "FILE:/etc/passwd", refused: "URL"},
		{name: "/etc/passwd", refused: "outside the workspace"},
		{name: outside + "/secret", refused: "outside the workspace"},
		{name: filepath.Dir(dir), refused: "outside the workspace"},
		{name: "rel-out/secret", refused: `through link "rel-out"`},
		{name: "abs-out/secret", refused: `through link "abs-out"`},
		{name: "abs-out", refused: `through link "abs-out"`},
		{name: "proc/etc/passwd", refused: `through link "proc"`},
		{name: "to-folder/far/x", refused: `through link "deep/er/far"`},
		{name: "loop-a", refused: "loop of links"},
		{name: "to-nowhere", refused: `goes up from "nowhere", which does not exist`},
	}
	w := tooltest.Open(t, New(opts))
	for _, tt := range tests {
		got, err := w.resolve(tt.name, text.Alike)
		switch {
		case tt.refused == "" && (err != nil || got != tt.want):
			t.Errorf("resolve(%q) = %q, %v; want %q", tt.name, got, err, tt.want)
		case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
			t.Errorf("resolve(%q) = %q, %v; want an error with %q", tt.name, got, err, tt.refused)
		}
	}
}

func TestEquivalentNames(t *testing.T) {
	dir := tooltest.Place(t, map[string]string{
		"re\u0301sume\u0301.txt": "", "caf\u00e9/menu.txt": "", "Bildschirm 4\u202fPM.png": "", "it\u2019s.md": "", "a \u2013 b.md": "",
		"two\u2018.txt": "", "two\u2019.txt": "", "x\u00b2.txt": "",
	})
	w := tooltest.Open(t, New(Options{Dir: dir}))
	for _, tt := range []struct{ name, want, created string }{
		{"r\u00e9sum\u00e9.txt", "re\u0301sume\u0301.txt", "re\u0301sume\u0301.txt"},
		{"cafe\u0301/menu.txt", "caf\u00e9/menu.txt", "caf\u00e9/menu.txt"},
		{"cafe\u0301/new.txt", "caf\u00e9/new.txt", "caf\u00e9/new.txt"},
		{"Bildschirm 4 PM.png", "Bildschirm 4\u202fPM.png", "Bildschirm 4 PM.png"},
		{"it's.md", "it\u2019s.md", "it's.md"},
		{"a - b.md", "a \u2013 b.md", "a - b.md"},
		{"two'.txt", "two'.txt", "two'.txt"}, // there are two
		{"x2.txt", "x2.txt", "x2.txt"},
	} {
		if got, err := w.resolve(tt.name, text.Alike); err != nil || got != tt.want {
			t.Errorf("%+q is %+q, %v; want %+q", tt.name, got, err, tt.want)
		}
		if got, err := w.resolve(tt.name, text.Composed); err != nil || got != tt.created {
			t.Errorf("%+q creates %+q, %v; want %+q", tt.name, got, err, tt.created)
		}
	}
	paths, err := w.SubjectPaths("it's.md")
	if diff := cmp.Diff([]string{"it\u2019s.md", "it's.md"}, paths); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got, want := w.Explain("two'.txt", "two'.txt", fs.ErrNotExist, nil), `"two'.txt" does not exist in the workspace `+strconv.Quote(w.dir)+`; did you mean "two\u2018.txt", "two\u2019.txt"?`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestNamesThatWindowsTakesForOthers(t *testing.T) {
	for name, want := range map[string]bool{
		"a.txt": false, "..": false, ".env": false, "..a": false, "~": false, "~1": false, "a~": false, "a~b": false, "longname~1": false,
		"file.~1~": false, "a~1.backup": false,
		"a.": true, "a. .": true, "a ": true, "...": true, "PRIVAT~1": true, "privat~1.txt": true, "GIT~12": true, "a~1.b": true,
	} {
		if got := isOtherName(name); got != want {
			t.Errorf("isOtherName(%q) = %v", name, got)
		}
	}
	opts, _ := place(t, map[string]string{"a.txt": "", "deep/b.txt": ""})
	w := tooltest.Open(t, New(opts))
	for _, name := range []string{"a.txt.", "a.txt ", `deep.\b.txt`, "DEEP~1/b.txt", "new./x"} {
		got, err := w.resolve(name, text.Alike)
		refused := err != nil && strings.Contains(err.Error(), "Windows may open another file")
		if refused != (runtime.GOOS == "windows") {
			t.Errorf("resolve(%q) = %q, %v", name, got, err)
		}
	}
}

// A path may have as many bytes and links as Linux allows.
func TestLongestPaths(t *testing.T) {
	opts, dir := place(t, map[string]string{"40": ""})
	for i := range 40 {
		tooltest.Link(t, strconv.Itoa(i+1), filepath.Join(dir, strconv.Itoa(i)))
	}
	tooltest.Link(t, "0", filepath.Join(dir, "more"))
	w := tooltest.Open(t, New(opts))
	for name, want := range map[string]string{
		"0": "", "more": "has a loop of links", strings.Repeat("a/", 2048): "", strings.Repeat("a/", 2048) + "a": "is longer than 4096 bytes",
	} {
		if _, err := w.resolve(name, text.Alike); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.10s: %v, want %q", name, err, want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "to-link/../..", "abs-inside/er/up", "~", "/proc/self/root", "rel-out/\x00", "deep/er/far/etc"} {
		f.Add(s)
	}
	opts, _, _ := linked(f)
	w := tooltest.Open(f, New(opts))
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := w.resolve(name, text.Alike)
		if err == nil && !filepath.IsLocal(filepath.FromSlash(rel)) {
			t.Errorf("resolve(%q) = %q", name, rel)
		}
		if file, _, err := w.OpenFile(rel); err == nil {
			file.Close()
		}
	})
}
