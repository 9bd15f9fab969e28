package settings

import (
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// EntryState is what has become of a server's entry.
type EntryState int

// What an entry may be.
const (
	// EntryElsewhere is an entry in a file that exists but is not read in this run.
	EntryElsewhere EntryState = iota
	// EntryGone is an entry that was removed.
	EntryGone
	// EntryUntrusted is an entry in settings of the project, which are not trusted.
	EntryUntrusted
	// EntryUnreadable may be in settings of the project, which cannot be read.
	EntryUnreadable
	// EntryInEffect is an entry of [Settings.Servers], which may be turned off.
	EntryInEffect
)

// serverFiles has the servers in each file that was read, whether its settings apply or
// not; nil if they are unknown. A folder stands for the file in it.
type serverFiles map[string][]serverEntry

type serverEntry struct {
	name  string
	value *jsonx.Value
}

func (f serverFiles) add(l *layers.Layer) {
	if l == nil {
		return
	}
	if l.Root == nil && len(l.Problems) > 0 {
		f[l.File] = nil
		return
	}
	servers := []serverEntry{}
	for _, e := range l.Settings {
		switch {
		case (e.Row.Name == table.ServersKey || e.Row.Name == table.APIsKey) && e.Value.Is(jsonx.Object):
			for _, m := range e.Value.Members {
				servers = append(servers, serverEntry{m.Name, m.Value})
			}
		case e.Row.Name == "mcpServerCommand":
			servers = append(servers, serverEntry{"mcp", e.Value})
		}
	}
	f[l.File] = append(servers, f[l.File]...)
}
