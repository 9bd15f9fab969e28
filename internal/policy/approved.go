package policy

import "slices"

func (m *matter) recall() recalled { return m.remembered.get(m.lookUp) }

func (m *matter) lookUp() (out recalled) {
	if m.part != nil {
		covers := func(a *Approval) bool { return m.part.Covered(a.Value, a.Confined) }
		if m.doubt == "" {
			out.approval, out.changes = m.approval(nil, ScopeCommand,
				func(a *Approval) bool { return (a.Confined || m.elsewhere == "") && covers(a) })
		}
		if out.approval == nil && m.elsewhere != "" {
			var other *Approval
			other, out.changes = m.approval(out.changes, ScopeCommand, covers)
			out.elsewhere = other != nil
		}
		return out
	}
	has := func(kind ScopeKind, value string) bool {
		out.approval, out.changes = m.approval(out.changes, kind, func(a *Approval) bool { return a.Value == value })
		return out.approval != nil
	}
	switch {
	case m.subject.Command != "": // it has only comments
	case m.tool.OfServer():
		_ = has(ScopeTool, m.tool.ServerTool) || has(ScopeServer, m.tool.Server)
	case m.isEdit():
		_ = has(ScopeEdits, "") || has(ScopeTool, m.tool.OriginalName())
	default:
		hosts := hostsOf(m.subject.URLs)
		others := slices.ContainsFunc(hosts, func(host string) bool { return !has(ScopeHost, host) })
		_ = len(hosts) > 0 && !others || has(ScopeTool, m.tool.OriginalName())
	}
	return out
}

// approval returns the approval of this kind that covers the value. It ignores approvals of a tool
// that has changed since, and adds those changes to known.
func (f *facts) approval(known []Change, kind ScopeKind, covers func(*Approval) bool) (*Approval, []Change) {
	list := f.approvals().list
	for i := range list {
		a := &list[i]
		if a.Kind != kind || a.Source != f.tool.Source || !covers(a) {
			continue
		}
		was, covered := a.Tools[f.tool.OriginalName()]
		switch {
		case covered && f.policy.Approvals.isApproved(f.ctx, was, f.tool):
			return a, nil
		case covered:
			known = changesSince(was, f.tool)
		case kind == ScopeServer && len(known) == 0:
			known = []Change{{Part: "tool"}}
		}
	}
	return nil, known
}

func (f *facts) approvals() stored {
	return f.stored.get(func() (out stored) {
		if f.policy.Approvals != nil {
			out.list, out.away = f.policy.Approvals.load(f.ctx)
		}
		return out
	})
}
