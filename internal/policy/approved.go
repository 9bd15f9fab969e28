package policy

import "slices"

// approved returns the id of an approval that covers the whole call, or "" if none
// does.
func (d *decision) approved() string {
	switch {
	case d.subject.Command != "":
		return ""
	case d.tool.OfServer():
		if id := d.approvedFor(ScopeTool, d.tool.ServerTool); id != "" {
			return id
		}
		return d.approvedFor(ScopeServer, d.tool.Server)
	case d.isEdit():
		if id := d.approvedFor(ScopeEdits, ""); id != "" {
			return id
		}
	default:
		if id := d.approvedHosts(); id != "" {
			return id
		}
	}
	return d.approvedFor(ScopeTool, d.tool.OriginalName())
}

// approvedHosts returns the id of the first approval if every host of the call is
// approved, and "" otherwise.
func (d *decision) approvedHosts() string {
	first := ""
	for _, h := range hostsOf(d.subject.URLs) {
		id := d.approvedFor(ScopeHost, h)
		if id == "" {
			return ""
		}
		if first == "" {
			first = id
		}
	}
	return first
}

// approvedFor returns the id of the approval of a value, or "" if it is not
// approved.
func (d *decision) approvedFor(kind ScopeKind, value string) string {
	if a := d.approval(kind, func(a *Approval) bool { return a.Value == value }); a != nil {
		return a.ID
	}
	return ""
}

// approval returns the approval of a kind whose value is covered. Approvals of a
// tool that has changed since are ignored, and the changes are recorded for the
// question.
func (d *decision) approval(kind ScopeKind, covers func(*Approval) bool) *Approval {
	for i := range d.approvals() {
		a := &d.found[i]
		if a.Kind != kind || a.Source != d.tool.Source || !covers(a) {
			continue
		}
		was, covered := a.Tools[d.tool.OriginalName()]
		switch {
		case covered && d.policy.Approvals.isApproved(d.ctx, was, d.tool):
			d.changes = nil
			return a
		case covered:
			d.changes = changesSince(was, d.tool)
		case kind == ScopeServer && len(d.changes) == 0:
			d.changes = []Change{{Part: "tool"}}
		}
	}
	return nil
}

// approvedWhole reports whether there is an approval of a whole program. Older
// versions of toolreg stored these; they no longer apply.
func (d *decision) approvedWhole(program string) bool {
	return slices.ContainsFunc(d.approvals(), func(a Approval) bool {
		return a.Kind == ScopeCommand && a.Source == d.tool.Source && a.Value == program
	})
}

// approvals returns the approvals, which are read on first use.
func (d *decision) approvals() []Approval {
	if !d.loaded && d.policy.Approvals != nil {
		d.loaded = true
		d.found, d.away = d.policy.Approvals.load(d.ctx)
	}
	return d.found
}
