package registry

import (
	"fmt"
	"slices"
	"strings"
)

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
				fmt.Sprintf("server %q has the name %q by the lock file of this project, which is not trusted: what allows %q by its name does not count",
					t.Server, t.Name, t.Name),
				"in rules, name "+t.Qualified())
		}
		b.given[t.Name] = GivenName{t.Name, t.Server, t.Contested != "", t.Lent}
	}
	b.put(t)
}

// lend marks the tool of the project if only one of two tools with the same name is one.
func lend(t, old *Tool) {
	t.Lent = t.Lent || t.OfProject && !old.OfProject
	old.Lent = old.Lent || old.OfProject && !t.OfProject
}

// hidesLent hides a tool of the project that a list of the tools to keep does not have by a name of
// its own.
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
