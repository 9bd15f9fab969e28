package policy

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

// approvedFor looks for one approval. An approval of a tool that has changed
// since is ignored; the changes are kept for the question.
func (d *decision) approvedFor(kind ScopeKind, value string) string {
	if d.policy.Approvals == nil {
		return ""
	}
	if !d.loaded {
		d.loaded, d.found = true, d.policy.Approvals.load()
	}
	for i := range d.found {
		a := &d.found[i]
		if a.Kind != kind || a.Value != value || a.Source != d.tool.Source {
			continue
		}
		was, covered := a.Tools[d.tool.OriginalName()]
		switch {
		case covered && was.Fingerprint == d.tool.Fingerprint():
			d.changes = nil
			return a.ID
		case covered:
			d.changes = changesSince(was, d.tool)
		case kind == ScopeServer && len(d.changes) == 0:
			d.changes = []Change{{Part: "tool"}}
		}
	}
	return ""
}
