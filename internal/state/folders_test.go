//go:build unix

package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// foldersIn returns the folders of a user whose state and cache are in base.
func foldersIn(base string, environ ...string) *Folders {
	return &Folders{Environ: append(environ, "XDG_STATE_HOME="+base+"/state", "XDG_CACHE_HOME="+base+"/cache")}
}

// Folders of programs are created where only the user can write.
func TestFoldersAreCreatedInTheStateFolder(t *testing.T) {
	base := t.TempDir()
	f := foldersIn(base)
	for name, get := range map[string]func() (string, error){"neutral": f.Neutral, "sandbox": f.Sandbox} {
		path, err := get()
		if want := filepath.Join(base, "state/toolreg", name); path != want || err != nil {
			t.Errorf("the folder is %q, %v, not %q", path, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v", name, err)
		}
	}
	cache, err := f.Cache("lists")
	if err != nil || cache.Path != filepath.Join(base, "cache/toolreg/lists") {
		t.Errorf("the cache is %+v, %v", cache, err)
	}
}

// Where another one has a folder of ours, or none can be, there is an error and no other folder.
func TestFoldersThatCannotBeUsed(t *testing.T) {
	base := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(base+"/state/toolreg", 0o700), os.WriteFile(base+"/state/toolreg/neutral", nil, 0o600), os.WriteFile(base+"/state/toolreg/kept", nil, 0o600), os.Symlink(base, base+"/state/toolreg/sandbox"),
		os.MkdirAll(base+"/cache", 0o700), os.Symlink(base, base+"/cache/toolreg"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f := foldersIn(base)
	for name, get := range map[string]func() (any, error){
		"sandbox":          func() (any, error) { return f.Sandbox() },
		"cache":            func() (any, error) { return f.Cache("lists") },
		"kept":             func() (any, error) { return f.Sockets() },
		"no home":          func() (any, error) { return (&Folders{}).Sandbox() },
		"no home, sockets": func() (any, error) { return (&Folders{}).Sockets() },
		"no home, cache":   func() (any, error) { return (&Folders{}).Cache("lists") },
		"no home, names":   func() (any, error) { return (&Folders{}).Names("/p") },
	} {
		if got, err := get(); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Programs that must not start in a project start in the root folder if there can be no folder of
// their own, but not where others may write.
func TestNeutralFolderElsewhere(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(base+"/state", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*Folders{"a file in the way": foldersIn(base), "no home": {}} {
		if path, err := f.Neutral(); path != "/" || err != nil {
			t.Errorf("%s: %q, %v", name, path, err)
		}
	}
	for mode, want := range map[os.FileMode]bool{0o755: os.Geteuid() == 0, 0o775: false, 0o757: false} {
		if err := os.Chmod(base, mode); err != nil {
			t.Fatal(err)
		}
		if got := isRoots(base); got != want {
			t.Errorf("mode %o: %v", mode, got)
		}
	}
	if isRoots(base + "/missing") {
		t.Error("a missing folder is root's")
	}
}

// Sockets are in the runtime folder of the user if there is one, else in the state folder; those
// of a run with another environment are found in either.
func TestSocketFolders(t *testing.T) {
	base := t.TempDir()
	runtime, state := filepath.Join(base, "run"), filepath.Join(base, "state/toolreg/kept")
	if err := errors.Join(os.Mkdir(runtime, 0o700), os.WriteFile(base+"/file", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(base)
	for variable, want := range map[string][]string{
		runtime: {runtime + "/toolreg", state}, "": {state}, "run": {state}, base + "/file": {state}, base + "/missing": {state},
	} {
		f := foldersIn(base, "XDG_RUNTIME_DIR="+variable)
		if diff := cmp.Diff(want, f.SocketFolders()); diff != "" {
			t.Errorf("XDG_RUNTIME_DIR=%s (-want +got):\n%s", variable, diff)
		}
		if d, err := f.Sockets(); err != nil || d.Path != want[0] {
			t.Errorf("XDG_RUNTIME_DIR=%s: %+v, %v", variable, d, err)
		}
	}
	// Somebody else's folder there is not used.
	if err := os.Symlink(base, runtime+"/toolreg"); err != nil {
		t.Fatal(err)
	}
	if d, err := foldersIn(base, "XDG_RUNTIME_DIR="+runtime).Sockets(); err != nil || d.Path != state {
		t.Errorf("%+v, %v", d, err)
	}
	if got := (&Folders{Environ: []string{"XDG_RUNTIME_DIR=" + runtime}}).SocketFolders(); !cmp.Equal(got, []string{runtime + "/toolreg"}) {
		t.Errorf("without a home: %q", got)
	}
}

// Without a home there is no folder for secrets or bundles.
func TestDataFoldersNeedAHome(t *testing.T) {
	for name, open := range map[string]func(*Folders) (*Dir, error){"secrets": (*Folders).Secrets, "bundles": (*Folders).Bundles} {
		if d, err := open(&Folders{}); d != nil || err == nil {
			t.Errorf("%s: %v, %v", name, d, err)
		}
		home := t.TempDir()
		d, err := open(&Folders{Environ: []string{"XDG_DATA_HOME=" + home}})
		if err != nil || d.Path != filepath.Join(home, "toolreg", name) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

// A detached run keeps what the user has decided, and leaves nothing to other runs.
func TestDetachedFolders(t *testing.T) {
	base, apart := t.TempDir(), t.TempDir()
	f := foldersIn(base)
	own, err := f.State()
	if err != nil {
		t.Fatal(err)
	}
	names, err := OpenDir(own.Path + "/names")
	if err != nil {
		t.Fatal(err)
	}
	decided := []string{"approvals.json", "key", "trust-p.json"}
	for _, name := range append(decided, "approvals.json.lock", "calls.log", "tasks", "trust-p.json.lock") {
		if err := own.Put(name, []byte("own "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(names.Put("a.lock", nil), names.Put("p.json", []byte("held"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Detach(apart), f.Detach(t.TempDir())); err != nil { // the second one changes nothing
		t.Fatal(err)
	}
	state, err := f.State()
	if err != nil || state.Path != apart+"/state" {
		t.Fatalf("the state is in %+v, %v", state, err)
	}
	if got, err := state.Names("", ""); err != nil || !cmp.Equal(got, decided) {
		t.Errorf("copied are %q, %v", got, err)
	}
	for _, name := range decided {
		if got, err := state.Read(name); string(got) != "own "+name || err != nil {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	held := &Dir{Path: state.Path + "/names"}
	if got, err := held.Names("", ""); err != nil || !cmp.Equal(got, []string{"p.json"}) {
		t.Errorf("copied names are %q, %v", got, err)
	}
	for name, want := range map[string]string{"lists": apart + "/cache/lists", OutputName: base + "/cache/toolreg/output"} {
		if d, err := f.Cache(name); err != nil || d.Path != want {
			t.Errorf("the cache of %s is %+v, %v", name, d, err)
		}
	}
	if path, err := f.Sandbox(); path != own.Path+"/sandbox" || err != nil {
		t.Errorf("what sandboxed programs did is kept in %q, %v", path, err)
	}
}

// What the user decided is copied whole or the run fails; without a state folder there is nothing to copy.
func TestFoldersThatCannotBeDetached(t *testing.T) {
	for name, prepare := range map[string]func(own, apart string) error{
		"a decision that cannot be read": func(own, _ string) error { return os.Truncate(own+"/approvals.json", MaxFile+1) },
		"a decision that cannot be written": func(_, apart string) error {
			return os.MkdirAll(apart+"/state/approvals.json/in", 0o700)
		},
		"names that cannot be read": func(own, _ string) error { return os.WriteFile(own+"/names", nil, 0o600) },
		"no folder":                 func(_, apart string) error { return os.WriteFile(apart+"/state", nil, 0o600) },
	} {
		base, apart := t.TempDir(), t.TempDir()
		f := foldersIn(base)
		own, err := f.State()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(own.Put("approvals.json", nil), prepare(own.Path, apart)); err != nil {
			t.Fatal(err)
		}
		if err := f.Detach(apart); err == nil {
			t.Errorf("%s: detached", name)
		}
	}
	none, apart := &Folders{}, t.TempDir()
	if err := none.Detach(apart); err != nil {
		t.Errorf("without a home: %v", err)
	}
	if d, err := none.State(); err != nil || d.Path != apart+"/state" {
		t.Errorf("without a home the state is in %+v, %v", d, err)
	}
}
