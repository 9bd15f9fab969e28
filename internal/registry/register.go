package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/text"
)

func (b *builder) add(f *finding) {
	b.reg.reports = append(b.reg.reports, f.report)
	b.reg.diagnostics = append(b.reg.diagnostics, f.diags...)
	if f.report.Err != nil {
		b.diagnose(SeverityError, "source_failed", f.report.Name, "", f.report.Err.Error(), HintOf(f.report.Err))
		if server, ok := ServerOf(f.report.Name); ok {
			b.failed = append(b.failed, server)
		}
		return
	}
	if id, ok := strings.CutPrefix(f.report.Name, PluginPrefix); ok && b.builtins[strings.ToLower(id)] {
		b.diagnose(SeverityError, "plugin_blocked", f.report.Name, "",
			fmt.Sprintf("plugin %q has the name of a built-in tool; none of its tools are registered", id),
			"give the plugin another id")
		return
	}
	for i := range f.tools {
		b.register(&f.tools[i])
	}
}

func (b *builder) register(found *Tool) {
	t := *found // a copy, because another registry may give the tool another name
	t.given = t.Name
	name, prefix := ValidName(t.Name), ""
	if b.opts.Prefix != nil && t.OfServer() {
		prefix = b.opts.Prefix(t.Server)
		name = ValidName(prefix + t.Name)
	}
	t.maybe, t.mayKeep = newNames(b.opts.Overrides, &t, name)
	if b.opts.Project != nil {
		t.OfProject, t.Replaces = b.opts.Project(&t)
	}
	t.Namesakes = namesakes(&t.Definition, b.opts.Builtin)
	if t.Source == SourceBuiltin {
		for _, name := range append([]string{t.Name}, t.Aliases...) {
			b.builtins[strings.ToLower(name)] = true
		}
	}
	if h := b.hides(&t); h != nil {
		b.hide(&t, h)
		for _, name := range t.maybe {
			b.reg.misfits[name] = *h
		}
		return
	}
	if t.Name == "" {
		b.diagnose(SeverityError, "tool_nameless", t.Source, "", "a tool without a name was skipped", "")
		return
	}
	b.cutDescription(&t)
	if t.Name = name; name != t.given && !t.OfServer() {
		t.Given = t.given
	}
	t.DisplayName = cmp.Or(t.DisplayName, t.Name)
	t.Icon = cmp.Or(t.Icon, defaultIcon)
	switch {
	case b.isUnsettled(&t): // only the whole registry can tell
	case t.OfServer() && b.partial && prefix == "":
		b.qualify(&t, nil, t.Qualified())
	default:
		b.give(&t)
	}
}

func (b *builder) cutDescription(t *Tool) {
	if max := b.opts.MaxDescription; max > 0 && int64(len(t.Description)) > max {
		t.Description = fmt.Sprintf("%s [cut at %d of %d bytes]",
			text.Head(t.Description, int(max)), max, len(t.Description))
	}
}

// give registers a tool under its name, or under another if that is taken.
func (b *builder) give(t *Tool) {
	switch old, taken := b.owner(t); {
	case !taken:
		if o, kept := b.keptFrom(t, t.Name); kept && t.isPlain() {
			b.qualifyKept(t, o)
			return
		}
		if b.lendTaken(t); !b.hidesLent(t) {
			b.putPlain(t)
		}
	case isVersionOf(t, old):
		b.putVersion(t)
	default:
		b.conflict(t, old)
	}
}

func (b *builder) owner(t *Tool) (old *Tool, taken bool) {
	if old, taken = b.reg.names[t.Name]; taken {
		return old, true
	}
	switch {
	case t.OfServer() || t.Source == SourceCommand:
		old = b.aliases[t.Name]
	case yieldsToCore(t):
		old = b.core[strings.ToLower(t.Name)]
	}
	return old, old != nil
}

// yieldsToCore reports whether a tool must not have a name that is an alias of
// a built-in tool or differs from its name only in case, because rules and
// models that use this name mean the built-in tool.
func yieldsToCore(t *Tool) bool {
	return strings.HasPrefix(t.Source, PluginPrefix) || t.Source == SourceComposite
}

// defaultIcon is the icon of tools whose source does not set one.
const defaultIcon = "hammer"

// hides returns why a tool is not registered, or nil if it is.
func (b *builder) hides(t *Tool) *Hidden {
	if h := b.filtered(t); h != nil {
		return h
	}
	if b.opts.Last != nil && !b.again {
		if h := b.opts.Last(t); h != nil {
			return h
		}
	}
	if t.Quarantine != nil {
		return &Hidden{Reason: t.Quarantine.Error(), Setting: t.Declared, Err: t.Quarantine}
	}
	return nil
}

func (b *builder) conflict(t, old *Tool) {
	t.Lent = t.Lent || t.OfProject && !old.OfProject
	old.Lent = old.Lent || old.OfProject && !t.OfProject
	switch {
	case b.hidesLent(t):
	case t.Name == old.Name && b.yields(old):
		b.give(t)
	case old.Source == SourceHost && !t.OfServer():
		b.diagnose(SeverityWarning, "name_taken", t.Source, t.Name,
			fmt.Sprintf("tool %q is left out: the host provides a tool of this name", t.Name), "")
	case t.OfServer():
		if old.OfProject && !t.OfProject {
			t.ousted = t.Name
		}
		b.qualify(t, old, t.Qualified())
	case t.Source == SourceCommand && b.opts.Conflicts == ConflictQualify:
		b.qualify(t, old, ValidName(qualifiedPrefix+t.Name))
	case t.Source == SourceCommand && b.opts.Conflicts != ConflictReject:
		b.diagnose(SeverityWarning, "name_overwritten", t.Source, t.Name,
			fmt.Sprintf("tool with name %q is already registered (%s); overwriting", t.Name, owned(t.Name, old)),
			"set conflicts.discovered to qualify to keep both, or to reject to keep the earlier one")
		if t.Name == old.Name {
			b.reg.tools[slices.Index(b.reg.tools, old)] = t
			b.reg.names[t.Name] = t
			delete(b.reg.versions, t.Name)
		} else { // old has the name as an alias and keeps its own
			b.put(t)
		}
	default:
		hint := "rename the tool"
		if renamed := anotherName(t, old); renamed != "" {
			hint = renamed
		} else if t.Declared != "" {
			hint += " in " + t.Declared
		}
		b.diagnose(SeverityError, "name_taken", t.Source, t.Name,
			fmt.Sprintf("tool %q is ignored: the name is taken by %s", t.Name, owned(t.Name, old)), hint)
	}
}

// owned returns the source of a tool, with the tool's name if that differs from
// name.
func owned(name string, t *Tool) string {
	if t.Name == name {
		return t.Source
	}
	return fmt.Sprintf("%s tool %q", t.Source, t.Name)
}

// isVersionOf reports whether t and old may have the same name as different
// versions. Both must come from the same source, so that no source can replace
// another's tool by a higher version.
func isVersionOf(t, old *Tool) bool {
	return t.Source == old.Source && !t.OfServer() && t.Version != "" && old.Version != "" &&
		t.Version != old.Version && t.OriginalName() == old.OriginalName()
}

func (b *builder) putVersion(t *Tool) {
	all := b.versionsOf(b.reg.names[t.Name])
	if slices.ContainsFunc(all, func(o *Tool) bool { return o.Version == t.Version }) {
		b.conflict(t, b.reg.names[t.Name])
		return
	}
	all = append(all, t)
	slices.SortStableFunc(all, func(x, y *Tool) int { return CompareVersions(y.Version, x.Version) })
	b.reg.versions[t.Name] = all
	b.reg.tools[slices.Index(b.reg.tools, b.reg.names[t.Name])] = all[0]
	b.reg.names[t.Name] = all[0]
}

// registry returns the finished registry. It adds aliases and qualified names
// last, so that they never take a name from a registered tool.
func (b *builder) registry() *Registry {
	b.withdraw()
	b.reg.explain = sync.OnceFunc(b.explainKept)
	for _, t := range b.reg.tools {
		for _, name := range t.names("") {
			b.addAlias(t, name)
		}
	}
	return b.reg
}

func (b *builder) addAlias(t *Tool, name string) {
	if name == "" || b.reg.names[name] != nil {
		return
	}
	if _, kept := b.keptFrom(t, name); kept {
		return
	}
	if b.reg.other[name] == nil {
		b.reg.other[name] = t
	}
}

// newNames returns the names that overrides might give a tool, whatever its registered name will
// be, and separately those that do not come from a project's override. name is the tool's own valid
// name.
func newNames(o Overrides, t *Tool, name string) (all, own []string) {
	if o == nil {
		return nil, nil
	}
	for _, name := range t.names(name) {
		renamed := o.NewName(name)
		if renamed == "" {
			continue
		}
		if all = append(all, renamed); !o.IsProjects(name) {
			own = append(own, renamed)
		}
	}
	return all, own
}

// isUnsettled reports whether the whole registry is needed to decide whether an
// override applies to a tool, because its key is the tool's plain name, which may
// belong to another server.
func (b *builder) isUnsettled(t *Tool) bool {
	if !b.partial || !t.OfServer() || b.opts.Overrides == nil || !b.opts.Overrides.Has(t.Name) {
		return false
	}
	old, taken := b.owner(t)
	return !taken || old.OfProject
}

// withdraw removes tools that overrides or Options.Outside hide, and tools that only pages of their
// servers may call. Their names stay reserved. Steps of composites can still call the former.
func (b *builder) withdraw() {
	hides := func(t *Tool) *Hidden {
		if t.Reshaped != nil && t.Reshaped.Hidden {
			return &Hidden{Reason: "an override hides it", Setting: t.Reshaped.Origin}
		}
		if b.opts.Outside != nil {
			return b.opts.Outside(t)
		}
		return nil
	}
	b.reg.tools = slices.DeleteFunc(b.reg.tools, func(t *Tool) bool {
		h := hides(t)
		if h == nil && t.forApp() {
			b.hide(t, &Hidden{Reason: "only pages of its server may call it", Setting: "_meta.ui.visibility of the server"})
			b.reg.apps = append(b.reg.apps, t)
			delete(b.reg.names, t.Name)
			delete(b.reg.versions, t.Name)
			maps.DeleteFunc(b.reg.other, func(_ string, other *Tool) bool { return other == t })
			return true
		}
		if h == nil {
			return false
		}
		for _, v := range b.versionsOf(t) {
			b.hide(v, h)
		}
		delete(b.reg.names, t.Name)
		delete(b.reg.versions, t.Name)
		for _, name := range t.names(t.Name) {
			if b.reg.names[name] == nil && b.reg.steps[name] == nil {
				b.reg.steps[name] = t
			}
		}
		return true
	})
}

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
		for _, n := range upstream.names(upstream.Name) {
			b.reg.renamed[n] = cmp.Or(b.reg.renamed[n], t)
		}
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
