// Package registry defines the central types of toolreg and the registry
// itself: definitions, tools, calls, results, sources, names, conflicts,
// filters and the validation of params.
//
// Sources provide tools. A [Loader] runs all sources concurrently and registers
// their tools in a fixed order. [Registry.Lookup] finds a tool by any of its
// names. The package starts no process and prints nothing.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/text"
)

// Registry has the tools of one run. It is immutable and safe for concurrent
// use. Lookups take constant time.
type Registry struct {
	tools       []*Tool // registration order
	names       map[string]*Tool
	versions    map[string][]*Tool // highest version first, only if there are several
	other       map[string]*Tool   // aliases and qualified names
	apps        []*Tool            // see Apps
	steps       map[string]*Tool   // tools that only steps of composites can call
	renamed     map[string]*Tool   // by the names that overrides replaced
	misfits     map[string]Hidden  // hidden tools by the names that overrides would give them
	kept        map[string]Hidden  // names of servers whose tools are not there
	hidden      []Hidden
	diagnostics []Diagnostic
	reports     []SourceReport
	// explain adds to kept and hidden when first needed: most runs need neither, and a project may
	// have thousands of kept names.
	explain func()

	mu         sync.Mutex
	validators map[*Tool]*Validator
}

// NotFoundError reports that no tool has a name. It wraps [ErrNotFound] and,
// for a quarantined tool, the reason.
type NotFoundError struct {
	Name     string
	Near     []string // similar names, best first
	Count    int      // number of tools
	Hidden   *Hidden  // set if a tool of that name is hidden
	Versions []string // existing versions, if only the version does not exist
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Hidden != nil && e.Hidden.Err != nil:
		return fmt.Sprintf("tool %s cannot be used: %s", text.Quote(e.Name), e.Hidden.Reason)
	case e.Hidden != nil:
		return fmt.Sprintf("tool %s is not registered: %s", text.Quote(e.Name), e.Hidden.Reason)
	case len(e.Versions) > 0:
		name, version, _ := cutVersion(e.Name)
		return fmt.Sprintf("tool %s has no version %s; available: %s",
			text.Quote(name), version, strings.Join(e.Versions, ", "))
	}
	what := "named"
	if text.IsGlob(e.Name) {
		what = "matching"
	}
	msg := fmt.Sprintf("no tool %s %s (%d registered)", what, text.Quote(e.Name), e.Count)
	if len(e.Near) > 0 {
		msg += "; did you mean " + strings.Join(e.Near, ", ") + "?"
	}
	return msg
}

// Hint says where to look.
func (e *NotFoundError) Hint() string {
	switch {
	case e.Hidden == nil:
		return "run toolreg list to see all tools"
	case e.Hidden.Err == nil && e.Hidden.Setting != "":
		return "set at " + e.Hidden.Setting
	}
	return "toolreg list --all shows every hidden tool, and why"
}

// Unwrap returns ErrNotFound and the reason of a quarantine.
func (e *NotFoundError) Unwrap() []error {
	if e.Hidden != nil && e.Hidden.Err != nil {
		return []error{ErrNotFound, e.Hidden.Err}
	}
	return []error{ErrNotFound}
}

// Lookup finds a tool by its registered name, an alias, server__tool or
// name@version, where name@latest is the highest version. The error is a *NotFoundError.
func (r *Registry) Lookup(name string) (*Tool, error) {
	if t, ok := r.names[name]; ok {
		return t, nil
	}
	if t, ok := r.other[name]; ok {
		return t, nil
	}
	if plain, version, ok := cutVersion(name); ok {
		if t := r.version(plain, version); t != nil {
			return t, nil
		}
	}
	return nil, r.notFound(name)
}

// Apps returns the tools that only pages of their servers may call (MCP Apps: _meta.ui.visibility).
// They are not declared to models, and no name finds them.
func (r *Registry) Apps() []*Tool { return slices.Clone(r.apps) }

// LookupStep is like [Registry.Lookup], but also finds the tools that an override
// hides from all but the steps of composites.
func (r *Registry) LookupStep(name string) (*Tool, error) {
	if t, ok := r.steps[name]; ok {
		return t, nil
	}
	return r.Lookup(name)
}

func (r *Registry) version(name, version string) *Tool {
	for _, t := range r.versions[name] {
		if t.Version == version {
			return t
		}
	}
	t := cmp.Or(r.names[name], r.other[name])
	if t != nil && (version == latest || t.Version == version && version != "") {
		return t // the plain name means the highest version
	}
	return nil
}

func (r *Registry) notFound(name string) error {
	e := &NotFoundError{Name: name, Count: len(r.tools), Versions: r.otherVersions(name)}
	plain, _, _ := cutVersion(name)
	r.explain()
	if h, ok := r.kept[plain]; ok {
		e.Hidden = &h
		return e
	}
	if t := cmp.Or(r.renamed[name], r.renamed[plain]); t != nil {
		e.Hidden = &Hidden{
			Name:    name,
			Source:  t.Source,
			Now:     t.Name,
			Reason:  fmt.Sprintf("an override renames it to %q", t.Name),
			Setting: t.Reshaped.Origin,
		}
		return e
	}
	for i := range r.hidden {
		if h := &r.hidden[i]; h.Name == name {
			e.Hidden = h
			return e
		}
	}
	if h, ok := r.misfits[name]; ok {
		e.Hidden = &h
		return e
	}
	e.Near = r.Near(name, nil)
	return e
}

// Near returns names of up to three tools that may have been meant by name, best first. It never
// returns names that are not valid, since a server can put any text into them, or names of tools
// that shown, if not nil, leaves out.
func (r *Registry) Near(name string, shown func(*Tool) bool) []string {
	tools := make(map[string]*Tool, len(r.other)+len(r.names))
	maps.Copy(tools, r.other)
	maps.Copy(tools, r.names)
	maps.DeleteFunc(tools, func(n string, t *Tool) bool { return ValidName(n) != n || shown != nil && !shown(t) })
	candidates := slices.Sorted(maps.Keys(tools))
	if text.IsGlob(name) {
		candidates = nearGlob(name, candidates)
	} else {
		plain, _, _ := cutVersion(name)
		candidates = ranked(plain, candidates)
	}
	var out []string
	for _, n := range candidates {
		t := tools[n]
		if r.names[n] == nil && t.Source == SourceBuiltin { // an alias
			n = t.Name
		}
		if !slices.ContainsFunc(out, func(other string) bool { return tools[other] == t }) {
			if out = append(out, n); len(out) == maxNear {
				break
			}
		}
	}
	return out
}

// Matching returns the tool named glob or, if there is none, the tools whose name
// or server__tool matches the glob, in registration order. The error is a
// *NotFoundError.
func (r *Registry) Matching(glob string) ([]*Tool, error) {
	if t, err := r.Lookup(glob); err == nil || !text.IsGlob(glob) {
		return []*Tool{t}, err
	}
	var out []*Tool
	for _, t := range r.tools {
		if q := t.Qualified(); text.MatchName(glob, t.Name) || q != "" && text.MatchName(glob, q) {
			out = append(out, t)
		}
	}
	if out == nil {
		return nil, r.notFound(glob)
	}
	return out, nil
}

func (r *Registry) otherVersions(name string) []string {
	plain, _, ok := cutVersion(name)
	if !ok {
		return nil
	}
	var out []string
	for _, t := range r.Versions(plain) {
		if t.Version != "" {
			out = append(out, t.Version)
		}
	}
	return out
}

// Tools returns the tools in registration order, which is the order of
// declarations. The caller owns the slice.
func (r *Registry) Tools() []*Tool { return slices.Clone(r.tools) }

// Versions returns all versions of a name, highest first. It has one element if
// there is only one version, and is nil if the name is unknown.
func (r *Registry) Versions(name string) []*Tool {
	if vs := r.versions[name]; vs != nil {
		return slices.Clone(vs)
	}
	if t, err := r.Lookup(name); err == nil {
		return []*Tool{t}
	}
	return nil
}

// Sorted returns the tools in the order of listings: by display name, then by
// name.
func (r *Registry) Sorted() []*Tool {
	out := r.Tools()
	slices.SortStableFunc(out, func(a, b *Tool) int {
		if c := compareNames(a.DisplayName, b.DisplayName); c != 0 {
			return c
		}
		return compareNames(a.Name, b.Name)
	})
	return out
}

// ByServer returns the tools of one MCP server, sorted by name.
func (r *Registry) ByServer(server string) []*Tool {
	var out []*Tool
	for _, t := range r.tools {
		if t.OfServer() && t.Server == server {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *Tool) int { return compareNames(a.Name, b.Name) })
	return out
}

// Len returns the number of tools.
func (r *Registry) Len() int { return len(r.tools) }

// Hidden returns the tools that settings exclude, in the order found.
func (r *Registry) Hidden() []Hidden {
	r.explain()
	return slices.Clone(r.hidden)
}

// Diagnostics returns the diagnostics of loading, in source order.
func (r *Registry) Diagnostics() []Diagnostic { return slices.Clone(r.diagnostics) }

// Reports returns one report per source, in source order.
func (r *Registry) Reports() []SourceReport { return slices.Clone(r.reports) }

// Failed returns the names of the sources that failed.
func (r *Registry) Failed() []string {
	var failed []string
	for i := range r.reports {
		if r.reports[i].Err != nil {
			failed = append(failed, r.reports[i].Name)
		}
	}
	return failed
}

// Failure returns why a source did not list its tools; nil if it did, or was not asked.
func (r *Registry) Failure(source string) error {
	for i := range r.reports {
		if r.reports[i].Name == source {
			return r.reports[i].Err
		}
	}
	return nil
}

// Validator returns the validator of a tool's input schema.
func (r *Registry) Validator(t *Tool) *Validator {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.validators[t]
	if v == nil {
		v = NewValidator(t.InputSchema)
		r.validators[t] = v
	}
	return v
}

// Validate is [Validator.Check] for the params of a tool.
func (r *Registry) Validate(ctx context.Context, t *Tool, params json.RawMessage) error {
	return r.Validator(t).Check(ctx, t.Name, params)
}

// CompileAll compiles the input schema of every tool and returns a diagnostic
// for each that does not compile or can be checked only in part.
func (r *Registry) CompileAll(ctx context.Context) []Diagnostic {
	var out []Diagnostic
	for _, t := range r.tools {
		notes, err := r.Validator(t).Compile(ctx)
		if err != nil {
			out = append(out, Diagnostic{Severity: SeverityError,
				Code: "schema_invalid", Source: t.Source, Tool: t.Name,
				Message: "the input schema cannot be used: " + err.Error(),
				Hint:    "the tool is listed, but calls to it are refused"})
		}
		for _, n := range notes {
			out = append(out, Diagnostic{
				Severity: SeverityWarning,
				Code:     "schema_partly_checked",
				Source:   t.Source,
				Tool:     t.Name,
				Message:  n,
			})
		}
	}
	return out
}
