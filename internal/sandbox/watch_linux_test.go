//go:build amd64 || arm64

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// Names are collected with their folders, however a program names these.
func TestUsedNamesAreCollected(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	writeFile(t, p.workspace+"/there", "")
	writeFile(t, p.workspace+"/removed", "")
	writeFile(t, p.workspace+"/sub/kept", "")
	if err := os.Symlink("sub", p.workspace+"/link"); err != nil {
		t.Fatal(err)
	}
	profile := p.profile()
	profile.Created = &sandbox.Names{}
	got := p.shell(t, profile, `
		set -e
		echo x >written; mkdir -p made/deep/; ln -s nowhere linked; ln written hard; mv written moved; mkfifo pipe; cp moved copied
		cat there made/../copied >/dev/null; ls; rm pipe removed; chmod 700 there; echo x >sub/relative; echo x >"$PWD/sub/absolute"; echo x >link/led
		cd sub; echo x >../up
		python3 -c '
import os, threading
t = threading.Thread(target=lambda: os.mkdir("by-thread")); t.start(); t.join()
folder = os.open("..", os.O_RDONLY); os.mkdir("by-descriptor", dir_fd=folder)
os.open("kept", os.O_WRONLY)
file = os.open("../hard", os.O_RDONLY); os.open(f"/proc/self/fd/{file}", os.O_WRONLY)
os.open("../there", os.O_RDONLY)'`)
	id := func(name string) string {
		info, err := os.Stat(filepath.Join(p.workspace, name))
		if err != nil {
			t.Fatal(err, got)
		}
		st := info.Sys().(*syscall.Stat_t)
		return fmt.Sprint(st.Dev, ":", st.Ino)
	}
	top, sub, made := id("."), id("sub"), id("made")
	for name, folders := range map[string][]string{
		"written": {top}, "made": {top}, "deep": {made}, "linked": {top}, "hard": {top}, "moved": {top}, "pipe": {top}, "copied": {top}, "up": {top}, "by-descriptor": {top},
		"relative": {sub}, "absolute": {sub}, "by-thread": {sub}, "kept": {sub}, "led": {top, sub, made}, // a link can change
		sandbox.Renamed + "written": {top}, sandbox.Renamed + "moved": {top}, sandbox.Renamed + "hard": nil,
		"there": nil, "removed": nil, "nowhere": nil, "": nil, "..": nil,
	} {
		for _, folder := range []string{top, sub, made} {
			if want := slices.Contains(folders, folder); profile.Created.Has(folder, name) != want {
				t.Errorf("%q in %s: it should be %v\n%s", name, folder, want, got)
			}
		}
	}
}
