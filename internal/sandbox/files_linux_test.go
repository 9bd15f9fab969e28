//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

func TestDefaultFiles(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	got := p.shell(t, p.profile(), `
		cat ~/.gitconfig ~/.npm/entry
		tool
		cat ~/.ssh/id ~/.cargo/credentials.toml /etc/shadow; ls -A ~/.ssh
		touch ~/file ~/.gitconfig /usr/file
		echo new >~/.npm/entry; cat ~/.npm/entry
		echo kept >kept; echo gone >/tmp/gone; echo gone >/var/tmp/gone; echo gone >/dev/shm/gone
		ls /tmp/gone /var/tmp/gone /dev/shm/gone
		ls /dev`)
	for _, want := range []string{
		"[user]\ncached", "tool\n", "new\n", "/tmp/gone\n/var/tmp/gone\n",
		".ssh/id: No such file", "credentials.toml: Permission denied", "/etc/shadow: Permission denied",
		"/file': Read-only file system", ".gitconfig': Read-only file system", "/usr/file': Read-only file system",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	if entry, err := os.ReadFile(p.home + "/.npm/entry"); string(entry) != "cached" {
		t.Errorf("the cache has %q, %v", entry, err)
	}
	if kept, err := os.ReadFile(p.workspace + "/kept"); string(kept) != "kept\n" {
		t.Errorf("the workspace has %q, %v", kept, err)
	}
	for _, gone := range []string{"/tmp/gone", "/var/tmp/gone", "/dev/shm/gone"} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is there", gone)
		}
	}
}

// On a new machine, programs must be able to create their caches.
func TestMissingCachesAreCreated(t *testing.T) {
	needFull(t)
	p := place{home: "/nonexistent/ann", workspace: t.TempDir()}
	got := p.shell(t, p.profile(), `
		mkdir -p ~/.cache/go-build/00 && echo private >~/.cache/go-build/00/a && cat ~/.cache/go-build/00/a
		touch ~/.cache/other`)
	for _, want := range []string{"private\n", "/.cache/other': Read-only file system"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if _, err := os.Lstat(p.home); err == nil {
		t.Error("the home was created")
	}
}

func TestGuardedFiles(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	writeFile(t, p.workspace+"/.git/config", "old")
	writeFile(t, p.workspace+"/.git/hooks/one", "old")
	writeFile(t, p.workspace+"/.env", "old")
	profile := p.profile()
	profile.ReadOnly = []string{p.workspace + "/.git/config", p.workspace + "/.git/hooks", p.workspace + "/missing"}
	profile.Fixed = []string{p.workspace + "/.git"}
	profile.Hide = append(profile.Hide, p.workspace+"/.env")
	got := p.shell(t, profile, `
		echo new >.git/config; rm .git/config; mv .git/config x; ln .git/config y; cp /dev/null .git/new; mv .git/new .git/config
		echo new >.git/hooks/one; rm -r .git/hooks; mv .git/hooks x; touch .git/hooks/two
		mv .git x; rm -r .git; chmod 777 .git/config; cat .env; mv .env x
		cat .git/config`)
	if !strings.HasPrefix(got, "old") {
		t.Errorf("reading the guarded file: %s", got)
	}
	for name, want := range map[string]string{".git/config": "old", ".git/hooks/one": "old", ".env": "old"} {
		if text, err := os.ReadFile(filepath.Join(p.workspace, name)); string(text) != want {
			t.Errorf("%s has %q, %v\n%s", name, text, err, got)
		}
	}
	for _, name := range []string{"y", ".git/hooks/two"} {
		if _, err := os.Lstat(p.workspace + "/" + name); err == nil {
			t.Errorf("%s is there\n%s", name, got)
		}
	}
}

func TestOpenedFiles(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	p.write(t, ".ssh/known_hosts", "known")
	p.write(t, "other/file", "text")
	if err := os.Symlink(p.home+"/other", p.home+"/link"); err != nil {
		t.Fatal(err)
	}
	profile := p.profile()
	profile.Hide = append(profile.Hide, p.home+"/other/hidden")
	p.write(t, "other/hidden/secret", "secret")
	p.write(t, "other/hidden/shown", "shown")
	profile.Read = append(profile.Read, p.home+"/.ssh/known_hosts", p.home+"/missing", p.home+"/other/hidden/shown")
	profile.Write = append(profile.Write, p.home+"/link")
	got := p.shell(t, profile, `cat ~/.ssh/known_hosts ~/link/file ~/other/file ~/other/hidden/shown; echo; ls ~/.ssh ~/other/hidden; echo more >~/link/more`)
	want := "knowntexttextshown\n" + p.home + "/.ssh:\nknown_hosts\n\n" + p.home + "/other/hidden:\nshown\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if text, err := os.ReadFile(p.home + "/other/more"); string(text) != "more\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A link that an earlier program may have created is not followed; one that it cannot change
// is.
func TestLinksInTheWorkspaceAreNotFollowed(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	p.write(t, "tools/one/script", "text")
	for link, target := range map[string]string{"/linked": "/tools/one/script", "/keys": "/.ssh/id"} {
		for _, folder := range []string{p.home, p.workspace} {
			if err := os.Symlink(p.home+target, folder+link); err != nil {
				t.Fatal(err)
			}
		}
	}
	profile := func(script string) sandbox.Profile {
		return sandbox.Default(sandbox.Place{Workspace: []string{p.workspace}, Script: script, Home: p.home, Environ: p.environ()})
	}
	for script, want := range map[string]bool{p.home + "/linked": true, p.workspace + "/linked": false, p.home + "/keys": false, p.workspace + "/keys": false} {
		got := p.shell(t, profile(script), "cat ~/tools/one/script ~/.ssh/id")
		if strings.Contains(got, "secret") || strings.HasPrefix(got, "text") != want {
			t.Errorf("with the script %s: %q", script, got)
		}
	}
	for _, change := range []func(*sandbox.Profile){
		func(profile *sandbox.Profile) { profile.Opened = []string{p.workspace + "/linked"} },
		func(profile *sandbox.Profile) { profile.Write = append(profile.Write, p.workspace+"/linked") },
	} {
		profile := profile("")
		change(&profile)
		_, err := sandbox.Prepare(profile, sandbox.Program{Path: "/bin/true", Dir: "/"})
		if err == nil || !strings.Contains(err.Error(), "it leads through the link "+p.workspace+"/linked, which programs in the sandbox can change") {
			t.Error(err)
		}
	}
}

func TestNothingIsInherited(t *testing.T) {
	needFull(t)
	r, w, err := os.Pipe() // a descriptor of toolreg
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := newPlace(t)
	if got := p.self(t, p.profile(), "descriptors"); got != "0\n1\n2\n" {
		t.Errorf("the program inherited %q", got)
	}
}

func TestProfileErrors(t *testing.T) {
	needFull(t)
	for what, profile := range map[string]sandbox.Profile{
		"relative":                      {Read: []string{"here"}},
		"root folder":                   {Read: []string{"/"}},
		"the program has a private one": {Read: []string{"/proc/sys"}},
		"no such file":                  {Write: []string{"/no/such/folder"}},
		"cannot be opened; name":        {Write: []string{"/usr/.."}},
	} {
		_, err := sandbox.Prepare(profile, sandbox.Program{Path: "/bin/true", Dir: "/"})
		if what == "relative" {
			what = "not absolute"
		}
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v", profile, err)
		}
	}
}
