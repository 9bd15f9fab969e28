package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/registry"
)

// selection narrows the tools of list, schema and discover.
type selection struct {
	source, server, plugin string
	category, tag          string
	optional, strict       bool
}

// flags adds the flags; strict is the name of the one that makes a failed source
// an error.
func (s *selection) flags(f *pflag.FlagSet, strict string) {
	f.StringVar(&s.source, "source", "", "only tools of this source (`glob`: builtin, command, mcp:*)")
	f.StringVar(&s.server, "server", "", "only tools of this MCP server (`glob`)")
	f.StringVar(&s.plugin, "plugin", "", "only tools of this plugin (`glob`)")
	f.StringVar(&s.category, "category", "", "only this `category`: read, write, command, network, other")
	f.StringVar(&s.tag, "tag", "", "only tools with this `tag`")
	f.BoolVar(&s.optional, "optional", false, "only optional tools")
	f.BoolVar(&s.strict, strict, false, "fail with exit code 8 when any source failed")
}

func (s *selection) check() error {
	if s.category != "" && !registry.Category(s.category).Valid() {
		return &usageError{err: fmt.Errorf("unknown category %q", s.category), hint: "one of read, write, command, network, other"}
	}
	return nil
}

func (s *selection) apply(tools []*registry.Tool) []*registry.Tool {
	return slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !s.matches(t) })
}

func (s *selection) matches(t *registry.Tool) bool {
	glob := func(pattern, value string) bool {
		return pattern == "" || value != "" && registry.MatchName(pattern, value)
	}
	return glob(s.source, t.Source) && glob(s.server, t.Server) && glob(s.plugin, t.Plugin) &&
		(s.category == "" || string(t.Category) == s.category) &&
		(s.tag == "" || slices.Contains(t.Tags, s.tag)) &&
		(!s.optional || t.Optional)
}

// local reports whether no tool of an MCP server can match, so that none need
// be started.
func (s *selection) local() bool {
	return s.plugin != "" || s.server == "" && s.source != "" && !strings.ContainsAny(s.source, "*?[") && !strings.HasPrefix(s.source, registry.MCPPrefix)
}

func (s *selection) strictFailure(reg *registry.Registry) error {
	if !s.strict {
		return nil
	}
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

// registryFor loads what a selection needs: everything, for names to be those
// of every other command, unless no server can match.
func (a *app) registryFor(ctx context.Context, s *selection) (*registry.Registry, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !s.local() {
		return a.all(ctx)
	}
	if err := a.setup(ctx); err != nil {
		return nil, err
	}
	return a.load(ctx, a.sources.local, true), context.Cause(ctx)
}
