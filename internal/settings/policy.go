package settings

import "github.com/toolreg/toolreg/internal/jsonx"

// rulesKey is the setting policy.rules, a list to which all scopes add. ruleEntries
// determines the order of the rules.
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

func (m *merged) ruleNode() *jsonx.Value {
	out := &jsonx.Value{Kind: jsonx.Array}
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
			o.Line, o.Col = n.Place()
			r := Rule{Origin: o, Match: exampleCalls(n.Get("match"), o), NotMatch: exampleCalls(n.Get("notMatch"), o)}
			if hints := n.Get("annotations"); hints != nil {
				r.Annotations = map[string]bool{}
				for _, m := range hints.Members {
					r.Annotations[m.Name] = m.Value.Is(jsonx.True)
				}
			}
			decodeEntry(&r, m.index.Row(rulesKey), n, o)
			out = append(out, r)
		}
	}
	return out
}

// exampleCalls reads a checked list of calls; o is the origin of its rule.
func exampleCalls(list *jsonx.Value, o Origin) []ExampleCall {
	if list == nil {
		return nil
	}
	var out []ExampleCall
	for _, n := range list.Items {
		o.Line, o.Col = n.Place()
		call := ExampleCall{Tool: n.Get("tool").Text(), Line: n.Text(), Origin: o}
		if params := n.Get("params"); params != nil {
			call.Params = params.JSON()
		}
		out = append(out, call)
	}
	return out
}
