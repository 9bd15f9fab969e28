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
	passed    map[string]bool // names that servers' tools do not have because they belong to another
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
