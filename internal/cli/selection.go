package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Selection selects the tools of list, schema and discover.
type Selection struct {
	source, server, plugin string
	category, tag          string
	optional               bool
	Strict                 bool // a failed source is an error
}

// Flags adds the flags; strict is the name of the flag that makes a failed
// source an error.
func (s *Selection) Flags(e *Env, cmd *cobra.Command, strict string) {
	f := cmd.Flags()
	f.StringVar(&s.source, "source", "", "only tools of this source (`glob`: builtin, command, mcp:*)")
	f.StringVar(&s.server, "server", "", "only tools of this MCP server (`glob`)")
	f.StringVar(&s.plugin, "plugin", "", "only tools of this plugin (`glob`)")
	f.StringVar(&s.category, "category", "", "only this `category`: read, write, command, network, other, or a tool's own category")
	f.StringVar(&s.tag, "tag", "", "only tools with this `tag`")
	f.BoolVar(&s.optional, "optional", false, "only optional tools")
	f.BoolVar(&s.Strict, strict, false, "fail with exit code 8 if any source failed")
	complete.Flag(cmd, "source", e.Complete().Sources)
	complete.Flag(cmd, "server", e.Complete().Servers)
	complete.Flag(cmd, "plugin", e.Complete().Plugins)
	complete.Flag(cmd, "category", e.Complete().Categories)
	complete.Flag(cmd, "tag", e.Complete().Tags)
}

// Apply returns the matching tools, reusing the slice.
func (s *Selection) Apply(tools []*registry.Tool) []*registry.Tool {
	return slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !s.matches(t) })
}

// Sorted returns the matching tools in the order of listings: by display name,
// those of a server by name.
func (s *Selection) Sorted(reg *registry.Registry) []*registry.Tool {
	tools := s.Apply(reg.Sorted())
	if s.server != "" {
		slices.SortStableFunc(tools, func(a, b *registry.Tool) int { return strings.Compare(a.Name, b.Name) })
	}
	return tools
}

// matches reports whether a tool is selected.
func (s *Selection) matches(t *registry.Tool) bool {
	return s.isFrom(t.Source, t.Server, t.Plugin) &&
		(s.category == "" || string(t.Category) == s.category) &&
		(s.tag == "" || slices.Contains(t.Tags, s.tag)) &&
		(!s.optional || t.Optional)
}

// Narrows reports whether a flag leaves tools out.
func (s *Selection) Narrows() bool {
	return s.source+s.server+s.plugin+s.category+s.tag != "" || s.optional
}

// MatchesServer reports whether the flags for sources can select tools of a server.
func (s *Selection) MatchesServer(name string) bool {
	return s.isFrom(registry.MCPPrefix+name, name, "")
}

// Hidden returns the hidden tools whose source matches; their other properties are
// unknown. It reuses the slice.
func (s *Selection) Hidden(tools []registry.Hidden) []registry.Hidden {
	return slices.DeleteFunc(tools, func(h registry.Hidden) bool {
		kind, name, _ := strings.Cut(h.Source, ":")
		switch kind + ":" {
		case registry.MCPPrefix:
			return !s.isFrom(h.Source, name, "")
		case registry.PluginPrefix:
			return !s.isFrom(h.Source, "", name)
		}
		return !s.isFrom(h.Source, "", "")
	})
}

// isFrom reports whether a source is selected. server and plugin are "" if the source is
// not a server or plugin.
func (s *Selection) isFrom(source, server, plugin string) bool {
	glob := func(pattern, value string) bool {
		return pattern == "" || value != "" && text.MatchName(pattern, value)
	}
	return glob(s.source, source) && glob(s.server, server) && glob(s.plugin, plugin)
}

// local reports whether no tool of an MCP server can match, so that no server
// has to be started.
func (s *Selection) local() bool {
	return s.plugin != "" || s.server == "" && s.source != "" && !text.IsGlob(s.source) && !strings.HasPrefix(s.source, registry.MCPPrefix)
}

// StrictFailure returns an error if Strict is set and a source failed.
func (s *Selection) StrictFailure(reg *registry.Registry) error {
	if !s.Strict {
		return nil
	}
	return failedSources(reg)
}

// NamedFailure returns an error if a source failed and either names, from the command
// line, is not empty or Strict is set. If only one source was loaded, it returns the
// error of that source.
func (s *Selection) NamedFailure(reg *registry.Registry, names []string) error {
	if len(names) == 0 {
		return s.StrictFailure(reg)
	}
	err := failedSources(reg)
	if reports := reg.Reports(); err != nil && len(reports) == 1 {
		return reports[0].Err
	}
	return err
}

func failedSources(reg *registry.Registry) error {
	var failed []string
	for _, r := range reg.Reports() {
		if r.State == registry.StateFailed {
			failed = append(failed, r.Name)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", registry.ErrSourceFailed, strings.Join(failed, ", "))
}

// Load loads the sources that a selection needs. These are all sources, so that names
// are the same in all commands, unless no server can match.
func (s *Selection) Load(ctx context.Context, from *engine.Session) (*registry.Registry, error) {
	if err := s.CheckSource(from); err != nil {
		return nil, err
	}
	load := from.All
	if s.local() {
		load = from.Local
	}
	reg, err := load(ctx)
	if err != nil {
		return reg, err
	}
	return reg, s.CheckCategory(reg)
}

// CheckSource returns an error if the named server, plugin or source does not exist.
func (s *Selection) CheckSource(from *engine.Session) error {
	server, plugin := s.server, s.plugin
	if name, ok := strings.CutPrefix(s.source, registry.MCPPrefix); ok {
		server = cmp.Or(server, name)
	} else if id, ok := strings.CutPrefix(s.source, registry.PluginPrefix); ok {
		plugin = cmp.Or(plugin, id)
	} else if !text.IsGlob(s.source) && !slices.Contains([]string{"", registry.SourceBuiltin, registry.SourceCommand, registry.SourceComposite}, s.source) {
		return &UsageError{Err: fmt.Errorf("unknown source %q", s.source), Hint: "one of builtin, command, composite, plugin:ID, mcp:SERVER, or a glob"}
	}
	if plugin != "" && !text.IsGlob(plugin) && !hasPlugin(from, plugin) {
		return &UsageError{Err: fmt.Errorf("no plugin named %q", plugin), Hint: "run toolreg plugins to see all plugins"}
	}
	if server == "" || text.IsGlob(server) {
		return nil
	}
	_, _, err := from.Servers(server)
	return err
}

func hasPlugin(from *engine.Session, id string) bool {
	for _, p := range from.Plugins() {
		if p.ID == id {
			return true
		}
	}
	return false
}

// NeedsRegistry reports whether the registry is needed to check the selection.
func (s *Selection) NeedsRegistry() bool {
	return s.Strict || s.category != "" && !registry.Category(s.category).Valid()
}

// CheckCategory returns an error if the category is neither a standard one nor that of
// a tool.
func (s *Selection) CheckCategory(reg *registry.Registry) error {
	if s.category == "" || registry.Category(s.category).Valid() {
		return nil
	}
	words := []string{"read", "write", "command", "network", "other"}
	for _, t := range reg.Tools() {
		if c := string(t.Category); c == s.category {
			return nil
		} else if c != "" && !slices.Contains(words, c) {
			words = append(words, c)
		}
	}
	return &UsageError{Err: fmt.Errorf("unknown category %q", s.category), Hint: "one of " + strings.Join(words, ", ")}
}
