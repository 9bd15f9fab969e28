package policy

import "slices"

// approved returns the id of an approval that covers the whole call, "" if
// none does.
func (d *decision) approved() string {
	switch {
	case d.subject.Command != "":
		return ""
	case d.tool.IsMCP():
		if id := d.approvedFor(ScopeTool, d.tool.ServerTool); id != "" {
			return id
		}
		return d.approvedFor(ScopeServer, d.tool.Server)
	case d.isEdit():
		if id := d.approvedFor(ScopeEdits, ""); id != "" {
			return id
		}
	case len(d.subject.URLs) > 0:
		if id := d.approvedHosts(); id != "" {
			return id
		}
	}
	return d.approvedFor(ScopeTool, d.tool.OriginalName())
}

// approvedHosts requires an approval for every host of the call.
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

// approvedFor returns the id of the approval of a value, "" if there is none.
func (d *decision) approvedFor(kind ScopeKind, value string) string {
	if a := d.approval(kind, func(v string) bool { return v == value }); a != nil {
		return a.ID
	}
	return ""
}

// approval looks for one approval. An approval of a tool that has changed since
// is ignored; the changes are recorded for the question.
func (d *decision) approval(kind ScopeKind, covers func(value string) bool) *Approval {
	for i := range d.approvals() {
		a := &d.found[i]
		if a.Kind != kind || a.Source != d.tool.Source || !covers(a.Value) {
			continue
		}
		was, covered := a.Tools[d.tool.OriginalName()]
		switch {
		case covered && was.Fingerprint == d.tool.Fingerprint():
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

// approvedWhole reports whether the whole program was approved, as was possible
// before approvals named subcommands. Such an approval no longer applies.
func (d *decision) approvedWhole(program string) bool {
	return slices.ContainsFunc(d.approvals(), func(a Approval) bool {
		return a.Kind == ScopeCommand && a.Source == d.tool.Source && a.Value == program
	})
}

// approvals are read when the first one is looked for.
func (d *decision) approvals() []Approval {
	if !d.loaded && d.policy.Approvals != nil {
		d.loaded, d.found = true, d.policy.Approvals.load(d.ctx)
	}
	return d.found
}
