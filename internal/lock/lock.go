// Package lock records tool definitions: a file in the project root holds every
// definition with its fingerprint (spec section 10), so that a change shows in
// review and a drifted tool can be refused.
//
// A [Recorder] is the last filter of a registry and sees every tool that gets
// that far, under the names its source gave; the same holds for File.Filter,
// which keeps out what the file does not hold. Compare tells two files apart.
package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// newEntry returns the entry of a tool as a filter sees it, without its override.
func newEntry(tool *registry.Tool) Entry {
	t := &registry.Tool{Definition: *tool.Upstream(), Identity: tool.Identity}
	e := Entry{Source: t.Source, Name: t.Name, Version: t.Version, Fingerprint: t.Fingerprint()}
	definition := jsonx.NewObject()
	for _, p := range t.Parts() {
		switch p.Name {
		case "name":
			e.Name = p.Value
		case "source":
		case "description": // by lines, for diffs
			if p.Value != "" {
				lines := jsonx.NewArray()
				for line := range strings.SplitSeq(p.Value, "\n") {
					lines.Items = append(lines.Items, jsonx.NewString(line))
				}
				definition.Set(p.Name, lines)
			}
		default:
			if v, err := jsonx.Parse([]byte(p.Value), jsonx.Options{}); err == nil {
				definition.Set(p.Name, v)
			} else if p.Value != "" {
				definition.Set(p.Name, jsonx.NewString(p.Value))
			}
		}
	}
	e.Definition = definition.AppendTo(nil)
	return e
}

// Recorder collects the tools that a registry is built of. The zero value is
// ready; it is for one registry at a time.
type Recorder struct {
	All     bool  // record overrides of the user's own settings too
	Was     *File // those that it locks are recorded anyway; may be nil
	entries map[string]Entry
}

// Filter lets every tool in and records it. It goes last.
func (r *Recorder) Filter(t *registry.Tool) *registry.Hidden {
	if r.entries == nil {
		r.entries = map[string]Entry{}
	}
	e := newEntry(t)
	r.entries[e.key()] = e
	return nil
}

// File returns what was seen.
func (r *Recorder) File() *File {
	f := &File{Version: format, Tools: make([]Entry, 0, len(r.entries))}
	for _, key := range slices.Sorted(maps.Keys(r.entries)) {
		f.Tools = append(f.Tools, r.entries[key])
	}
	return f
}

// Filter returns the filter that hides tools that f does not hold as they are
// now. drift, if not nil, is called for each of them, perhaps more than once.
func (f *File) Filter(drift func(registry.Diagnostic)) registry.Filter {
	locked := make(map[string]*Entry, len(f.Tools))
	for i := range f.Tools {
		locked[f.Tools[i].key()] = &f.Tools[i]
	}
	return func(t *registry.Tool) *registry.Hidden {
		now := newEntry(t)
		was := locked[now.key()]
		reason, hint := "it is not in "+Name, "toolreg lock adds it; tools of servers in your own settings, toolreg lock --all"
		switch {
		case was != nil && was.hasDefinition(&now):
			return nil
		case was != nil:
			reason = "it changed since it was locked: " + strings.Join(changedParts(was, &now), ", ")
			hint = "toolreg lock --check shows the change, toolreg lock accepts it"
		}
		if drift != nil {
			drift(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "tool_drifted", Source: t.Source, Tool: t.Name,
				Message: fmt.Sprintf("tool %q of %s is refused: %s", t.Name, t.Source, reason),
				Hint:    hint})
		}
		return &registry.Hidden{Reason: reason, Setting: "--locked"}
	}
}
