package registry

import (
	"context"

	"github.com/toolreg/toolreg/internal/text"
)

// overrides returns the keys of the overrides that apply to a registered tool. "server__tool" means
// the server's tool even if a tool that is not a server's has that name.
func (b *builder) overrides(t *Tool) []string {
	var out []string
	for _, name := range t.names(t.Name) {
		holder := b.reg.names[name]
		free := name == t.Name || holder == nil || t.OfServer() && !holder.OfServer()
		if free && b.opts.Overrides.Has(name) {
			out = text.AppendNew(out, name)
		}
	}
	if b.opts.Overrides.IsOwn(t.ousted) {
		out = append(out, t.ousted)
	}
	return out
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
	next.again, next.given, next.passed, next.failed = true, b.given, b.passed, b.failed
	for _, first := range b.reg.tools {
		for _, t := range b.versionsOf(first) {
			next.registerShaped(t, b.shape(ctx, t))
		}
	}
	return next
}

// shape returns a tool as changed by its override.
func (b *builder) shape(ctx context.Context, t *Tool) *Tool {
	if b.opts.Overrides == nil {
		return t
	}
	names := b.overrides(t)
	if len(names) == 0 {
		return t
	}
	shaped := b.opts.Overrides.Reshape(ctx, t, names)
	b.reg.diagnostics = append(b.reg.diagnostics, shaped.settle(newSettler())...)
	if b.partial && shaped.OfServer() { // only the whole registry has plain names
		shaped.Name = shaped.Qualified()
	}
	return &shaped
}

// registerShaped registers a changed tool; upstream is the tool without the
// override.
func (b *builder) registerShaped(upstream, t *Tool) {
	t.Namesakes = namesakes(&t.Definition, b.opts.Builtin)
	h := b.hidesShaped(t)
	if h != nil {
		h.Name, h.Source = upstream.Name, t.Source
		if t.IsRenamed() {
			b.reg.misfits[t.Reshaped.Name] = *h
		}
		b.reg.hidden = append(b.reg.hidden, *h)
		if h.Err != nil {
			b.diagnose(SeverityError, "override_misfit", t.Source, upstream.Name, h.Err.Error(),
				"the tool cannot be used until its override is changed or removed")
		}
		return
	}
	if t.Reshaped != nil {
		b.cutDescription(t)
	}
	if t.IsRenamed() {
		b.reg.renamed[upstream.Name] = t
	}
	b.give(t)
}

// hidesShaped returns why a changed tool is not registered, or nil if it is. The
// filters have already admitted the unchanged tool, under all names that it might
// get.
func (b *builder) hidesShaped(t *Tool) *Hidden {
	if t.Reshaped != nil || t.maybe != nil {
		t.maybe, t.mayKeep = nil, nil
		if h := b.hides(t); h != nil {
			return h
		}
	}
	if b.opts.LastShaped != nil {
		return b.opts.LastShaped(t, t.given)
	}
	return nil
}
