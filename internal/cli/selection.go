package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Selection selects the tools of list, schema and discover, and those that call --format runs.
type Selection struct {
	Filters
	Strict bool // a failed source is an error
}

// Filters select tools that meet all conditions that are given. A condition with several
// words is met if one of them is.
type Filters struct {
	Source   Words `json:"source,omitempty"` // globs
	Server   Words `json:"server,omitempty"` // globs
	Plugin   Words `json:"plugin,omitempty"` // globs
	Category Words `json:"category,omitempty"`
	Tag      Words `json:"tag,omitempty"`
	Optional bool  `json:"optional,omitempty"` // only optional tools
}

// Words are the values of a filter. A flag gives one of them; JSON is a string or a list
// of strings.
type Words []string

// Set implements [pflag.Value].
func (w *Words) Set(word string) error {
	*w = nil
	if word != "" {
		*w = Words{word}
	}
	return nil
}

// String implements [pflag.Value].
func (w *Words) String() string { return strings.Join(*w, ",") }

// Type implements [pflag.Value].
func (w *Words) Type() string { return "string" }

// UnmarshalJSON reads a string or a list of strings.
func (w *Words) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		return w.Set(word)
	}
	return json.Unmarshal(data, (*[]string)(w))
}

// any reports whether there are no words, or one of them meets a condition.
func (w *Words) any(meets func(string) bool) bool {
	return len(*w) == 0 || slices.ContainsFunc(*w, meets)
}

// Flags adds the flags; strict is the name of the flag that makes a failed
// source an error.
func (s *Selection) Flags(e *Env, cmd *cobra.Command, strict string) {
	s.FilterFlags(e, cmd)
	cmd.Flags().BoolVar(&s.Strict, strict, false, "fail with exit code 8 if any source failed")
}

// FilterFlags adds the flags that select tools.
func (s *Selection) FilterFlags(e *Env, cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&s.Source, "source", "only tools of this source (`glob`: builtin, command, mcp:*)")
	f.Var(&s.Server, "server", "only tools of this MCP server (`glob`)")
	f.Var(&s.Plugin, "plugin", "only tools of this plugin (`glob`)")
	f.Var(&s.Category, "category",
		"only this `category`: read, write, command, network, other, or a tool's own category")
	f.Var(&s.Tag, "tag", "only tools with this `tag`")
	f.BoolVar(&s.Optional, "optional", false, "only optional tools")
	MarkRare(f, "optional")
	complete.Flag(cmd, "source", e.Complete().Sources())
	complete.Flag(cmd, "server", e.Complete().Servers())
	complete.Flag(cmd, "plugin", e.Complete().Plugins())
	complete.Flag(cmd, "category", e.Complete().Categories())
	complete.Flag(cmd, "tag", e.Complete().Tags())
}

// Apply returns the matching tools, reusing the slice.
func (s *Selection) Apply(tools []*registry.Tool) []*registry.Tool {
	return slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !s.Matches(t) })
}

// Sorted returns the matching tools in the order of listings: by display name,
// those of a server by name.
func (s *Selection) Sorted(reg *registry.Registry) []*registry.Tool {
	tools := s.Apply(reg.Sorted())
	if len(s.Server) > 0 {
		slices.SortStableFunc(tools, func(a, b *registry.Tool) int { return strings.Compare(a.Name, b.Name) })
	}
	return tools
}

// Matches reports whether a tool is selected.
func (s *Selection) Matches(t *registry.Tool) bool {
	return s.isFrom(t.Source, t.Server, t.Plugin) &&
		s.Category.any(func(word string) bool { return string(t.Category) == word }) &&
		s.Tag.any(func(word string) bool { return slices.Contains(t.Tags, word) }) &&
		(!s.Optional || t.Optional)
}

// Narrows reports whether a flag leaves tools out.
func (s *Selection) Narrows() bool {
	return len(s.Source)+len(s.Server)+len(s.Plugin)+len(s.Category)+len(s.Tag) > 0 || s.Optional
}

// MatchesServer reports whether the flags for sources can select tools of a server.
func (s *Selection) MatchesServer(name string) bool {
	return s.isFrom(registry.MCPPrefix+name, name, "") || s.isFrom(registry.APIPrefix+name, name, "")
}

// Hidden returns the hidden tools whose source matches; their other properties are
// unknown. It reuses the slice.
func (s *Selection) Hidden(tools []registry.Hidden) []registry.Hidden {
	return slices.DeleteFunc(tools, func(h registry.Hidden) bool {
		kind, name, _ := strings.Cut(h.Source, ":")
		switch kind + ":" {
		case registry.MCPPrefix, registry.APIPrefix:
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
	glob := func(patterns Words, value string) bool {
		return patterns.any(func(pattern string) bool { return value != "" && text.MatchName(pattern, value) })
	}
	return glob(s.Source, source) && glob(s.Server, server) && glob(s.Plugin, plugin)
}

// local reports whether no tool of an MCP server can match, so that no server
// has to be started.
func (s *Selection) local() bool {
	fromServer := func(source string) bool {
		_, ok := registry.ServerOf(source)
		return ok || text.IsGlob(source)
	}
	return len(s.Plugin) > 0 || len(s.Server) == 0 && len(s.Source) > 0 && !slices.ContainsFunc(s.Source, fromServer)
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
	failed := reg.Failed()
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
	load := from.Tools.All
	if s.local() {
		load = from.Tools.Local
	}
	reg, err := load(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause // what an interrupted run found is not the whole list
	}
	if err != nil {
		return reg, err
	}
	return reg, s.CheckCategory(reg)
}

// CheckSource returns an error if a named server, plugin or source does not exist.
func (s *Selection) CheckSource(from *engine.Session) error {
	for _, glob := range slices.Concat(s.Source, s.Server, s.Plugin) {
		if !text.IsPattern(glob) {
			return Usage(fmt.Sprintf("%q is not a valid glob", glob), "")
		}
	}
	servers, plugins := slices.Clone(s.Server), slices.Clone(s.Plugin)
	for _, source := range s.Source {
		if name, ok := registry.ServerOf(source); ok {
			servers = append(servers, name)
		} else if id, ok := strings.CutPrefix(source, registry.PluginPrefix); ok {
			plugins = append(plugins, id)
		} else if !text.IsGlob(source) &&
			!slices.Contains([]string{registry.SourceBuiltin, registry.SourceHost,
				registry.SourceCommand, registry.SourceComposite}, source) {
			return Usage(fmt.Sprintf("unknown source %q", source),
				"one of builtin, host, command, composite, plugin:ID, mcp:SERVER, openapi:NAME, or a glob")
		}
	}
	for _, plugin := range plugins {
		isNamed := func(p sources.Plugin) bool { return p.ID == plugin }
		if plugin != "" && !text.IsGlob(plugin) && !slices.ContainsFunc(from.Plugins.Found, isNamed) {
			return Usage(fmt.Sprintf("no plugin named %q", plugin), "run toolreg plugins to see all plugins")
		}
	}
	for _, server := range servers {
		if server == "" || text.IsGlob(server) {
			continue
		}
		if _, _, err := from.Servers.Named(server); err != nil && !isLeftOut(from, err) {
			return err
		}
	}
	return nil
}

// isLeftOut reports whether err is about a server that the session does not have because of its
// preset.
func isLeftOut(from *engine.Session, err error) bool {
	absent, ok := errors.AsType[*sources.NoServerError](err)
	return ok && slices.Contains(from.Settings.ServerNamesKnown(), absent.Name)
}

// NeedsRegistry reports whether the registry is needed to check the selection.
func (s *Selection) NeedsRegistry() bool {
	return s.Strict || slices.ContainsFunc(s.Category,
		func(word string) bool { return !registry.Category(word).Valid() })
}

// CheckCategory returns an error if a category is neither a standard one nor that of
// a tool.
func (s *Selection) CheckCategory(reg *registry.Registry) error {
	for _, wanted := range s.Category {
		if registry.Category(wanted).Valid() {
			continue
		}
		words := []string{"read", "write", "command", "network", "other"}
		for _, t := range reg.Tools() {
			if c := string(t.Category); c != "" && !slices.Contains(words, c) {
				words = append(words, c)
			}
		}
		if !slices.Contains(words, wanted) {
			return Usage(fmt.Sprintf("unknown category %q", wanted), "one of "+strings.Join(words, ", "))
		}
	}
	return nil
}

// Deferral is the value of --defer.
type Deferral string

// NoDeferral is the default of --defer.
const NoDeferral Deferral = "none"

// Flag adds --defer to a command.
func (d *Deferral) Flag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar((*string)(d), "defer", string(NoDeferral),
		usage+": `mode` auto (those beyond search.budget), none or all")
	complete.Flag(cmd, "defer", complete.Words("auto", "none", "all"))
}

// On reports whether tools are deferred at all.
func (d Deferral) On() bool { return d != NoDeferral }

// All reports whether tools are deferred even if they fit.
func (d Deferral) All() bool { return d == "all" }

// Check returns an error for other values.
func (d Deferral) Check() error {
	switch d {
	case "auto", NoDeferral, "all":
		return nil
	}
	return &UsageError{Err: fmt.Errorf("--defer %s: must be auto, none or all", string(d))}
}
