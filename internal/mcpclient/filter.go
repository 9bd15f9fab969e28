package mcpclient

import (
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Filter returns the filter that applies includeTools and excludeTools of a
// server: exact names as the server has them, "name(...)" or globs; exclusions
// win.
func Filter(s settings.Server) registry.Filter {
	setting := s.Origin.String()
	if len(s.IncludeTools.Entries) > 0 {
		setting = s.IncludeTools.Entries[0].Origin.String()
	}
	return registry.ServerToolsFilter(s.Name, s.IncludeTools.Set, entries(s.IncludeTools), entries(s.ExcludeTools), setting)
}

func entries(l settings.List) []registry.Entry {
	out := make([]registry.Entry, len(l.Entries))
	for i, e := range l.Entries {
		out[i] = registry.Entry{Value: e.Value, Setting: e.Origin.String()}
	}
	return out
}
