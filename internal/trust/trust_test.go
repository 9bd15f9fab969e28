package trust

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/state"
)

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func newStore(t *testing.T) *Store {
	t.Helper()
	dir, err := state.OpenDir(filepath.Join(tempDir(t), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return NewStore(dir)
}

// names returns the names of the covered files in a project with these programs.
func names(t *testing.T, root string, programs ...Program) []string {
	t.Helper()
	files, err := Cover(root, nil, programs, []string{filepath.Join(root, ".toolreg", "plugins")})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, f := range files {
		out = append(out, f.Name)
	}
	return out
}

func TestCoverFollowsWhatRuns(t *testing.T) {
	root := filepath.Join(tempDir(t), "p")
	above := filepath.Dir(root)
	outside := write(t, filepath.Join(above, "outside.sh"), "x")
	for _, name := range []string{"package.json", "tools/a.sh", "tools/b.py", "srv/index.js", "srv/lib/x.js", "Makefile", "data/notes.txt",
		"build.zig", "gradle/wrapper/gradle-wrapper.jar", "gulpfile.js", "sub/tasks.py", "Vagrantfile", "BUILD",
		".toolreg/plugins/one/plugin.yaml", ".toolreg/plugins/one/bin/run", ".toolreg/plugins/one/.git/HEAD", "tools.sh"} {
		write(t, filepath.Join(root, name), name)
	}
	write(t, filepath.Join(root, "data/index.json"), `{"main": "notes.txt"}`)
	link(t, outside, filepath.Join(root, "link.sh"))
	link(t, above, filepath.Join(root, "linked"))
	link(t, root, filepath.Join(above, "in"))
	link(t, filepath.Join(root, "tools", "a.sh"), filepath.Join(above, "in.sh"))
	plugins := []string{".toolreg/plugins/one/.git/HEAD", ".toolreg/plugins/one/bin/run", ".toolreg/plugins/one/plugin.yaml"}
	tests := []struct {
		name string
		argv []string
		dir  string
		want []string
	}{
		{"a script of package.json", []string{"node", "--run", "discover"}, "srv", []string{"package.json"}},
		{"a build file", []string{"zig", "build"}, "tools", []string{"build.zig"}},
		{"the jar of a wrapper", []string{"./gradlew", "run"}, "", []string{"gradle/wrapper/gradle-wrapper.jar"}},
		{"tasks", []string{"gulp"}, "", []string{"gulpfile.js", "package.json"}},
		{"tasks in Python", []string{"inv", "x"}, "sub", []string{"sub/tasks.py"}},
		{"a machine", []string{"vagrant", "up"}, "", []string{"Vagrantfile"}},
		{"a build", []string{"bazel", "run", "//:x"}, "", []string{"BUILD"}},
		{"nothing of the project", []string{"uname", "-y", "x"}, "tools", nil},
		{"a runner below its file", []string{"npx", "-y", "x"}, "tools", []string{"package.json"}},
		{"a script", []string{"./tools/a.sh", "--json"}, "", []string{"tools/a.sh"}},
		{"an interpreter's script", []string{"python3", "tools/b.py"}, "", []string{"tools/b.py"}},
		{"relative to where it runs", []string{"sh", "a.sh"}, "tools", []string{"tools/a.sh"}},
		{"absolute", []string{filepath.Join(root, "tools/a.sh")}, "srv", []string{"tools/a.sh"}},
		{"in a shell line", []string{"sh", "-c", "cd . && ./tools/a.sh|tools/b.py"}, "", []string{"package.json", "tools/a.sh", "tools/b.py"}},
		{"in an option", []string{"node", "--require=tools/a.sh"}, "", []string{"tools/a.sh"}},
		{"a folder's entry", []string{"node", "./srv"}, "", []string{"srv/index.js"}},
		{"a runner's file", []string{"npm", "run", "discover"}, "", []string{"package.json"}},
		{"a runner with a path", []string{"/usr/bin/make", "x"}, "", []string{"Makefile"}},
		{"a link that leads out", []string{"./link.sh"}, "", []string{"link.sh", "link.sh// -> " + outside}},
		{"a file in a folder that leads out", []string{"linked/outside.sh"}, "", []string{outside, "linked// -> " + above}},
		{"a link that leads in", []string{"../in.sh"}, "", []string{"tools/a.sh"}},
		{"a link that leads out, by a folder that leads in", []string{"../in/link.sh"}, "", []string{"link.sh", "link.sh// -> " + outside}},
		{"outside", []string{"../outside.sh", outside}, "", nil},
		{"nothing there", []string{"./missing.sh", "a\x00b", "", "-"}, "", nil},
		{"an empty word below a file named like the folder", []string{"uname", ""}, "tools", nil},
		{"data that has a member main", []string{"node", "./data"}, "", []string{"data/index.json"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := append(append([]string{}, plugins...), test.want...)
			got := names(t, root, Program{Argv: test.argv, Dir: filepath.Join(root, test.dir)})
			if diff := cmp.Diff(want, got, cmp.Transformer("set", set)); diff != "" {
				t.Errorf("covered (-want +got):\n%s", diff)
			}
		})
	}
}

// set converts a list to a set, to compare lists regardless of order.
func set(in []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range in {
		out[s] = true
	}
	return out
}

func TestPluginLinkLoop(t *testing.T) {
	root := tempDir(t)
	plugins := filepath.Join(root, ".toolreg", "plugins")
	write(t, filepath.Join(plugins, "one", "plugin.yaml"), "id: one")
	for link, target := range map[string]string{"one/self": "..", "gone": "nowhere", "two": "../../elsewhere", "alias.yaml": "../../elsewhere/plugin.yaml"} {
		if err := os.Symlink(target, filepath.Join(plugins, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "elsewhere", "plugin.yaml"), "id: two")
	want := []string{".toolreg/plugins/alias.yaml", ".toolreg/plugins/alias.yaml// -> ../../elsewhere/plugin.yaml", ".toolreg/plugins/one/plugin.yaml", ".toolreg/plugins/one/self// -> ..", ".toolreg/plugins/two// -> ../../elsewhere", "elsewhere/plugin.yaml"}
	if diff := cmp.Diff(want, names(t, root)); diff != "" {
		t.Errorf("covered (-want +got):\n%s", diff)
	}
}

// Links that lead to each other lead nowhere, but each counts.
func TestLinkRingIsCovered(t *testing.T) {
	root := tempDir(t)
	link(t, "b", filepath.Join(root, "a"))
	link(t, "a", filepath.Join(root, "b"))
	files, err := Cover(root, []File{{Name: "a"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff([]string{"a", "a// -> b", "b// -> a"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCoverLimitsBytes(t *testing.T) {
	root := tempDir(t)
	path := write(t, filepath.Join(root, "big"), "")
	if err := os.Truncate(path, maxBytes+1); err != nil { // sparse
		t.Fatal(err)
	}
	_, err := Cover(root, nil, []Program{{Argv: []string{"./big"}, Dir: root}}, nil)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}

	for name, size := range map[string]int64{"half": 64 << 20, "rest": 64<<20 + 1} {
		if err := os.Truncate(write(t, filepath.Join(root, name), ""), size); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Cover(root, nil, []Program{{Argv: []string{"./half", "./rest"}, Dir: root}}, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("of several files: error %v, want ErrTooLarge", err)
	}
}

func TestCoverLimitsFiles(t *testing.T) {
	root := tempDir(t)
	c := newCover(root)
	for i := range 20_000 - 1 {
		c.files[strconv.Itoa(i)] = File{}
	}
	if err := c.add(write(t, filepath.Join(root, "the last"), "")); err != nil {
		t.Errorf("20,000 files: %v", err)
	}
	if err := c.add(write(t, filepath.Join(root, "one more"), "")); err == nil {
		t.Error("more files than a grant may have")
	}
}

func TestGrantAppliesToExactBytes(t *testing.T) {
	s, root := newStore(t), tempDir(t)
	file := func(name, text string) File {
		f, err := Read(write(t, filepath.Join(root, name), text), 100)
		if err != nil {
			t.Fatal(err)
		}
		f.Name = name
		return f
	}
	a, b := file("a.yaml", "one\ntwo\n"), file("b.sh", "x\n")
	if st, err := s.Check(root, []File{a, b}); err != nil || st.Trusted || !st.Granted.IsZero() {
		t.Fatalf("before any grant: %+v, %v", st, err)
	}
	if st, err := s.Check(root, nil); err != nil || st.Trusted {
		t.Errorf("no files, before any grant: %+v, %v", st, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	if _, err := s.Grant(t.Context(), root, []File{a, b}, at); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Check(root, []File{b, a}); err != nil || !st.Trusted || !st.Granted.Equal(at.Truncate(time.Second)) {
		t.Fatalf("after the grant: %+v, %v", st, err)
	}
	st, err := s.Check(root, []File{file("a.yaml", "one\n2\n"), file("c.sh", "new\n")})
	if err != nil || st.Trusted {
		t.Fatalf("after a change: %+v, %v", st, err)
	}
	want := []Change{
		{Changed, "a.yaml", "--- a.yaml (granted)\n+++ a.yaml\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{Removed, "b.sh", ""},
		{Added, "c.sh", "--- /dev/null\n+++ c.sh\n@@ -0,0 +1 @@\n+new\n"},
	}
	if diff := cmp.Diff(want, st.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if st, _ := s.Check(filepath.Join(root, ".."), []File{a, b}); st.Trusted {
		t.Error("the grant applies to another project")
	}
}

func TestGrantCoversFewerFiles(t *testing.T) {
	s, root := newStore(t), tempDir(t)
	file := func(name, text string) File {
		f, err := Read(write(t, filepath.Join(root, name), text), 100)
		if err != nil {
			t.Fatal(err)
		}
		f.Name = name
		return f
	}
	own, other := file("own.yaml", "one\n"), file("other.json", "{}")
	if _, err := s.Grant(t.Context(), root, []File{own, other}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want bool) {
		t.Helper()
		if st, err := s.Check(root, []File{own}); err != nil || st.Trusted != want {
			t.Errorf("%s: trusted %v, %v; want %v", when, st.Trusted, err, want)
		}
	}
	check("the other file is unchanged", true)
	write(t, filepath.Join(root, "other.json"), "[]")
	check("the other file has changed", false)
	write(t, filepath.Join(root, "other.json"), "{}")
	check("the other file is restored", true)
	moved := write(t, filepath.Join(root, "moved.json"), "{}")
	if err := os.Remove(filepath.Join(root, "other.json")); err != nil {
		t.Fatal(err)
	}
	link(t, moved, filepath.Join(root, "other.json"))
	check("the other file is a link to the same bytes", false)
	if err := os.Remove(filepath.Join(root, "other.json")); err != nil {
		t.Fatal(err)
	}
	check("the other file is gone", false)
}

func TestHashIncludesNamesAndContents(t *testing.T) {
	base := []File{{Name: "a", Path: "/p/a", Sum: "1"}, {Name: "b", Path: "/p/b", Sum: "2"}}
	for _, other := range [][]File{
		{{Name: "a", Path: "/p/a", Sum: "2"}, {Name: "b", Path: "/p/b", Sum: "1"}},
		{{Name: "a2", Path: "/p/a", Sum: "1"}, {Name: "b", Path: "/p/b", Sum: "2"}},
		{{Name: "a", Path: "/p/a1", Sum: ""}, {Name: "b", Path: "/p/b", Sum: "2"}},
		base[:1], nil,
	} {
		if Hash(base) == Hash(other) {
			t.Errorf("%v has the hash of %v", other, base)
		}
	}
}

func TestRevoke(t *testing.T) {
	s, root := newStore(t), tempDir(t)
	files := []File{{Name: "a", Path: "/a", Sum: "1"}}
	if had, err := s.Revoke(t.Context(), root); had || err != nil {
		t.Fatalf("nothing to revoke: %v, %v", had, err)
	}
	if _, err := s.Grant(t.Context(), root, files, time.Now()); err != nil {
		t.Fatal(err)
	}
	if had, err := s.Revoke(t.Context(), root); !had || err != nil {
		t.Fatalf("revoking: %v, %v", had, err)
	}
	if st, err := s.Check(root, files); err != nil || st.Trusted || !st.Granted.IsZero() {
		t.Errorf("after revoking: %+v, %v", st, err)
	}
}

func TestDamagedGrantsTrustNothing(t *testing.T) {
	files := []File{{Name: "a", Path: "/a", Sum: "1"}}
	for name, content := range map[string]string{"empty": "", "cut": `{"version":1,"ro`, "no object": "7", "no members": "{}",
		"of another project": `{"version":1,"root":"/elsewhere","hash":"` + Hash(files) + `"}`,
		"no version":         `{"root":"<root>","hash":"` + Hash(files) + `"}`,
		"of other types":     `{"version":1,"root":"<root>","hash":"` + Hash(files) + `","files":7}`} {
		t.Run(name, func(t *testing.T) {
			s, root := newStore(t), tempDir(t)
			if _, err := s.Grant(t.Context(), root, files, time.Now()); err != nil {
				t.Fatal(err)
			}
			content := strings.Replace(content, "<root>", root, 1)
			write(t, filepath.Join(s.dir.Path, fileName(root)), content)
			if st, err := s.Check(root, files); st.Trusted || !errors.Is(err, ErrDamaged) {
				t.Fatalf("damaged: %+v, %v", st, err)
			}
			aside, err := s.Grant(t.Context(), root, files, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if kept, err := os.ReadFile(aside); err != nil || string(kept) != content {
				t.Errorf("the damaged file is gone: %q, %v", kept, err)
			}
			if st, err := s.Check(root, files); err != nil || !st.Trusted {
				t.Errorf("after a new grant: %+v, %v", st, err)
			}
		})
	}
}

func TestGrantsOfANewerVersionAreKept(t *testing.T) {
	s, root := newStore(t), tempDir(t)
	files := []File{{Name: "a", Path: "/a", Sum: "1"}}
	if _, err := s.Grant(t.Context(), root, files, time.Now()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir.Path, fileName(root))
	content := `{"version":3,"root":"` + root + `","hash":"` + Hash(files) + `"}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Check(root, files); st.Trusted || err == nil || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("checking: %+v, %v", st, err)
	}
	if _, err := s.Grant(t.Context(), root, files, time.Now()); err == nil {
		t.Error("a newer version's grant was overwritten")
	}
	if kept, _ := os.ReadFile(path); string(kept) != content {
		t.Errorf("content %q, want it untouched", kept)
	}
}

// A change has a diff only if the file is a text that is not too long and was
// stored with the grant.
func TestDiffsOfTextFiles(t *testing.T) {
	old := []granted{{Name: "f", Path: "/f", Sum: "1", Text: "one\n"}}
	for name, tt := range map[string]struct {
		old  []granted
		data []byte
		want string
	}{
		"a text":             {old, []byte("two\n"), "--- f (granted)\n+++ f\n@@ -1 +1 @@\n-one\n+two\n"},
		"binary":             {old, []byte("two\x00"), ""},
		"binary at once":     {old, []byte("\x00two"), ""},
		"too long":           {old, nil, ""},
		"a text of a binary": {[]granted{{Name: "f", Path: "/f", Sum: "1"}}, []byte("two\n"), ""},
		"a new binary":       {nil, []byte("two\x00"), ""},
	} {
		got := changesBetween(tt.old, []File{{Name: "f", Path: "/f", Sum: "2", Data: tt.data}})
		if len(got) != 1 || got[0].Name != "f" || got[0].Diff != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A grant stores texts to show changes, up to a limit.
func TestGrantLimitsStoredTexts(t *testing.T) {
	text := []byte(strings.Repeat("x", 64<<10))
	files := []File{{Name: "binary", Data: []byte("x\x00")}}
	for i := range 9 {
		files = append(files, File{Name: strconv.Itoa(i), Data: text})
	}
	var kept []string
	for _, f := range newGrant("/p", files, time.Now()).Files {
		if f.Text != "" {
			kept = append(kept, f.Name)
		}
	}
	if got := strings.Join(kept, ""); got != "01234567" {
		t.Errorf("kept: %s", got)
	}
}

// A link that a grant covers must lead where it led, also if the check is not given it.
func TestGrantHoldsForUnchangedLink(t *testing.T) {
	s, root := newStore(t), tempDir(t)
	write(t, filepath.Join(root, "q/x"), "")
	write(t, filepath.Join(root, "r/x"), "")
	link(t, "q", filepath.Join(root, "p"))
	files, err := Cover(root, nil, nil, []string{filepath.Join(root, "p")})
	if err != nil || len(files) != 2 || files[0].Link != "q" {
		t.Fatal(files, err)
	}
	if _, err := s.Grant(t.Context(), root, files, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Check(root, nil); err != nil || !st.Trusted {
		t.Errorf("unchanged: %+v, %v", st, err)
	}
	if err := os.Remove(filepath.Join(root, "p")); err != nil {
		t.Fatal(err)
	}
	link(t, "r", filepath.Join(root, "p"))
	if st, err := s.Check(root, nil); err != nil || st.Trusted {
		t.Errorf("led elsewhere: %+v, %v", st, err)
	}
}

// A grant of version 1 had no programs on PATH, so that these are new to it, but no change.
func TestProgramsOnPathAreNoChangeOfOldGrant(t *testing.T) {
	for version, want := range map[string]int{"1": 0, "2": 1} {
		s, root := newStore(t), tempDir(t)
		if _, err := s.Grant(t.Context(), root, nil, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(s.dir.Path, fileName(root))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.Replace(string(data), `"version":2`, `"version":`+version, 1))
		st, err := s.Check(root, []File{{Name: "run" + mark + "on PATH", Path: "/bin/run", Outside: true}})
		if err != nil || !st.Trusted || len(st.Outside) != want {
			t.Errorf("version %s: %+v, %v", version, st, err)
		}
	}
}

// A document is covered with the files of its folder to which it refers, in either notation.
func TestCoverDocument(t *testing.T) {
	root := tempDir(t)
	for name, content := range map[string]string{
		"d/api.yaml":      "a: {$ref: 'one.yaml#/x'}\nb: {\"$ref\": \"./deep/two.json\"}\nc:\n  $ref: plain name.yaml # note\nd: {$ref: ../outside.yaml}\ne: {$ref: 'https://a.example/x.yaml'}\nf: {$ref: '#/x'}\ng: {$ref: gone.yaml}\nh: {$ref: deep}\n",
		"d/deep/two.json": `{"a": {"$ref": "..\/back.json"}, "b": {"$ref":"../api.yaml#/a"}, "c": {"$ref":"../../outside.yaml"}}`,
		"d/back.json":     "{}", "d/one.yaml": "", "d/plain name.yaml": "", "outside.yaml": "", "d/unnamed.yaml": "", "gone.yaml": "",
	} {
		write(t, filepath.Join(root, name), content)
	}
	files, err := Cover(root, nil, []Program{{Document: filepath.Join(root, "d", "api.yaml")}, {Document: filepath.Join(root, "absent.yaml")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name)
	}
	if want := []string{"d/api.yaml", "d/back.json", "d/deep/two.json", "d/one.yaml", "d/plain name.yaml"}; !slices.Equal(got, want) {
		t.Errorf("covers %q, want %q", got, want)
	}
}
