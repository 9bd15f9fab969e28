package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

// A model may name a file to be written, but neither a folder nor a file of toolreg.
func TestChangeable(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/a.txt": ""})
	opts.Protected = []string{filepath.Join(dir, "toolreg.lock")}
	w := tooltest.Open(t, NewEditor(opts))
	for name, want := range map[string]struct{ rel, refused string }{
		"a.txt":        {rel: "a.txt"},
		"./sub/b.txt":  {rel: "sub/b.txt"},
		".":            {refused: "is a folder"},
		"new/":         {refused: "is a folder"},
		"../a.txt":     {refused: "outside the workspace"},
		"toolreg.lock": {refused: "belongs to toolreg"},
	} {
		rel, err := w.Changeable("write_file", "/path", name)
		if rel != want.rel || (err == nil) != (want.refused == "") || err != nil && !strings.Contains(err.Error(), want.refused) {
			t.Errorf("%s: %q, %v; want %+v", name, rel, err, want)
		}
		if denied := errors.Is(err, registry.ErrDenied); denied != (name == "toolreg.lock") {
			t.Errorf("%s is denied: %t", name, denied)
		}
	}
}

// A change waits for another one, unless its call is canceled.
func TestLocked(t *testing.T) {
	opts, _ := place(t, nil)
	w := tooltest.Open(t, NewEditor(opts))
	starts, waits := make(chan struct{}), make(chan error, 1)
	result, err := w.Locked(t.Context(), func() registry.Result {
		go func() {
			close(starts)
			_, err := w.Locked(t.Context(), func() registry.Result { return registry.Result{} })
			waits <- err
		}()
		<-starts
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // meanwhile the other one tries, too
			if _, err := w.Locked(ctx, func() registry.Result {
				t.Error("two changes at once")
				return registry.Result{}
			}); !errors.Is(err, context.Canceled) {
				t.Errorf("the change that does not wait: %v", err)
			}
		}
		return registry.TextResult("done")
	})
	if err := <-waits; err != nil {
		t.Errorf("the change that waits: %v", err)
	}
	if err != nil || len(result.Content) != 1 || result.Content[0].Text != "done" {
		t.Errorf("%+v, %v", result, err)
	}
	opts.Dir = filepath.Join(opts.Dir, "missing")
	if _, err := tooltest.Open(t, NewEditor(opts)).Locked(t.Context(), func() registry.Result { return registry.Result{} }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a workspace: %v", err)
	}
}

// Folders that a change would create are known beforehand, and removed if it fails.
func TestMissingFolders(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/a.txt": ""})
	w := tooltest.Open(t, NewEditor(opts))
	missing := w.MissingFolders("sub/new/er/b.txt")
	if !slices.Equal(missing, []string{"sub/new/er", "sub/new"}) {
		t.Errorf("missing: %q", missing)
	}
	tooltest.Put(t, filepath.Join(dir, "sub/new/other"), "")
	if err := os.Mkdir(filepath.Join(dir, "sub/new/er"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.RemoveFolders(missing)
	if entries, err := os.ReadDir(filepath.Join(dir, "sub/new")); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
