// Package overrides applies the setting overrides to tools: it changes names and
// texts, fixes, hides, renames or restricts params, and reduces results. The
// source of a tool is not aware of its overrides.
//
// A [Set] implements [registry.Overrides]. Each tool is reshaped once, when a
// registry is built, so that listings, declarations, checks and calls see only the
// new shape. The functions of the reshaped tool translate each call before the
// source receives it.
package overrides

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Set contains the overrides in the settings. It is safe for concurrent use.
type Set struct{ named map[string]*override }

// New returns the overrides in merged settings, or nil if there are none.
// evaluator is the command that evaluates the expressions of projects; see
// [jq.Expression.Isolated].
func New(set *settings.Settings, evaluator []string) *Set {
	entries := set.RawNamed("overrides")
	if len(entries) == 0 {
		return nil
	}
	s := &Set{named: make(map[string]*override, len(entries))}
	for _, n := range entries {
		o := readEntry(n, set.Merged().Masked("overrides", n))
		if n.At("/result").Scope == settings.ScopeProject {
			o.result = o.result.Isolated(evaluator)
		}
		s.named[n.Name] = o
	}
	return s
}

// Has reports whether there is an override with that name.
func (s *Set) Has(name string) bool { return s.named[name] != nil }

// IsOwn reports whether there is an override with that name that is not of a project.
func (s *Set) IsOwn(name string) bool {
	o := s.named[name]
	return o != nil && o.named.Origin.Scope != settings.ScopeProject
}

// NewName returns the name that an override gives its tool, or "" if it does not
// rename it.
func (s *Set) NewName(name string) string {
	if o := s.named[name]; o != nil {
		return o.Name
	}
	return ""
}

// IsProjects reports whether a project's settings give the tool of an override its name.
func (s *Set) IsProjects(name string) bool {
	o := s.named[name]
	return o != nil && o.Name != "" && o.named.At("/name").Scope == settings.ScopeProject
}

// Reshape returns the tool with the overrides of these names applied. If they
// cannot be applied, the tool is quarantined with an error that lists the mistakes
// and their positions.
func (s *Set) Reshape(ctx context.Context, t *registry.Tool, names []string) registry.Tool {
	o := s.named[names[0]]
	out := *t
	out.Reshaped = &registry.Reshaped{Upstream: t.Definition, Override: o.raw, Shown: o.shown,
		Origin: o.named.Origin.String(), Hidden: o.Hidden, Personal: o.named.Origin.Scope == settings.ScopeUser}
	if o.Name != t.Name {
		out.Reshaped.Name, out.Reshaped.NameOfProject = o.Name, s.IsProjects(names[0])
	}
	problems := o.problems
	for _, name := range names[1:] {
		other := s.named[name]
		problems = append(problems, o.problem("",
			fmt.Sprintf("the tool has another override as %q at %s", name, other.named.Origin), "keep one of them"))
	}
	if len(problems) == 0 {
		problems = o.apply(ctx, t, &out)
	}
	out.Quarantine = document.NewError(document.SortProblems(problems))
	return out
}
