package lock

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/jsonx"
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

// matches reports whether now is the tool that e locks, both by its fingerprint and
// by its definition.
func (e *Entry) matches(now *Entry) bool {
	return e.hasDefinition(now) && e.Override.matches(now.Override)
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

func (e *Entry) hasDefinition(now *Entry) bool {
	return e.Fingerprint == now.Fingerprint && sameJSON(e.Definition, now.Definition)
}

// sameJSON compares values regardless of white space and escapes, because the file
// is written with invisible characters escaped.
func sameJSON(a, b json.RawMessage) bool {
	return json.Valid(a) && json.Valid(b) && jsonx.Canonical(a) == jsonx.Canonical(b)
}

// pretty returns the definition on several lines.
func (e *Entry) pretty() string {
	var b bytes.Buffer
	if json.Indent(&b, e.Definition, "", "  ") != nil {
		return string(e.Definition)
	}
	b.WriteByte('\n')
	if e.Override != nil {
		b.WriteString("override: ")
		if json.Indent(&b, e.Override.Entry, "", "  ") != nil {
			b.Write(e.Override.Entry)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// PartNames returns the names of changed parts as text for messages.
func PartNames(parts []string) string {
	return strings.ReplaceAll(strings.Join(parts, ", "), "behind", "command or server")
}

// changedParts returns the names of the parts that changed. It includes
// "fingerprint" if only the fingerprint differs.
func changedParts(was, now *Entry) []string {
	a, b := was.parts(), now.parts()
	var out []string
	for name, value := range b {
		if was, ok := a[name]; !ok || !sameJSON(was, value) {
			out = append(out, name)
		}
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			out = append(out, name)
		}
	}
	if len(out) == 0 && !was.hasDefinition(now) {
		out = []string{"fingerprint"}
	}
	if !was.Override.matches(now.Override) {
		out = append(out, registry.PartOverride)
	}
	slices.Sort(out)
	return out
}

func (e *Entry) parts() map[string]json.RawMessage {
	return maps.Collect(jsonx.Members(e.Definition))
}
