package settings

import "github.com/toolreg/toolreg/internal/settings/document"

// rulesKey is the one list to which all scopes add: their rules apply in the
// order of spec section 8.3.
const rulesKey = "policy.rules"

// ruleEntries orders the rules of all scopes: those of --settings files first
// (last file first), then system, user, project.
func (m *merged) ruleEntries() []entry {
	var named, rest []entry
	for _, e := range m.entries[m.index.Row(rulesKey)] {
		if e.origin.Scope == ScopeFile {
			named = append([]entry{e}, named...)
		} else {
			rest = append(rest, e)
		}
	}
	return append(named, rest...)
}

func (m *merged) ruleNode() *document.Node {
	out := &document.Node{Kind: document.List}
	for _, e := range m.ruleEntries() {
		out.Items = append(out.Items, e.node.Items...)
	}
	return out
}

func (m *merged) rules() []Rule {
	var out []Rule
	for _, e := range m.ruleEntries() {
		for _, n := range e.node.Items {
			o := e.origin
			o.Line, o.Col = n.Line, n.Col
			out = append(out, Rule{
				Tool: n.Get("tool").Str(), Source: n.Get("source").Str(), Server: n.Get("server").Str(), Category: n.Get("category").Str(),
				Command: n.Get("command").Str(), Path: n.Get("path").Str(), When: n.Get("when").Str(),
				Decision: n.Get("decision").Str(), Reason: n.Get("reason").Str(), Origin: o,
				Match: exampleCalls(n.Get("match"), o), NotMatch: exampleCalls(n.Get("notMatch"), o),
			})
		}
	}
	return out
}

// exampleCalls reads a list of calls that was checked; o is where its rule is set.
func exampleCalls(list *document.Node, o Origin) []ExampleCall {
	if list == nil {
		return nil
	}
	var out []ExampleCall
	for _, n := range list.Items {
		o.Line, o.Col = n.Line, n.Col
		call := ExampleCall{Tool: n.Get("tool").Str(), Line: n.Str(), Origin: o}
		if params := n.Get("params"); params != nil {
			call.Params = params.Encode()
		}
		out = append(out, call)
	}
	return out
}
