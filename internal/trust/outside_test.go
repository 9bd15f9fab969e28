package trust

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// checkout makes a project that runs scripts, in a folder of its own.
func checkout(t *testing.T) string {
	t.Helper()
	root := filepath.Join(tempDir(t), "p")
	write(t, filepath.Join(root, "tools/a.sh"), "a")
	write(t, filepath.Join(root, "lib/b.sh"), "b")
	write(t, filepath.Join(root, "plugins/x/main.py"), "x")
	link(t, "../lib/b.sh", filepath.Join(root, "tools/b.sh"))
	link(t, "/nowhere/c.sh", filepath.Join(root, "tools/c.sh"))
	return root
}

// covered returns what a grant for a checkout covers, and the folder of PATH.
func covered(t *testing.T, root string) []File {
	t.Helper()
	bin := filepath.Join(filepath.Dir(root), "bin")
	files, err := Cover(root, nil, []Program{{Argv: []string{"runit", "$TOOLREG_PROJECT_ROOT/tools/a.sh", "tools/b.sh", filepath.Join(root, "plugins/x/main.py")}, Dir: root, Inherited: []string{"PATH=" + bin}}},
		[]string{filepath.Join(root, "plugins")})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The hash of a project depends neither on its folder nor on how it is reached, nor on
// modes, Python's cache and programs outside.
func TestEveryCheckoutHasTheSameHash(t *testing.T) {
	first, second := checkout(t), checkout(t)
	want := Hash(covered(t, first))
	for what, change := range map[string]func(){
		"another folder": func() {},
		"modes":          func() { _ = os.Chmod(filepath.Join(second, "tools/a.sh"), 0o755) },
		"Python's cache": func() {
			write(t, filepath.Join(second, "plugins/x/__pycache__/main.pyc"), "\x00\x00\x00\x00\x00\x00\x00\x00")
		},
		"a program": func() {
			if err := os.Chmod(write(t, filepath.Join(filepath.Dir(second), "bin/runit"), ""), 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		change()
		if got := Hash(covered(t, second)); got != want {
			t.Errorf("%s changes the hash: %v", what, covered(t, second))
		}
	}
	linked := filepath.Join(tempDir(t), "linked")
	link(t, second, linked)
	if got := Hash(covered(t, linked)); got != want {
		t.Errorf("the hash depends on the path to the project: %v", covered(t, linked))
	}
}

// A link in the project counts by its text, even if what it leads to is the same.
func TestLinksCount(t *testing.T) {
	for name, other := range map[string]string{"tools/b.sh": "../lib/copy.sh", "plugins": "elsewhere"} {
		root := checkout(t)
		write(t, filepath.Join(root, "lib/copy.sh"), "b")
		write(t, filepath.Join(root, "elsewhere/x/main.py"), "x")
		was := Hash(covered(t, root))
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
		link(t, other, filepath.Join(root, name))
		if Hash(covered(t, root)) == was {
			t.Errorf("%s may lead elsewhere", name)
		}
	}
}

// A folder of plugins outside is not part of the hash, but that a link leads there is.
func TestLinksOfFoldersCount(t *testing.T) {
	root := checkout(t)
	var hashes []string
	for _, folder := range []string{"one", "two"} {
		outside := filepath.Dir(write(t, filepath.Join(filepath.Dir(root), folder, "plugin.yaml"), "id: x"))
		if err := os.RemoveAll(filepath.Join(root, "plugins")); err != nil {
			t.Fatal(err)
		}
		link(t, outside, filepath.Join(root, "plugins"))
		files, err := Cover(root, nil, nil, []string{filepath.Join(root, "plugins")})
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		hashes = append(hashes, Hash(files))
	}
	if hashes[0] == hashes[1] {
		t.Error("the link may lead elsewhere")
	}
}

// A program on PATH is reported when it is another one, and the grant still applies; it
// does not when the target of a link has changed.
func TestChangesOutsideAreReported(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs need an extension")
	}
	s, root := newStore(t), checkout(t)
	above := filepath.Dir(root)
	program := filepath.Join(above, "bin/runit")
	write(t, program, "one")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	target := write(t, filepath.Join(above, "target.sh"), "one")
	link(t, target, filepath.Join(root, "plugins/x/out.sh"))
	if _, err := s.Grant(t.Context(), root, covered(t, root), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want ...Change) {
		t.Helper()
		st, err := s.Check(root, covered(t, root))
		for i := range st.Outside {
			st.Outside[i].Diff = ""
		}
		if diff := cmp.Diff(want, st.Outside); err != nil || !st.Trusted || diff != "" {
			t.Errorf("%s: %+v, %v %s", when, st, err, diff)
		}
	}
	check("as granted")
	write(t, program, "an update")
	check("a program with other content at the same place")
	write(t, target, "two")
	if st, err := s.Check(root, covered(t, root)); err != nil || st.Trusted || len(st.Changes) != 1 || st.Changes[0].Name != "plugins/x/out.sh" {
		t.Errorf("the target of a link with other content: %+v, %v", st, err)
	}
	write(t, target, "one")
	if err := os.Rename(filepath.Join(above, "bin"), filepath.Join(above, "sbin")); err != nil {
		t.Fatal(err)
	}
	check("a program that is gone")
	second := filepath.Join(above, "bin2")
	if err := os.Rename(filepath.Join(above, "sbin"), second); err != nil {
		t.Fatal(err)
	}
	files := covered(t, root)
	moved := File{Name: "runit// on PATH", Path: filepath.Join(second, "runit"), Outside: true}
	st, err := s.Check(root, append(slices.Clone(files), moved))
	if diff := cmp.Diff([]Change{{Kind: Changed, Name: "runit on PATH", Diff: "--- runit on PATH (granted)\n+++ runit on PATH\n@@ -1 +1 @@\n-" + program + "\n+" + moved.Path + "\n"}}, st.Outside); err != nil || !st.Trusted || diff != "" {
		t.Errorf("a program at another place: %+v, %v %s", st, err, diff)
	}
	write(t, filepath.Join(root, "tools/a.sh"), "changed")
	if st, err := s.Check(root, covered(t, root)); err != nil || st.Trusted {
		t.Errorf("a change inside: %+v, %v", st, err)
	}
}

// No name of a file in the project is that of a link or of a program on PATH, which would
// leave the file out of the hash.
func TestFilesCannotPassForWhatIsOutside(t *testing.T) {
	s, root := newStore(t), checkout(t)
	program := write(t, filepath.Join(filepath.Dir(root), "bin/runit"), "")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runit on PATH", "runit/ on PATH", "tools/b.sh -> ../lib/b.sh"} {
		file := write(t, filepath.Join(root, name), "before")
		cover := func() []File {
			files, err := Cover(root, nil, []Program{{Argv: []string{"runit", "tools/b.sh", file}, Dir: root, Inherited: []string{"PATH=" + filepath.Dir(program)}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return files
		}
		if _, err := s.Grant(t.Context(), root, cover(), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		write(t, file, "after")
		if st, err := s.Check(root, cover()); err != nil || st.Trusted {
			t.Errorf("%q changed unnoticed: %+v, %v", name, st, err)
		}
	}
}
