package settings

// rulesKey is the one list whose places add up: every place's rules count, in
// the order of spec section 8.3.
const rulesKey = "policy.rules"

// ruleEntries orders the rules of all places: those of --settings files first,
// the last file's before, then system, user, project.
func (m *merged) ruleEntries() []entry {
	var named, rest []entry
	for _, e := range m.entries[m.index.byName[rulesKey]] {
		if e.origin.Scope == ScopeFile {
			named = append([]entry{e}, named...)
		} else {
			rest = append(rest, e)
		}
	}
	return append(named, rest...)
}

func (m *merged) ruleNode() *node {
	out := &node{kind: kindList}
	for _, e := range m.ruleEntries() {
		out.items = append(out.items, e.node.items...)
	}
	return out
}

func (m *merged) rules() []Rule {
	var out []Rule
	for _, e := range m.ruleEntries() {
		for _, n := range e.node.items {
			o := e.origin
			o.Line, o.Col = n.line, n.col
			out = append(out, Rule{
				Tool: n.str("tool"), Source: n.str("source"), Server: n.str("server"), Category: n.str("category"),
				Command: n.str("command"), Path: n.str("path"), Decision: n.str("decision"), Reason: n.str("reason"), Origin: o,
			})
		}
	}
	return out
}
