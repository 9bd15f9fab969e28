package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// watchEvery is how often files are checked. There are only a few, and polling works
// where notifications do not: on network file systems, and if a symbolic link is pointed
// to another file.
const watchEvery = time.Second

// Watcher detects changes to the files that a session depends on. It records the state of a file
// before the file is read, and not again until it has noticed a change, so that it misses none.
type Watcher struct {
	env     *Env
	state   map[string]string // of each file
	content map[string]string // a hash of what each file contained
}

// NewWatcher returns a watcher that has recorded the state of the settings files. Read
// the settings afterwards.
func NewWatcher(e *Env) *Watcher {
	w := &Watcher{env: e}
	w.reset()
	return w
}

// reset records the state of the settings files and forgets other files.
func (w *Watcher) reset() {
	w.state, w.content = map[string]string{}, map[string]string{}
	options, err := w.env.Config.Options()
	if err != nil {
		return
	}
	places, err := settings.Places(options)
	if err != nil {
		return
	}
	for _, p := range places {
		if dir, name := filepath.Split(p.Path); strings.HasPrefix(name, "settings.{") {
			// The folder has no settings yet.
			w.record(dir+"settings.yaml", dir+"settings.yml", dir+"settings.json")
			continue
		}
		w.record(p.Path)
	}
}

// Add records the state of the files of a session, before the session reads them: lock files,
// plugins, trust, and files that run without a question, because trust ends when they change.
func (w *Watcher) Add(from *engine.Session) {
	w.record(filepath.Join(from.Settings.ProjectRoot, lock.Name))
	if user := settings.UserFolder(w.env.Config.Environ); user != "" {
		w.record(filepath.Join(user, lock.Name))
	}
	w.record(from.Plugins.Folders...) // a new plugin changes its folder
	for _, p := range from.Plugins.Found {
		w.record(p.Path, filepath.Dir(p.Path))
	}
	w.record(from.Settings.Unasked(w.env.Config.Environ)...)
	if store, err := w.env.Trust.Store(); err == nil {
		w.record(store.File(from.Settings.ProjectRoot))
	}
	w.addDocuments(from)
}

// addDocuments records the state of APIs' documents. Other files that they refer to are known only
// after reading them.
func (w *Watcher) addDocuments(from *engine.Session) {
	for _, api := range from.Servers.APIs() {
		w.record(api.Files()...)
	}
}

func (w *Watcher) record(paths ...string) {
	for _, path := range paths {
		if _, known := w.state[path]; !known {
			w.state[path] = stateOf(path)
			w.content[path] = contentOf(path)
		}
	}
}

// Follow calls reload with the current session after every change, until ctx is done. If reload
// fails, it prints the error and keeps the earlier session. A file with a new time but the same
// content has not changed.
func (w *Watcher) Follow(ctx context.Context, from *engine.Session,
	reload func(*engine.Session) (*engine.Session, error)) {
	tick := time.Tick(watchEvery)
	for settled := w.state; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		w.addDocuments(from)
		now := w.snapshot()
		if maps.Equal(now, w.state) || !maps.Equal(now, settled) { // unchanged, or still being written
			settled = now
			continue
		}
		if w.hasSameContent() {
			w.state = now
			continue
		}
		w.reset()
		w.Add(from)
		next, err := reload(from)
		if err != nil {
			w.env.IO.Warn(registry.Diagnostic{
				Severity: registry.SeverityError, Code: "reload_failed",
				Message: "the changed settings are not used: " + err.Error(),
			})
			continue
		}
		from = next
		w.Add(from)
		w.env.IO.Notef("the settings have changed and were read again")
	}
}

func (w *Watcher) snapshot() map[string]string {
	now := make(map[string]string, len(w.state))
	for path := range w.state {
		now[path] = stateOf(path)
	}
	return now
}

func (w *Watcher) hasSameContent() bool {
	for path, before := range w.content {
		if contentOf(path) != before {
			return false
		}
	}
	return true
}

// contentOf returns a hash of a file's content or of the names in a folder; "" if it cannot be
// read.
func contentOf(path string) string {
	if entries, err := os.ReadDir(path); err == nil {
		names := make([]string, len(entries))
		for i, entry := range entries {
			names[i] = entry.Name()
		}
		return strings.Join(names, "/")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return string(sum[:])
}

func stateOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "-"
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}
