package lock

import (
	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/registry"
)

// Change is one difference between two lock files.
type Change struct {
	Kind    string   `json:"kind"` // added, removed, changed
	Source  string   `json:"source"`
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Parts   []string `json:"parts,omitempty"` // for kind changed: parts of the definition
	Diff    string   `json:"diff,omitempty"`  // for kind changed: unified diff of the definition
}

// Kinds of changes.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Compare returns the differences between was and now, in the order of the files.
// It returns nil if there are none.
func Compare(was, now *File) []Change {
	old := was.byKey()
	var out []Change
	for i := range now.Tools {
		e := &now.Tools[i]
		o := old[e.key()]
		delete(old, e.key())
		switch {
		case o == nil:
			out = append(out, Change{Kind: Added, Source: e.Source, Name: e.Name, Version: e.Version})
		case !o.matches(e):
			out = append(out, Change{Kind: Changed, Source: e.Source, Name: e.Name, Version: e.Version,
				Parts: changedParts(o, e), Diff: udiff.Unified("locked", "now", o.pretty(), e.pretty())})
		}
	}
	for i := range was.Tools {
		if e := &was.Tools[i]; old[e.key()] == e {
			out = append(out, Change{Kind: Removed, Source: e.Source, Name: e.Name, Version: e.Version})
		}
	}
	return out
}

// changed returns the parts of a tool that differ from those in the file. It returns nil if
// none does, or the tool is not in the file.
func (f *File) changed(t *registry.Tool) []string {
	now := newEntry(t)
	for i := range f.Tools {
		if was := &f.Tools[i]; was.key() == now.key() && !was.hasDefinition(&now) {
			now.Override = was.Override // overrides are compared by overrideFilter
			return changedParts(was, &now)
		}
	}
	return nil
}
