package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
)

const (
	// slowStart is how long a person is expected to wait for a server without
	// wondering.
	slowStart = 3 * time.Second
	// slowNoted is the name for firstTime.
	slowNoted = "cache-hint-shown"
)

// NoteSlowServer tells a person at the terminal once how to cache tool lists,
// if they are not cached and a server started slowly.
func (e *Env) NoteSlowServer(s *session.Session, reg *registry.Registry) {
	if reg == nil || !e.ErrTTY || e.Globals.JSON || e.Globals.Quiet || s.Settings().DiscoveryTTL > 0 {
		return
	}
	for _, r := range reg.Reports() {
		server, ok := strings.CutPrefix(r.Name, registry.MCPPrefix)
		if !ok || r.State == registry.StateFailed || r.Duration < slowStart {
			continue
		}
		if !e.firstTime(slowNoted) {
			return
		}
		e.noteText(failure{
			message: fmt.Sprintf("server %q took %.1f s to start", server, r.Duration.Seconds()),
			hint:    "toolreg settings set cache.discovery 1h caches the tool lists of servers for an hour",
		})
		return
	}
}

// firstTime reports whether a note was never shown to this user, and records
// that it is shown now. name is that of a file in the state folder.
func (e *Env) firstTime(name string) bool {
	dir, err := e.Folders.State()
	if err != nil {
		return false
	}
	if _, err := dir.Read(name); err == nil {
		return false
	}
	if err := dir.Put(name, nil); err != nil {
		e.Log.Debug("cannot remember that a note was shown", "name", name, "err", err)
	}
	return true
}
