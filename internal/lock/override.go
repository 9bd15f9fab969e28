package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Override is a locked entry of the setting overrides. It is separate from the
// definition, so that a change of the settings can be told from a change of the
// source.
type Override struct {
	Fingerprint string          `json:"fingerprint"`
	Entry       json.RawMessage `json:"entry"` // with secrets masked
}

// newOverride returns the override of a tool, or nil if it has none.
func newOverride(t *registry.Tool) *Override {
	if t.Reshaped == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(jsonx.Canonical(t.Reshaped.Override)))
	return &Override{Fingerprint: hex.EncodeToString(sum[:]), Entry: json.RawMessage(jsonx.Canonical(t.Reshaped.Shown))}
}

// matches reports whether now is the same override as o; both may be nil.
func (o *Override) matches(now *Override) bool {
	if o == nil || now == nil {
		return o == now
	}
	return o.Fingerprint == now.Fingerprint && sameJSON(o.Entry, now.Entry)
}

// keyOf returns the key of a tool, which uses the source's name for it.
func keyOf(t *registry.Tool, name string) string {
	if t.OfServer() {
		name = t.ServerTool
	}
	return (&Entry{Source: t.Source, Name: name, Version: t.Version}).key()
}

// Override is a filter that records the override of a tool that Filter has
// recorded. It hides nothing.
func (r *Recorder) Override(t *registry.Tool, name string) *registry.Hidden {
	key := keyOf(t, name)
	e, ok := r.entries[key]
	if !ok || t.Reshaped == nil || t.Reshaped.Personal && !r.All && !r.Was.hasOverride(key) {
		return nil
	}
	e.Override = newOverride(t)
	r.entries[key] = e
	return nil
}

// hasOverride reports whether a file, which may be nil, locks an override of a tool.
func (f *File) hasOverride(key string) bool {
	return f != nil && slices.ContainsFunc(f.Tools, func(e Entry) bool { return e.key() == key && e.Override != nil })
}

// KeepOverrides gives the tools that have no override now the one that an older file has.
func (f *File) KeepOverrides(older *File) {
	was := map[string]*Override{}
	for i := range older.Tools {
		was[older.Tools[i].key()] = older.Tools[i].Override
	}
	for i := range f.Tools {
		if e := &f.Tools[i]; e.Override == nil {
			e.Override = was[e.key()]
		}
	}
}

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
		if drift != nil {
			drift(registry.Diagnostic{Severity: registry.SeverityWarning,
				Code: "tool_drifted", Source: t.Source, Tool: t.Name,
				Message: fmt.Sprintf("tool %q of %s is refused: %s", t.Name, t.Source, reason),
				Hint:    "toolreg lock --check shows the change, toolreg lock accepts it"})
		}
		return &registry.Hidden{Reason: reason, Setting: "--locked"}
	}
}
