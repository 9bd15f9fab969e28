package servecmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/settings"
)

// watchEvery is how often files are checked. There are few of them, and polling
// works where notifications do not: on network file systems, and if a link is
// changed to another file.
const watchEvery = time.Second

// watcher detects changes of the files on which a session depends.
type watcher struct {
	env   *cli.Env
	paths []string
	stamp string // their state when they were read
}

// newWatcher records the state of the settings before they are read, so that no
// later change is missed.
func newWatcher(e *cli.Env) *watcher {
	w := &watcher{env: e}
	w.note(nil)
	return w
}

// note sets the files to watch: the places of settings and, for the session,
// the lock file and plugins.
func (w *watcher) note(from *session.Session) {
	w.paths = nil
	options, err := w.env.SettingsOptions()
	if err != nil {
		return
	}
	places, err := settings.Places(options)
	if err != nil {
		return
	}
	for _, p := range places {
		if dir, name := filepath.Split(p.Path); strings.HasPrefix(name, "settings.{") { // a folder without settings
			w.paths = append(w.paths, dir+"settings.yaml", dir+"settings.yml", dir+"settings.json")
			continue
		}
		w.paths = append(w.paths, p.Path)
	}
	if from != nil {
		w.paths = append(w.paths, filepath.Join(from.Settings().ProjectRoot, lock.Name))
		for _, p := range from.Plugins() {
			w.paths = append(w.paths, p.Path, filepath.Dir(p.Path))
		}
	}
	w.stamp = w.look()
}

// follow calls reload for every change until ctx is done. If the settings are
// invalid, it reports that and keeps the current offer.
func (w *watcher) follow(ctx context.Context, from *session.Session, reload func() (*session.Session, error)) {
	if w.look() == w.stamp { // otherwise handle the change first
		w.note(from)
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for settled := w.stamp; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := w.look()
		if now == w.stamp || now != settled { // unchanged, or still being written
			settled = now
			continue
		}
		w.note(from)
		next, err := reload()
		if err != nil {
			w.env.Warn(registry.Diagnostic{Severity: registry.SeverityError, Code: "reload_failed", Message: "the changed settings are not used: " + err.Error()})
			continue
		}
		from = next
		w.env.Notef("the settings have changed and were read again")
	}
}

// look returns a description of the current state of the files.
func (w *watcher) look() string {
	var b strings.Builder
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%s -\n", path)
			continue
		}
		fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}
