package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
)

const (
	// slowStart is how long a person waits for a server without asking why.
	slowStart = 3 * time.Second
	// slowNoted is the file in the state folder that tells that they were told.
	slowNoted = "cache-hint-shown"
)

// NoteSlowServer says how to cache tool lists, where they are not cached and a
// server was slow to start: once, to a person at the terminal.
func (e *Env) NoteSlowServer(s *session.Session, reg *registry.Registry) {
	if reg == nil || !e.ErrTTY || e.Globals.JSON || e.Globals.Quiet || s.Settings().DiscoveryTTL > 0 {
		return
	}
	for _, r := range reg.Reports() {
		server, ok := strings.CutPrefix(r.Name, registry.MCPPrefix)
		if !ok || r.State == registry.StateFailed || r.Duration < slowStart {
			continue
		}
		dir, err := e.Folders.State()
		if err != nil {
			return
		}
		if _, err := dir.Read(slowNoted); err == nil {
			return
		}
		if err := dir.Put(slowNoted, nil); err != nil {
			e.Log.Debug("cannot note that the cache was explained", "err", err)
		}
		e.noteText(failure{
			message: fmt.Sprintf("server %q took %.1f s to start", server, r.Duration.Seconds()),
			hint:    "toolreg settings set cache.discovery 1h caches the tool lists of servers for an hour",
		})
		return
	}
}
