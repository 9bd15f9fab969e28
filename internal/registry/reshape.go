package registry

import (
	"context"
	"encoding/json"
	"slices"
)

// Reshaped describes how an override changed a tool. The definition that contains
// it is the changed one.
type Reshaped struct {
	// Upstream is the definition as the source gave it, under the name that the tool
	// has without the override.
	Upstream Definition
	// Name is the tool's new name, without its server; "" if the override does not change
	// it.
	Name string
	// Hidden restricts the tool to the steps of composites.
	Hidden bool
	// Override is the entry in the settings, and Shown the same with secrets masked.
	// Origin is its file:line. Personal is set if it is in the user's own settings,
	// which other users do not have.
	Override, Shown json.RawMessage
	Origin          string
	Personal        bool
}

// Overrides are the overrides in the settings. Their keys are any of the names of a
// tool.
type Overrides interface {
	// Has reports whether there is an override with this key.
	Has(name string) bool
	// NewName returns the name that the override with this key gives its tool, or "".
	NewName(name string) string
	// Reshape returns the tool as changed by the override with one of these keys. The
	// tool is quarantined if several overrides apply to it or if its override does
	// not match it.
	Reshape(ctx context.Context, t *Tool, names []string) Tool
}

// Upstream returns the definition as the source gave it, under the name that the
// tool has without an override.
func (d *Definition) Upstream() *Definition {
	if d.Reshaped != nil {
		return &d.Reshaped.Upstream
	}
	return d
}

// IsRenamed reports whether an override gave the tool another name.
func (d *Definition) IsRenamed() bool { return d.Reshaped != nil && d.Reshaped.Name != "" }

// PlainName returns the name of a tool without its server: the name from an
// override, or else the server's.
func (d *Definition) PlainName() string {
	switch {
	case d.IsRenamed():
		return d.Reshaped.Name
	case d.IsMCP():
		return d.ServerTool
	}
	return d.Name
}

// overrides returns the keys of the overrides that apply to a registered tool.
// other reports whether a further name of it belongs to another tool.
func (b *builder) overrides(t *Tool, other func(name string) bool) []string {
	var out []string
	t.eachName(t.Name, func(name string) {
		if b.opts.Overrides.Has(name) && (name == t.Name || !other(name)) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	return out
}

// eachName calls f with the name under which a tool is registered, and with the
// other names that find it.
func (d *Definition) eachName(name string, f func(string)) {
	f(name)
	if d.IsMCP() {
		raw := d.Server + "__" + d.PlainName()
		f(raw)
		f(ValidName(raw))
	}
	for _, alias := range d.Aliases {
		f(alias)
	}
}

// OverrideNames returns the keys that an override of the tool can have.
func (d *Definition) OverrideNames() []string {
	var out []string
	d.eachName(ValidName(d.Name), func(name string) { out = append(out, name) })
	return out
}

// hasName reports whether a name finds the tool.
func (d *Definition) hasName(name string) bool {
	found := false
	d.eachName(d.Name, func(n string) { found = found || n == name })
	return found
}

// newNames returns the names that overrides might give a tool, whatever its
// registered name will be. name is its own valid name.
func newNames(o Overrides, t *Tool, name string) []string {
	if o == nil {
		return nil
	}
	var out []string
	t.eachName(name, func(name string) {
		if renamed := o.NewName(name); renamed != "" {
			out = append(out, renamed)
		}
	})
	return out
}

// isUnsettled reports whether the whole registry is needed to decide whether an
// override applies to a tool, because its key is the tool's plain name, which may
// belong to another server.
func (b *builder) isUnsettled(t *Tool) bool {
	if !b.partial || !t.IsMCP() || b.opts.Overrides == nil || !b.opts.Overrides.Has(t.Name) {
		return false
	}
	_, taken := b.owner(t)
	return !taken
}

// reshaped returns a builder with the same tools after their overrides have been
// applied. Names are assigned again, in the same order and by the same rules, since
// a new name may be taken. The old name of a renamed tool is not given to another
// tool.
func (b *builder) reshaped(ctx context.Context) *builder {
	if b.opts.Overrides == nil && b.opts.LastShaped == nil {
		return b
	}
	next := newBuilder(b.opts, b.partial, len(b.reg.tools))
	next.reg.hidden, next.reg.diagnostics, next.reg.reports = b.reg.hidden, b.reg.diagnostics, b.reg.reports
	next.reg.misfits = b.reg.misfits
	next.again = true
	taken := func(name string) bool { return b.reg.names[name] != nil }
	for _, first := range b.reg.tools {
		for _, t := range b.versionsOf(first) {
			next.registerShaped(t, b.shape(ctx, t, taken))
		}
	}
	return next
}

// shape returns a tool as changed by its override; taken reports which names belong to
// tools.
func (b *builder) shape(ctx context.Context, t *Tool, taken func(name string) bool) *Tool {
	if b.opts.Overrides == nil {
		return t
	}
	names := b.overrides(t, taken)
	if len(names) == 0 {
		return t
	}
	shaped := b.opts.Overrides.Reshape(ctx, t, names)
	if b.partial && shaped.IsMCP() { // only the whole registry has plain names
		shaped.Name = shaped.Qualified()
	}
	return &shaped
}

func (b *builder) versionsOf(t *Tool) []*Tool {
	if all := b.reg.versions[t.Name]; all != nil {
		return all
	}
	return []*Tool{t}
}

// registerShaped registers a changed tool; upstream is the tool without the
// override.
func (b *builder) registerShaped(upstream, t *Tool) {
	h := b.hidesShaped(t)
	if h != nil {
		h.Name, h.Source = upstream.Name, t.Source
		if t.IsRenamed() {
			b.reg.misfits[t.Reshaped.Name] = *h
		}
		b.reg.hidden = append(b.reg.hidden, *h)
		if h.Err != nil {
			b.diagnose(SeverityError, "override_misfit", t.Source, upstream.Name, h.Err.Error(), "the tool cannot be used until its override is changed or removed")
		}
		return
	}
	if t.Reshaped != nil {
		b.cutDescription(t)
	}
	if t.IsRenamed() {
		b.renamed[upstream.Name] = t
	}
	b.give(t)
}

// hidesShaped returns why a changed tool is not registered, or nil if it is. The
// filters have already admitted the unchanged tool, under all names that it might
// get.
func (b *builder) hidesShaped(t *Tool) *Hidden {
	if t.Reshaped != nil || t.maybe != nil {
		t.maybe = nil
		if h := b.hides(t); h != nil {
			return h
		}
	}
	if b.opts.LastShaped != nil {
		return b.opts.LastShaped(t, t.given)
	}
	return nil
}

// withdraw removes the tools that overrides hide. Their names stay reserved, and
// only steps of composites can call them.
func (b *builder) withdraw() {
	isHidden := func(t *Tool) bool { return t.Reshaped != nil && t.Reshaped.Hidden }
	b.reg.tools = slices.DeleteFunc(b.reg.tools, func(t *Tool) bool {
		if !isHidden(t) {
			return false
		}
		for _, v := range b.versionsOf(t) {
			b.reg.hidden = append(b.reg.hidden, Hidden{Name: t.Name, Version: v.Version, Source: t.Source, Reason: "an override hides it", Setting: v.Reshaped.Origin})
		}
		delete(b.reg.names, t.Name)
		delete(b.reg.versions, t.Name)
		t.eachName(t.Name, func(name string) {
			if b.reg.names[name] == nil && b.reg.steps[name] == nil {
				b.reg.steps[name] = t
			}
		})
		return true
	})
}
