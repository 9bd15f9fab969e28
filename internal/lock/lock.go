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
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// newEntry returns the entry of a tool without its override, which has not been
// applied when filters run.
func newEntry(tool *registry.Tool) Entry {
	t := &registry.Tool{Definition: *tool.Upstream(), Identity: tool.Identity}
	e := Entry{Source: t.Source, Name: t.Name, Version: t.Version, Fingerprint: t.Fingerprint()}
	definition := jsonx.NewObject()
	for _, p := range t.Parts() {
		switch p.Name {
		case "name":
			e.Name = p.Value
		case "source":
		case "description": // as a list of lines, for diffs
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
		if drift != nil {
			drift(registry.Diagnostic{Severity: registry.SeverityWarning,
				Code: "tool_drifted", Source: t.Source, Tool: t.Name,
				Message: fmt.Sprintf("tool %q of %s is refused: %s", t.Name, t.Source, reason),
				Hint:    hint})
		}
		return &registry.Hidden{Reason: reason, Setting: "--locked"}
	}
}
