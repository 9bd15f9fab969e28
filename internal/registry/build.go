package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// builder assigns names to tools and registers them.
type builder struct {
	opts     Options
	partial  bool
	reg      *Registry
	builtins map[string]bool // names and aliases in lower case that a plugin id must not have
	// core has the built-in tools by name and alias in lower case. Tools of plugins cannot take
	// these names.
	core      map[string]*Tool
	aliases   map[string]*Tool  // aliases of built-in tools; tools of servers cannot take them
	mixedCase map[string]string // names with capital letters, by their lower-case form
	given     map[string]GivenName
	passed    map[string]bool // names that servers' tools do not get because they belong to another server
	failed    []string        // the servers that failed so far
	again     bool            // names are being assigned again, after overrides
}

// newBuilder returns a builder for about n tools.
func newBuilder(opts Options, partial bool, n int) *builder {
	return &builder{
		opts: opts, partial: partial,
		reg: &Registry{
			tools:      make([]*Tool, 0, n),
			names:      make(map[string]*Tool, n),
			versions:   map[string][]*Tool{},
			other:      map[string]*Tool{},
			steps:      map[string]*Tool{},
			renamed:    map[string]*Tool{},
			misfits:    map[string]Hidden{},
			kept:       map[string]Hidden{},
			validators: map[*Tool]*Validator{},
		},
		builtins:  map[string]bool{},
		core:      map[string]*Tool{},
		aliases:   map[string]*Tool{},
		mixedCase: map[string]string{},
		given:     map[string]GivenName{},
		passed:    map[string]bool{},
	}
}

func (b *builder) put(t *Tool) {
	b.reg.tools = append(b.reg.tools, t)
	b.reg.names[t.Name] = t
	b.warnOfCaseTwin(t)
	if t.Source == SourceBuiltin {
		b.core[strings.ToLower(t.Name)] = t
		for _, alias := range t.Aliases {
			b.aliases[alias] = t
			b.core[strings.ToLower(alias)] = t
		}
	}
}

// warnOfCaseTwin warns about names that differ only in case, because people and
// file systems confuse them.
func (b *builder) warnOfCaseTwin(t *Tool) {
	lower := strings.ToLower(t.Name)
	first, ok := b.mixedCase[lower]
	if !ok && lower != t.Name {
		b.mixedCase[lower] = t.Name
		if b.reg.names[lower] != nil {
			first, ok = lower, true
		}
	}
	if ok && first != t.Name {
		b.diagnose(SeverityWarning, "name_case_twin", t.Source, t.Name,
			fmt.Sprintf("tool %q differs from %q only in case", t.Name, first), "")
	}
}

// qualify registers t under name or, if that is taken too, under name with a hash
// of the original name. old is the tool that has the plain name; it may be nil.
func (b *builder) qualify(t, old *Tool, name string) {
	plain := t.Name
	_, taken := b.reg.names[name]
	if _, kept := b.keptFrom(t, name); taken || kept {
		name = hashedName(name, t.Source+"\x00"+t.ServerTool+"\x00"+plain)
	}
	if _, taken := b.reg.names[name]; taken {
		b.diagnose(SeverityError, "name_taken", t.Source, name,
			fmt.Sprintf("tool %q is ignored: %q is also taken", plain, name), "rename the tool")
		return
	}
	t.Name = name
	if old != nil {
		severity, hint := SeverityInfo, anotherName(t, old)
		if hint != "" {
			severity = SeverityWarning
		}
		b.diagnose(severity, "name_qualified", t.Source, name,
			fmt.Sprintf("the name %q is taken by %s; registered as %q", plain, old.Source, name), hint)
	}
	b.put(t)
}

// anotherName returns a hint for tools that have the same name because of an
// override, or "" if no override renames one of them.
func anotherName(tools ...*Tool) string {
	for _, t := range tools {
		if t.IsRenamed() {
			return "choose another name in the override at " + t.Reshaped.Origin
		}
	}
	return ""
}

// hashedName appends "_" and 6 hex digits of the hash of original to name,
// within the length limit.
func hashedName(name, original string) string {
	sum := sha256.Sum256([]byte(original))
	if len(name) > maxName-7 {
		name = name[:maxName-7]
	}
	return name + "_" + hex.EncodeToString(sum[:3])
}

func (b *builder) hide(t *Tool, h *Hidden) {
	h.Name, h.Version, h.Source = t.Name, t.Version, t.Source
	b.reg.hidden = append(b.reg.hidden, *h)
}

// filtered returns why the filters do not admit a tool, or nil if they do.
func (b *builder) filtered(t *Tool) *Hidden {
	for _, filter := range b.opts.Filters {
		if h := filter(t); h != nil {
			hidden := *h
			return &hidden
		}
	}
	return nil
}

func (b *builder) diagnose(sev Severity, code, source, tool, msg, hint string) {
	d := Diagnostic{Severity: sev, Code: code, Source: source, Tool: tool, Message: msg, Hint: hint}
	if !b.again || !slices.Contains(b.reg.diagnostics, d) {
		b.reg.diagnostics = append(b.reg.diagnostics, d)
	}
}

func (b *builder) versionsOf(t *Tool) []*Tool {
	if all := b.reg.versions[t.Name]; all != nil {
		return all
	}
	return []*Tool{t}
}

func (b *builder) keptFrom(t *Tool, name string) (Owner, bool) {
	if b.opts.Names == nil || !t.OfServer() {
		return Owner{}, false
	}
	o := b.opts.Names.Owner(name)
	return o, o.Kept && o.Server != t.Server
}

// putPlain registers a tool under a name that is free. For a server's tool it records
// that the name was given.
func (b *builder) putPlain(t *Tool) {
	if b.opts.Names != nil && t.isPlain() {
		o := b.opts.Names.Owner(t.Name)
		t.Contested = ""
		if len(b.failed) > 0 && o.Unsure {
			t.Contested = b.failed[0]
		}
		// Without the lock of a project that is not trusted, would another have the name?
		t.Lent = o.Lent && (o.Other || b.passed[t.Name] || len(b.failed) > 0)
		if t.Lent {
			b.diagnose(SeverityInfo, codeNameLent, t.Source, t.Name,
				fmt.Sprintf("server %q has the name %q only because of the lock file of this project, which is not trusted: settings that allow %q by this name do not apply",
					t.Server, t.Name, t.Name),
				"in rules, name "+t.Qualified())
		}
		b.given[t.Name] = GivenName{t.Name, t.Server, t.Contested != "", t.Lent}
	}
	b.put(t)
}

// hidesLent hides a tool of the project that a list of tools to keep names only by a name that the
// project gave it.
func (b *builder) hidesLent(t *Tool) bool {
	if !t.Lent || !t.OfProject {
		return false
	}
	h := b.filtered(t)
	if h != nil {
		b.hide(t, h)
	}
	return h != nil
}

// yields hides a registered tool as [builder.hidesLent] does, in all versions, so that its name is
// free.
func (b *builder) yields(old *Tool) bool {
	all := slices.Clone(b.versionsOf(old))
	for _, t := range all {
		t.Lent = old.Lent
		if !b.hidesLent(t) {
			return false
		}
	}
	b.reg.tools = slices.DeleteFunc(b.reg.tools, func(t *Tool) bool { return t == old })
	delete(b.reg.names, old.Name)
	delete(b.reg.versions, old.Name)
	delete(b.given, old.Name)
	return true
}

// lendTaken marks a tool of the project that is not a server's if its name belongs to a server,
// which may be absent.
func (b *builder) lendTaken(t *Tool) {
	if b.opts.Names == nil || !t.OfProject || t.OfServer() {
		return
	}
	o := b.opts.Names.Owner(t.Name)
	t.Lent = o.Kept && o.Server != ""
}

// qualifyKept registers a tool under its qualified name, because its plain name is kept
// for another server.
func (b *builder) qualifyKept(t *Tool, o Owner) {
	plain := t.Name
	if t.Lent = t.OfProject; b.hidesLent(t) {
		return
	}
	t.Lent = false
	b.passed[plain] = true
	if o.Foreign {
		t.ousted = plain
	}
	b.qualify(t, nil, t.Qualified())
	if o.Server != "" && t.Name != plain {
		b.diagnose(SeverityInfo, CodeNameKept, t.Source, t.Name,
			fmt.Sprintf("the name %q belongs to server %q; registered as %q", plain, o.Server, t.Name),
			fmt.Sprintf("in rules, name %s or %s", ValidName(o.Server+"__"+plain), t.Name))
	}
}

// explainKept records, for each kept name that its server's tool does not have, whose it
// is and why the tool is not there.
func (b *builder) explainKept() {
	if b.opts.Names == nil || b.partial {
		return
	}
	reports := map[string]SourceReport{}
	for _, r := range b.reg.reports {
		reports[r.Name] = r
	}
	hidden := map[[2]string]*Hidden{}
	for i := range b.reg.hidden {
		h := &b.reg.hidden[i]
		hidden[[2]string{ValidName(h.Name), h.Source}] = h
	}
	belongs := map[string]string{} // the beginning of the reason, by server
	for _, k := range b.opts.Names.Kept() {
		if t := b.reg.names[k.Name]; t != nil {
			continue // its own, or a local tool that comes first
		}
		source := MCPPrefix + k.Server
		if k.IsAPI {
			source = APIPrefix + k.Server
		}
		if belongs[k.Server] == "" {
			belongs[k.Server] = fmt.Sprintf("it belongs to server %q", k.Server)
		}
		h := Hidden{Name: k.Name, Source: source, Setting: k.Setting, Kept: true, Reason: belongs[k.Server]}
		report, loaded := reports[source]
		was := hidden[[2]string{k.Name, source}]
		if m, ok := b.reg.misfits[k.Name]; ok && was == nil && m.Source == source {
			was = &m
		}
		switch t := b.reg.renamed[k.Name]; {
		case k.Absent != "":
			h.Reason += ", which is " + k.Absent
		case !loaded || t != nil && t.Source == source:
			continue
		case report.Err != nil:
			h.Reason, h.Err = h.Reason+": "+
				strings.TrimPrefix(report.Err.Error(), fmt.Sprintf("server %q: ", k.Server)), report.Err
		case was != nil:
			h.Reason, h.Setting, h.Err = h.Reason+": "+was.Reason, was.Setting, was.Err
			b.reg.kept[k.Name] = h
			continue
		default:
			h.Reason += ", which no longer has it under this name"
		}
		b.reg.kept[k.Name] = h
		b.reg.hidden = append(b.reg.hidden, h)
	}
}
