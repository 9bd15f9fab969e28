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
// definition, so that a change in the settings is distinguished from one in the
// source.
type Override struct {
	Fingerprint string          `json:"fingerprint"`
	Entry       json.RawMessage `json:"entry"` // with secrets masked
}

// newOverride returns the override of a tool, nil if there is none.
func newOverride(t *registry.Tool) *Override {
	if t.Reshaped == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(jsonx.Canonical(t.Reshaped.Override)))
	return &Override{Fingerprint: hex.EncodeToString(sum[:]), Entry: json.RawMessage(jsonx.Canonical(t.Reshaped.Shown))}
}

// matches reports whether now is what o has locked; both may be nil.
func (o *Override) matches(now *Override) bool {
	if o == nil || now == nil {
		return o == now
	}
	return o.Fingerprint == now.Fingerprint && sameJSON(o.Entry, now.Entry)
}

// keyOf returns the key of a tool by the name that its source gave it.
func keyOf(t *registry.Tool, name string) string {
	if t.IsMCP() {
		name = t.ServerTool
	}
	return (&Entry{Source: t.Source, Name: name, Version: t.Version}).key()
}

// Override records the override of a tool that Filter has recorded under its
// source's name. It hides nothing.
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

// OverrideFilter returns the filter that hides tools whose override differs
// from the one that f locks. Overrides in the user's own settings need not be
// locked. drift, if not nil, is called for each hidden tool, possibly more than
// once.
func (f *File) OverrideFilter(drift func(registry.Diagnostic)) func(*registry.Tool, string) *registry.Hidden {
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
			reason = "the override that is locked in " + Name + " is missing"
		}
		if drift != nil {
			drift(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "tool_drifted", Source: t.Source, Tool: t.Name,
				Message: fmt.Sprintf("tool %q of %s is refused: %s", t.Name, t.Source, reason),
				Hint:    "toolreg lock --check shows the change, toolreg lock accepts it"})
		}
		return &registry.Hidden{Reason: reason, Setting: "--locked"}
	}
}
