//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// tree creates files and folders, whose names end with a slash, and links "NAME -> TARGET" in a
// new folder, and returns its path.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, target, isLink := strings.Cut(name, " -> ")
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case isLink:
			err = errors.Join(err, os.Symlink(strings.ReplaceAll(target, "DIR", dir), at))
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(at, 0o755))
		default:
			err = errors.Join(err, os.WriteFile(at, nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// planned returns the steps and rules for a profile, without those of an empty one. In these
// texts, DIR stands for the folder.
func planned(t *testing.T, dir string, p Profile) (steps, rules []string) {
	t.Helper()
	ops, all, err := layOut(p)
	if err != nil {
		t.Fatal(err)
	}
	usual, usualRules, err := layOut(Profile{})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if slices.Contains(usual, op) {
			continue
		}
		text := string(op.Kind)
		for _, path := range []string{op.A, op.B, op.C} {
			if path != "" {
				text += " " + strings.ReplaceAll(strings.ReplaceAll(path, "root"+dir, "root/DIR"), dir, "DIR")
			}
		}
		if op.Kind == launcher.MakeDir && strings.TrimPrefix(text, "d ") != "root/DIR" && strings.HasPrefix("root"+dir, op.A) {
			continue // above the folder
		}
		if op.Flags != 0 {
			text += fmt.Sprintf(" %o", op.Flags)
		}
		if op.Skip {
			text += " skip"
		}
		steps = append(steps, text)
	}
	for _, rule := range all {
		if slices.Contains(usualRules, rule) {
			continue
		}
		access, ok := map[int]string{launcher.Read: "read", launcher.Write: "write"}[rule.Access]
		if !ok {
			access = fmt.Sprint(rule.Access)
		}
		if rule.IsFile {
			access += " file"
		}
		rules = append(rules, access+" "+strings.ReplaceAll(rule.Path, dir, "DIR"))
	}
	return steps, rules
}

// The parts of a profile become mounts and rules: nothing that is hidden is shown by what is around
// it or was not named, and nothing that is guarded can be written by what is around it.
func TestLayout(t *testing.T) {
	dir := tree(t, "bin/tool", "bin/more/", "bin-2/", "work/.git/config", "work/.git/hooks/", "work/.env", "home/secret", "home/known", "cache/", "file",
		"link -> bin", "work/link -> ../bin", "home/link -> DIR/bin", "far -> link/more/../more", "work/dangling -> ../none")
	in := func(names ...string) []string {
		for i := range names {
			if !filepath.IsAbs(names[i]) {
				names[i] = dir + "/" + names[i]
			}
		}
		return names
	}
	for _, c := range []struct {
		name         string
		profile      Profile
		steps, rules []string
	}{
		{"a folder", Profile{Read: in("bin", "bin/more", "bin", "missing", "file/x")},
			[]string{"d root/DIR 755", "d root/DIR/bin 755", "b DIR/bin DIR/bin 7 skip"},
			[]string{"read DIR/bin"}},
		{"two folders", Profile{Read: in("bin", "bin-2"), Hide: in("bin/more")},
			[]string{"d root/DIR 755", "d root/DIR/bin-2 755", "d root/DIR/bin 755", "d hidden 755", "d hidden/1 755", "b DIR/bin-2 DIR/bin-2 7 skip", "b DIR/bin DIR/bin 7 skip", "s hidden/1 DIR/bin/more 7"},
			[]string{"read DIR/bin-2", "read DIR/bin"}},
		{"a file", Profile{Read: in("file")},
			[]string{"d root/DIR 755", "f root/DIR/file 644", "b DIR/file DIR/file 7 skip"},
			[]string{"read file DIR/file"}},
		{"what can be written", Profile{Write: in("work", "work/.git"), Read: in("work/.git"), Scratch: in("work/.git"), Hide: in("work/.env")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "d hidden 755", "f hidden/1", "b DIR/work DIR/work 6", "s hidden/1 DIR/work/.env 7"},
			[]string{"write DIR/work"}},
		{"what is guarded", Profile{Write: in("work"), ReadOnly: in("work/.git/config", "work/missing"), Fixed: in("work/.git")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "b DIR/work DIR/work 6", "b DIR/work/.git DIR/work/.git 6", "b DIR/work/.git/config DIR/work/.git/config 7"},
			[]string{"write DIR/work", "write DIR/work/.git", "read file DIR/work/.git/config"}},
		{"what is brokered", Profile{Write: in("work"), Brokered: []Brokered{{Path: dir + "/work/.git", Open: []string{"hooks"}}}, ReadOnly: in("work/.git/config"), Fixed: in("work/.git"), Scratch: in("work/.git/none")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "b DIR/work DIR/work 6", "b DIR/work/.git DIR/work/.git 7", "b DIR/work/.git/hooks DIR/work/.git/hooks 6"},
			[]string{"write DIR/work", "read DIR/work/.git", "write DIR/work/.git/hooks"}},
		{"what is brokered elsewhere", Profile{Write: in("work/.git"), Brokered: []Brokered{{Path: dir + "/work/.git"}}},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "d root/DIR/work/.git 755", "b DIR/work/.git DIR/work/.git 7"},
			[]string{"read DIR/work/.git"}},
		{"what is brokered in what can be read", Profile{Read: in("work"), Brokered: []Brokered{{Path: dir + "/work/.git", Open: []string{"hooks"}}}},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "b DIR/work DIR/work 7 skip", "b DIR/work/.git/hooks DIR/work/.git/hooks 6"},
			[]string{"read DIR/work", "write DIR/work/.git/hooks"}},
		{"what is hidden", Profile{Hide: in("home", "home/known", "missing"), Read: in("home/known"), Opened: in("home/secret")},
			[]string{"d root/DIR 755", "d root/DIR/home 755", "d hidden 755", "d hidden/1 755", "f hidden/1/secret 644", "s hidden/1 DIR/home 7", "b DIR/home/secret DIR/home/secret 7 skip"},
			[]string{"read file DIR/home/secret"}},
		{"what was named", Profile{Hide: in("file", "bin", "home"), Read: in("file"), Opened: in("bin"), Write: in("home")},
			[]string{"d root/DIR 755", "d root/DIR/bin 755", "f root/DIR/file 644", "d hidden 755", "f hidden/1", "d root/DIR/home 755", "b DIR/bin DIR/bin 7 skip", "s hidden/1 DIR/file 7", "b DIR/home DIR/home 6"},
			[]string{"read DIR/bin", "write DIR/home"}},
		{"guards of what cannot be written", Profile{Read: in("work"), ReadOnly: in("work/.git/config"), Fixed: in("work/.git")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "b DIR/work DIR/work 7 skip"},
			[]string{"read DIR/work"}},
		{"what can be written in something else", Profile{Read: in("work"), Write: in("work/.git"), ReadOnly: in("work/.git/hooks")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "b DIR/work DIR/work 7 skip", "b DIR/work/.git DIR/work/.git 6", "b DIR/work/.git/hooks DIR/work/.git/hooks 7"},
			[]string{"read DIR/work", "write DIR/work/.git", "read DIR/work/.git/hooks"}},
		{"scratch", Profile{Scratch: in("cache", "file", "none/below/cache"), Read: in("cache")},
			[]string{"d root/DIR 755", "d root/DIR/cache 755", "d scratch 755", "d scratch/1 755", "d scratch/1/upper 755", "d scratch/1/work 755", "f root/DIR/file 644", "d root/DIR/none 755", "d root/DIR/none/below 755", "d root/DIR/none/below/cache 755", "o DIR/cache DIR/cache scratch/1 6", "b DIR/file DIR/file 7 skip", "s root/DIR/none/below/cache DIR/none/below/cache 6"},
			[]string{"write DIR/cache", "read file DIR/file", "write DIR/none/below/cache"}},
		{"scratch that is missing elsewhere", Profile{Read: in("bin"), Hide: in("home"), Scratch: in("bin/none", "home/none", "work/dangling/none")},
			[]string{"d root/DIR 755", "d root/DIR/bin 755", "d root/DIR/home 755", "d hidden 755", "d hidden/1 755", "d hidden/1/none 755", "d root/DIR/work 755", "d root/DIR/work/dangling 755", "d root/DIR/work/dangling/none 755", "b DIR/bin DIR/bin 7 skip", "s hidden/1 DIR/home 7", "s hidden/1/none DIR/home/none 6", "s root/DIR/work/dangling/none DIR/work/dangling/none 6"},
			[]string{"read DIR/bin", "write DIR/home/none", "write DIR/work/dangling/none"}},
		{"scratch that can be written", Profile{Scratch: in("cache", "work/none", "work/dangling/none"), Write: in("cache", "work")},
			[]string{"d root/DIR 755", "d root/DIR/cache 755", "d root/DIR/work 755", "b DIR/cache DIR/cache 6", "b DIR/work DIR/work 6"},
			[]string{"write DIR/cache", "write DIR/work"}},
		{"in scratch", Profile{Scratch: in("work"), Read: in("work/.git"), Write: in("work/.git/hooks"), ReadOnly: in("work/.env"), Hide: in("work/.git/config")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "d scratch 755", "d scratch/1 755", "d scratch/1/upper 755", "d scratch/1/work 755", "d hidden 755", "f hidden/2", "o DIR/work DIR/work scratch/1 6", "s hidden/2 DIR/work/.git/config 7", "b DIR/work/.git/hooks DIR/work/.git/hooks 6"},
			[]string{"write DIR/work", "write DIR/work/.git/hooks"}},
		{"links", Profile{Read: in("link", "far"), Hide: in("work/link")},
			[]string{"d root/DIR 755", "d root/DIR/bin 755", "d hidden 755", "d hidden/1 755", "d hidden/1/more 755", "l DIR/link/more/../more root/DIR/far", "l DIR/bin root/DIR/link", "s hidden/1 DIR/bin 7", "b DIR/bin/more DIR/bin/more 7 skip"},
			[]string{"read DIR/bin/more"}},
		{"links in a folder that is shown", Profile{Read: in("home", "home/link", "link")},
			[]string{"d root/DIR 755", "d root/DIR/bin 755", "d root/DIR/home 755", "l DIR/bin root/DIR/link", "b DIR/bin DIR/bin 7 skip", "b DIR/home DIR/home 7 skip"},
			[]string{"read DIR/bin", "read DIR/home"}},
		{"links that the program can change", Profile{Write: in("work"), Read: in("work/link"), Scratch: in("work/link"), Fixed: in("work/link"), ReadOnly: in("work/link")},
			[]string{"d root/DIR 755", "d root/DIR/work 755", "b DIR/work DIR/work 6"},
			[]string{"write DIR/work"}},
		{"the system's settings", Profile{Read: in("/etc/passwd", "/etc/ssl"), Hide: in("/etc/hosts")},
			[]string{"d root/etc 755", "d hidden 755", "f hidden/1", "b /etc /etc 7 skip", "s hidden/1 /etc/hosts 7"},
			[]string{"read file /etc/passwd", "read /etc/ssl"}},
		{"the system's folders for temporary files", Profile{Read: in("/tmp"), Write: in("/var/tmp")},
			[]string{"b /var/tmp /var/tmp 6"},
			nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps, rules := planned(t, dir, c.profile)
			if diff := cmp.Diff(c.steps, steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.rules, rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// Every program has the same devices, and its own processes and keys only.
func TestEmptyLayout(t *testing.T) {
	ops, rules, err := layOut(Profile{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []launcher.Op{
		{Kind: launcher.MakeDir, A: "root/dev/pts", Flags: 0o755}, {Kind: launcher.MakeDir, A: "root/tmp", Flags: 0o1777}, {Kind: launcher.MakeDir, A: "root/var/tmp", Flags: 0o1777}, {Kind: launcher.MakeDir, A: "root/dev/shm", Flags: 0o1777},
		{Kind: launcher.MakeFile, A: "root/dev/null", Flags: 0o644}, {Kind: launcher.MakeLink, A: "/proc/self/fd/0", B: "root/dev/stdin"},
		{Kind: launcher.MountPro, A: "/proc"}, {Kind: launcher.MountPTS, A: "/dev/pts"}, {Kind: launcher.Bind, A: "/dev/null", B: "/dev/null", Flags: 0o12},
		{Kind: launcher.Bind, A: "/dev/null", B: "/proc/keys", Flags: 0o11, Skip: true}, {Kind: launcher.BindBase, A: "root/tmp", B: "/tmp", Flags: 0o6},
	} {
		if !slices.Contains(ops, want) {
			t.Errorf("%+v is missing in %+v", want, ops)
		}
	}
	names := []string{}
	for _, rule := range rules {
		names = append(names, fmt.Sprintf("%s %#x", rule.Path, rule.Access))
	}
	slices.Sort(names)
	want := []string{"/ 0x8", "/dev 0x800e", "/dev/shm 0x77bf", "/dev/shm 0x77bf", "/proc 0xc", "/tmp 0x77bf", "/tmp 0x77bf", "/var/tmp 0x77bf", "/var/tmp 0x77bf"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// What cannot be shown safely is an error that says why; what only may be there is left out.
func TestLayoutErrors(t *testing.T) {
	dir := tree(t, "work/file", "many/link0 -> file")
	for i := range 41 {
		if err := os.Symlink(fmt.Sprintf("link%d", i), fmt.Sprintf("%s/many/link%d", dir, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/many/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		profile Profile
		want    string // "" means no error
	}{
		{Profile{Read: []string{"here"}}, "the path is not absolute"},
		{Profile{Read: []string{"/"}}, "the root folder cannot be opened"},
		{Profile{Write: []string{"/proc/self"}}, "the program has a private one"},
		{Profile{Write: []string{"/dev"}}, "the program has a private one"},
		{Profile{Write: []string{"/dev/pts"}}, "the program has a private one"},
		{Profile{Read: []string{"/dev/zero"}}, ""},
		{Profile{Write: []string{dir + "/missing"}}, "no such file"},
		{Profile{Write: []string{dir + "/work/file/x"}}, "not a directory"},
		{Profile{Read: []string{dir + "/missing", dir + "/work/file/x"}, Scratch: []string{dir + "/work/file/x"}}, ""},
		{Profile{Read: []string{dir + "/many/link39"}}, ""},
		{Profile{Read: []string{dir + "/many/link40"}}, "too many symbolic links"},
	} {
		_, _, err := layOut(c.profile)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.profile, err, c.want)
		}
	}
}

// Below a folder that a program may write, a folder for temporary files needs no entry of its own.
func TestScratchIsCoveredByWhatCanBeWritten(t *testing.T) {
	for parent, want := range map[kind]bool{scratch: true, writable: true, fixed: true, readable: false, private: false, hidden: false, guarded: false} {
		if got := isCovered(parent, scratch); got != want {
			t.Errorf("below kind %d: covered is %v, want %v", parent, got, want)
		}
	}
}

// A link that is in a folder which is shown as it is, or was made before, needs not be made; those
// after it do.
func TestLinksAreMadeWhereNothingShowsThem(t *testing.T) {
	l := layout{links: map[string]string{"/a/shown": "x", "/already": "x", "/b": "a/shown"}, entries: map[string]entry{"/a": {kind: readable, isDir: true}},
		made: map[string]bool{"root": true, "": true, "root/already": true}}
	l.addLinks()
	var made []string
	for _, op := range l.ops {
		if op.Kind == launcher.MakeLink {
			made = append(made, op.B+" -> "+op.A)
		}
	}
	if diff := cmp.Diff([]string{"root/b -> a/shown"}, made); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// A path through a link that the program could change gets no rule; those after it do.
func TestSeatbeltLeavesOutLinksThatCanChange(t *testing.T) {
	dir := tree(t, "w/", "elsewhere/", "w/link -> DIR/elsewhere", "other/")
	text := seatbelt(Profile{Write: []string{dir + "/w", dir + "/w/link", dir + "/other"}}, "/none/tmp", 0)
	for path, want := range map[string]bool{dir + "/w": true, dir + "/elsewhere": false, dir + "/other": true} {
		if got := strings.Contains(text, `"`+path+`"`); got != want {
			t.Errorf("a rule for %s: %v, want %v", path, got, want)
		}
	}
}
