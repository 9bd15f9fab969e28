package settings

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// rulesKey is the setting policy.rules, a list to which all scopes add. ruleEntries
// determines the order of the rules.
const rulesKey = "policy.rules"

// ruleOrder compares places by the order in which their rules are tried: those of --settings
// files first (last file first), then system, user, project.
func ruleOrder(a, b layers.Setting) int {
	rank := func(e layers.Setting) int {
		if e.Origin.Scope == ScopeFile {
			return -1 - e.Layer
		}
		return e.Layer
	}
	return cmp.Compare(rank(a), rank(b))
}

// ruleEntries orders the rules of all scopes.
func (m *merged) ruleEntries() []layers.Setting {
	return slices.SortedStableFunc(slices.Values(m.entries[m.index.Row(rulesKey)]), ruleOrder)
}

// rules returns the rules in their order, those of profiles first.
func (m *merged) rules() []Rule {
	out := m.profileRules()
	for _, e := range m.ruleEntries() {
		out = append(out, rulesOf(m.index.Row(rulesKey), e.Value, e, "")...)
	}
	return out
}

// rulesOf reads a checked list of rules; row is that of a rule's fields, in is where they are.
func rulesOf(row *table.Row, list *jsonx.Value, in layers.Setting, profile string) []Rule {
	if list == nil {
		return nil
	}
	var out []Rule
	set(reflect.ValueOf(&out).Elem(), row, list, in.Origin)
	for i := range out {
		out[i].Profile, out[i].Layer = profile, in.Layer
	}
	return out
}

// exampleCalls reads a checked list of calls; o is the origin of its rule.
func exampleCalls(list *jsonx.Value, o Origin) []ExampleCall {
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

// profilesKey is the setting serve.profiles, which merges by name.
const profilesKey = "serve.profiles"

// Profile is an entry of serve.profiles: what some clients of serve are offered.
type Profile struct {
	Name     string   `setting:"*"`
	Preset   string   `setting:"preset"`
	Source   []string `setting:"source"` // globs
	Server   []string `setting:"server"` // globs
	Category []string `setting:"category"`
	Tag      []string `setting:"tag"`
	Expose   string   `setting:"expose"` // all, search, scripts
	Always   []string `setting:"always"` // globs
	Groups   []string `setting:"groups"` // globs; without any the profile is for everybody
	Origin   Origin
}

// profileRules returns the rules of the profiles in effect.
func (m *merged) profileRules() []Rule {
	row := m.index.Row(profilesKey)
	var out []Rule
	for _, n := range m.named(profilesKey) {
		for _, e := range m.entries[row] {
			if e.Value.Get(n.Name) == n.Value {
				out = append(out, rulesOf(row.Field("rules"), n.Value.Get("rules"), e, n.Name)...)
			}
		}
	}
	return out
}
