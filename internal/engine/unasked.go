package engine

import (
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Unasked says why a source did not tell its tools, although it has not been removed from
// the settings. The zero value is a source that told them, or is gone.
type Unasked struct {
	Reason string
	// Unknown is set if whether the source still exists is unknown in this run, or it failed.
	// Otherwise it is switched off by a setting in effect.
	Unknown bool
}

// Unasked returns why a source, by its name, is not in a registry.
func (t *Tools) Unasked(reg *registry.Registry, source string) Unasked {
	if id, ok := strings.CutPrefix(source, registry.PluginPrefix); ok {
		for _, p := range t.finder.sources.plugins.Found {
			if p.ID == id && p.Disabled != nil {
				return Unasked{Reason: "disabled at " + p.Disabled.Setting}
			}
		}
	}
	for _, r := range reg.Reports() {
		switch {
		case r.Name != source:
		case r.Err != nil:
			return Unasked{"it failed", true}
		default:
			return Unasked{}
		}
	}
	for _, off := range t.finder.sources.off {
		if off.Source() == source {
			return Unasked{Reason: off.Reason()}
		}
	}
	server, ofServer := registry.ServerOf(source)
	switch {
	case t.finder.set.Globals.NoProject:
		return Unasked{"the settings of the project are not read", true}
	case !t.ReadsProject(), ofServer && t.finder.set.Standing(server, "") == settings.EntryUntrusted:
		return Unasked{"the settings of this project are not trusted", true}
	case t.finder.set.Globals.NoUser:
		return Unasked{"the settings of the user are not read", true}
	}
	return Unasked{}
}

// ReadsProject reports whether the settings of the project, if it has any, are in effect.
func (t *Tools) ReadsProject() bool {
	return !t.finder.set.Globals.NoProject && (t.finder.set.Project == nil || t.finder.set.Project.Trusted)
}
