package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What belongs to a folder on PATH is as little as its programs need: a home folder, and folders
// with settings or secrets beside programs, are not opened.
func TestInstallations(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of other systems")
	}
	programs := func(dir string) []string {
		return []string{dir + "/bin", dir + "/sbin", dir + "/lib", dir + "/lib64", dir + "/libexec", dir + "/include", dir + "/opt"}
	}
	h := newHome(Place{Home: "/home/ann", Hide: []string{"/srv/secret"}, Environ: []string{"GOPATH=/home/ann/code"}})
	for dir, want := range map[string][]string{
		"/home/ann/.nvm/versions/node/v1/bin": {"/home/ann/.nvm"},
		"/home/ann/.nvm":                      {"/home/ann/.nvm"},
		"/home/ann/.local/bin":                append(programs("/home/ann/.local"), "/home/ann/.local/pipx", "/home/ann/.local/share/pipx", "/home/ann/.local/share/uv", "/home/ann/.local/share/pnpm"),
		"/home/ann/.fly/bin":                  programs("/home/ann/.fly"),
		"/home/ann/.fly/sbin":                 programs("/home/ann/.fly"),
		"/home/ann/.fly/tools":                {"/home/ann/.fly/tools"},
		"/home/ann/.fly/x/bin":                {"/home/ann/.fly/x"},
		"/home/ann/fly/bin":                   {"/home/ann/fly"},
		"/home/ann/.config/bin":               {"/home/ann/.config/bin"},
		"/home/ann/.cache/bin":                {"/home/ann/.cache/bin"},
		"/home/ann/code/bin":                  {"/home/ann/code/bin"},
		"/home/ann/go/bin":                    {"/home/ann/go"},
		"/home/ann/bin":                       {"/home/ann/bin"},
		"/home/bin":                           {"/home/bin"},
		"/srv/bin":                            {"/srv/bin"},
		"/srv/x/bin":                          {"/srv/x"},
		"/srv/.x/bin":                         {"/srv/.x"},
		"/srv/x/sbin":                         {"/srv/x"},
		"/srv/x/.bin":                         {"/srv/x"},
		"/srv/x/shims":                        {"/srv/x"},
		"/srv/x/other":                        {"/srv/x/other"},
		"/srv/secret/bin":                     {"/srv/secret/bin"},
	} {
		if diff := cmp.Diff(want, h.installationOf(dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
	for target, want := range map[string][]string{"/srv/x/bin/tool": {"/srv/x"}, "/srv/x/tool": {"/srv/x/tool"}} {
		if diff := cmp.Diff(want, h.installationOfTarget(target)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	for dir, want := range map[string]bool{"/usr/local/bin": true, "/usr/bin": false, "/bin": false, "/sbin/x": false, "/opt/bin": true} {
		if got := isLocal(dir); got != want {
			t.Errorf("the links in %s are made by users: %v", dir, got)
		}
	}
	if got := newHome(Place{}).installationOf("/.local/bin"); !cmp.Equal(got, []string{"/.local/bin"}) {
		t.Errorf("without a home: %q", got)
	}
}

// A variable that would open too much is ignored.
func TestFoldersOfVariables(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of other systems")
	}
	for value, want := range map[string][]string{
		"/caches//x": {"/caches/x"}, "": {"/home/ann/.cache"}, "x": {"/home/ann/.cache"}, "/": {"/home/ann/.cache"}, "/home": {"/home/ann/.cache"}, "/home/ann": {"/home/ann/.cache"}, "/home/ann/x": {"/home/ann/x"}, "/home/bob": {"/home/bob"},
	} {
		h := newHome(Place{Home: "/home/ann", Environ: []string{"XDG_CACHE_HOME=" + value, "GOCACHE=" + value}})
		if diff := cmp.Diff(want, h.or("XDG_CACHE_HOME", ".cache")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
		caches := h.caches()
		if own := caches[len(caches)-1] == filepath.Clean(value); own != (want[0] != "/home/ann/.cache") {
			t.Errorf("GOCACHE=%s is used: %v", value, own)
		}
	}
	for _, home := range []string{"", "ann"} {
		h := newHome(Place{Home: home, Environ: []string{"GOPATH=/go"}})
		if got := h.or("XDG_CACHE_HOME", ".cache"); got != nil {
			t.Errorf("with the home %q: %q", home, got)
		}
		if got := h.or("GOPATH", "go"); !cmp.Equal(got, []string{"/go"}) {
			t.Errorf("with the home %q: %q", home, got)
		}
	}
}

// A script comes with its folder and that of the file that it links to, if these are its own.
func TestFoldersOfScripts(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"home/tools", "home/.ssh", "srv/lib", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"home/tools/linked": "srv/lib/main", "home/tools/key": "home/.ssh/id", "work/linked": "srv/lib/main"} {
		if err := os.WriteFile(filepath.Join(dir, target), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	h := newHome(Place{Home: filepath.Join(dir, "home"), Workspace: []string{filepath.Join(dir, "work")}})
	for script, want := range map[string][]string{
		"home/tools/plain": {"home/tools"}, "home/tools/linked": {"home/tools", "srv/lib"}, "home/tools/key": {"home/tools"}, "work/linked": {"work"}, "home/script": {},
	} {
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		if diff := cmp.Diff(want, h.foldersOf(filepath.Join(dir, script))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", script, diff)
		}
	}
	if runtime.GOOS != "windows" {
		if got := h.foldersOf("/etc/script"); len(got) > 0 {
			t.Errorf("all of /etc: %q", got)
		}
	}
	if got := h.foldersOf(""); got != nil {
		t.Errorf("no script: %q", got)
	}
}

// A program's own folder is opened with the packages or the virtual environment that it is in.
func TestInstalledPrograms(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "venv/bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "venv/pyvenv.cfg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"/node_modules/x": "/node_modules", "/a/node_modules": "/a/node_modules", "/a/node_modules/b/node_modules/c": "/a/node_modules", "/a/node_modules2/x": "/a/node_modules2/x",
		dir + "/venv/bin": dir + "/venv", dir + "/venv/lib": dir + "/venv/lib", dir + "/other/bin": dir + "/other/bin",
	} {
		if got := installed(folder); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
}

// The folders on PATH are opened in any order, with what the links in them lead to, but neither
// the home folder nor what is open anyway.
func TestFoldersOnPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of other systems")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"home/.ssh", "x/bin", "y/bin", "z/lib", "z/bin", "z/other/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		if err := os.WriteFile(fmt.Sprintf("%s/x/bin/file%d", dir, i), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"lib": dir + "/z/lib", "home": dir + "/home", "true": "/usr/bin", "tool": dir + "/z/other/bin/tool", "missing": dir + "/none", "again": dir + "/y/bin"} {
		if err := os.Symlink(target, dir+"/x/bin/"+link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/z/other/bin/tool", nil, 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHome(Place{Home: dir + "/home", Environ: []string{"PATH=relative:" + dir + "/home:" + dir + ":/usr/bin:" + dir + "/y/bin:" + dir + "/x/bin:" + dir + "/x/bin:/none/q/bin"}})
	got := h.installations()
	slices.Sort(got)
	want := []string{"/none/q", dir + "/x", dir + "/y", dir + "/z/lib", dir + "/z/other"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}
