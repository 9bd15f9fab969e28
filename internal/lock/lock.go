// Package lock reads and writes toolreg.lock, a file in the project root with every
// tool definition and its fingerprint. With it, changes of tools are visible in
// review, and changed tools can be refused.
//
// A [Recorder] is the last filter of a registry, so it records every tool that
// passes the others, under the source's own name. [Set.Filter] is also a last
// filter; it hides tools that are not in the file or differ. [Compare] compares two files.
package lock

import (
	"fmt"
	"maps"
	"slices"

	"cmp"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/registry"
)

// Recorder collects the tools of a registry. The zero value is ready to use,
// for one registry at a time.
type Recorder struct {
	All     bool  // also record overrides from the user's own settings
	Was     *File // overrides that it locks are recorded even without All; may be nil
	entries map[string]Entry
}

// Filter accepts every tool and records it. It must be the last filter.
func (r *Recorder) Filter(t *registry.Tool) *registry.Hidden {
	if r.entries == nil {
		r.entries = map[string]Entry{}
	}
	e := newEntry(t)
	r.entries[e.key()] = e
	return nil
}

// Override is a filter that records the override of a tool that Filter has
// recorded. It hides nothing.
func (r *Recorder) Override(t *registry.Tool, name string) *registry.Hidden {
	key := keyOf(t, name)
	e, ok := r.entries[key]
	was := func(e Entry) bool { return e.key() == key && e.Override != nil }
	if !ok || t.Reshaped == nil ||
		t.Reshaped.Personal && !r.All && (r.Was == nil || !slices.ContainsFunc(r.Was.Tools, was)) {
		return nil
	}
	e.Override = newOverride(t)
	r.entries[key] = e
	return nil
}

// File returns the recorded tools as a lock file.
func (r *Recorder) File() *File {
	f := &File{Version: format, Tools: make([]Entry, 0, len(r.entries))}
	for _, key := range slices.Sorted(maps.Keys(r.entries)) {
		f.Tools = append(f.Tools, r.entries[key])
	}
	return f
}

// filter returns a filter that hides tools that differ from f and, if strict, those that
// are not in it. If drift is not nil, it is called for each of them, possibly more than once.
func (f *File) filter(drift func(registry.Diagnostic), strict bool) registry.Filter {
	locked := f.byKey()
	return func(t *registry.Tool) *registry.Hidden {
		now := newEntry(t)
		was := locked[now.key()]
		reason, hint := "it is not in "+Name,
			"toolreg lock adds it; tools of servers in your own settings, toolreg lock --all"
		if f.user {
			reason, hint = "it is not in your own "+Name,
				"toolreg lock --user adds it, or toolreg lock a tool of this project"
		}
		switch {
		case was != nil && was.hasDefinition(&now), was == nil && !strict:
			return nil
		case was != nil:
			now.Override = was.Override // overrides are compared by overrideFilter
			reason = "it changed since it was locked: " + PartNames(changedParts(was, &now))
			hint = "toolreg lock --check shows the change, toolreg lock accepts it"
			if f.user {
				hint = "toolreg lock --user --check shows the change, toolreg lock --user accepts it"
			}
		}
		return refusedTool(t, reason, hint, drift)
	}
}

// refusedTool returns the reason why a tool is hidden, and passes it to drift.
func refusedTool(t *registry.Tool, reason, hint string, drift func(registry.Diagnostic)) *registry.Hidden {
	if drift != nil {
		drift(registry.Diagnostic{Severity: registry.SeverityWarning,
			Code: "tool_drifted", Source: t.Source, Tool: t.Name,
			Message: fmt.Sprintf("tool %q of %s is refused: %s", t.Name, t.Source, reason), Hint: hint})
	}
	return &registry.Hidden{Reason: reason, Setting: "--locked"}
}

// OverrideFilter is a filter that sees tools with their overrides; name is the one that a
// tool has without.
type OverrideFilter = func(t *registry.Tool, name string) *registry.Hidden

// overrideFilter returns a filter that hides tools whose override differs from the
// one in f. Overrides in the user's own settings may be missing in f. If drift is
// not nil, it is called for each hidden tool, possibly more than once.
func (f *File) overrideFilter(drift func(registry.Diagnostic)) OverrideFilter {
	locked := make(map[string]*Override, len(f.Tools))
	for i := range f.Tools {
		locked[f.Tools[i].key()] = f.Tools[i].Override
	}
	return func(t *registry.Tool, name string) *registry.Hidden {
		was, now := locked[keyOf(t, name)], newOverride(t)
		if was.matches(now) || was == nil && t.Reshaped.Personal {
			return nil
		}
		reason := "its override changed since it was locked"
		switch {
		case was == nil:
			reason = "its override is not in " + Name
		case now == nil:
			reason = "its override in " + Name + " no longer exists"
		}
		return refusedTool(t, reason, "toolreg lock --check shows the change, toolreg lock accepts it", drift)
	}
}

// Set has the lock files that apply to a project: its own or, without one, the user's. Both
// apply to a project that is not trusted: its file may refuse tools and keep names, but
// allows nothing that the user's does not.
type Set struct {
	project, user *File // at least one is not nil
	trusted       bool
}

// Find reads the lock files that apply to a project, whose root is project; user is the
// folder of the user's settings, or "" if the file there does not count. trusted says
// whether the person trusts the project. Without any file the error names both and wraps
// [fs.ErrNotExist].
func Find(project, user string, trusted bool) (*Set, error) {
	s := &Set{trusted: trusted}
	var err error
	if project != "" {
		if s.project, err = Read(project); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if user != "" && (s.project == nil || !trusted) {
		if s.user, err = Read(user); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	switch {
	case s.user != nil:
		s.user.user = true
	case s.project != nil:
	case user != "":
		return nil, absent(fmt.Sprintf("neither %s nor %s exists; run toolreg lock to create the first, which applies to this project, or toolreg lock --user to create the second, which applies to projects without their own",
			filepath.Join(project, Name), filepath.Join(user, Name)))
	default:
		return nil, absent(filepath.Join(project, Name) + " does not exist; run toolreg lock to create it")
	}
	return s, nil
}

// files returns the files, the project's first.
func (s *Set) files() []*File {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc([]*File{s.project, s.user}, func(f *File) bool { return f == nil })
}

// Owners returns the plain names of servers' tools with the server to which each belongs,
// according to all files and according to those that the person trusts. hasOwn is false if
// the person trusts none.
func (s *Set) Owners() (all, own map[string]string, hasOwn bool) {
	all, own = map[string]string{}, map[string]string{}
	for _, f := range s.files() {
		trusted := f.user || s.trusted
		hasOwn = hasOwn || trusted
		for name, server := range f.Owners() {
			all[name] = cmp.Or(all[name], server)
			if trusted {
				own[name] = server
			}
		}
	}
	return all, own, hasOwn
}

// Servers returns the servers and APIs whose tools are in the files.
func (s *Set) Servers() []string {
	var out []string
	for _, f := range s.files() {
		for i := range f.Tools {
			if server, ok := registry.ServerOf(f.Tools[i].Source); ok && !slices.Contains(out, server) {
				out = append(out, server)
			}
		}
	}
	return out
}

// Changed returns the parts of a tool that differ from those in a file. It returns nil if
// none does, or the tool is in no file.
func (s *Set) Changed(t *registry.Tool) []string {
	for _, f := range s.files() {
		if parts := f.changed(t); len(parts) > 0 {
			return parts
		}
	}
	return nil
}

// Filter returns a filter that hides tools that differ from a file, or are not in the one
// that decides what is pinned: the user's, if that applies. If drift is not nil, it is
// called for each of them, possibly more than once.
func (s *Set) Filter(drift func(registry.Diagnostic)) registry.Filter {
	var all []registry.Filter
	for _, f := range s.files() {
		all = append(all, f.filter(drift, s.isStrict(f)))
	}
	return func(t *registry.Tool) *registry.Hidden {
		return first(all, func(f registry.Filter) *registry.Hidden { return f(t) })
	}
}

// OverrideFilter returns a filter that hides tools whose override differs from the one in a
// file. Overrides in the user's own settings may be missing there. If drift is not nil, it is
// called for each hidden tool, possibly more than once.
func (s *Set) OverrideFilter(drift func(registry.Diagnostic)) OverrideFilter {
	var all []OverrideFilter
	for _, f := range s.files() {
		all = append(all, f.overrideFilter(drift))
	}
	return func(t *registry.Tool, name string) *registry.Hidden {
		return first(all, func(f OverrideFilter) *registry.Hidden { return f(t, name) })
	}
}

// isStrict reports whether a file refuses tools that it does not have.
func (s *Set) isStrict(f *File) bool { return s.user == nil || f == s.user }

func first[F any](all []F, apply func(F) *registry.Hidden) *registry.Hidden {
	for _, f := range all {
		if h := apply(f); h != nil {
			return h
		}
	}
	return nil
}
