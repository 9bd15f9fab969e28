package git_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/git"
)

// Git itself writes the indexes that are read.
func TestTracks(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		top := t.TempDir()
		run := func(argv ...string) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", top, "-c", "index.version=" + version}, argv...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", argv, err, out)
			}
		}
		run("init", "-q")
		for _, name := range []string{"a", "web/package.json", "web/src/a.js", "web2/a", "z/long/" + string(bytes.Repeat([]byte("x"), 200)), "other/a", "later/a"} {
			path := filepath.Join(top, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/", filepath.Join(top, "other", "link")); err != nil {
			t.Fatal(err)
		}
		run("add", "a", "web", "web2", "z", "other/link")
		if version == "3" {
			run("add", "-N", "later") // needs version 3
		}
		for folder, want := range map[string]bool{"web": true, "web/src": true, "web2": true, "z/long": true, "z": true, "we": false, "a": false, "other": false, "later": version == "3", "none": false} {
			if got := git.Tracks(top, folder); got != want {
				t.Errorf("version %s: %s: %t, want %t", version, folder, got, want)
			}
		}
		index := filepath.Join(top, ".git", "index")
		data, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		if v := data[7]; string('0'+v) != version {
			t.Errorf("git wrote version %d, not %s", v, version)
		}
		for n := range len(data) / 2 { // damaged, it is not read beyond the damage
			if err := os.WriteFile(index, data[:n], 0o666); err != nil {
				t.Fatal(err)
			}
			git.Tracks(top, "none")
		}
	}
	if git.Tracks(t.TempDir(), "a") {
		t.Error("a folder without a repository tracks a file")
	}
}

// An index with longer hashes is not taken for one with other names.
func TestTracksKnowsItsFormat(t *testing.T) {
	top := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", `cd "$0" && git init -q --object-format=sha256 && mkdir web && touch web/a && git add web`, top).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if git.Tracks(top, "web") {
		t.Error("names were found")
	}
}

// Names of any length take no more memory than a name may have.
func TestTracksLimitsNames(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	entry := func(name string) string {
		return strings.Repeat("\x00", 24) + "\x00\x00\x81\xa4" + strings.Repeat("\x00", 32) + "\x0f\xff" + "\x00" + name + "\x00" // cuts nothing
	}
	for _, half := range []int{5 << 10, 40 << 10} {
		first := strings.Repeat("a", half)
		index := "DIRC\x00\x00\x00\x04\x00\x00\x00\x03" + entry(first) + entry(first) + entry("/x")
		if err := os.WriteFile(filepath.Join(top, ".git", "index"), []byte(index), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, want := git.Tracks(top, first+first), half < 32<<10; got != want {
			t.Errorf("twice %d bytes: %t", half, got)
		}
	}
}
