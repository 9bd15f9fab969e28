package settings

import (
	"reflect"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// rules returns the rules in their order, those of profiles first.
func rules(m *merge.Merged) []Rule {
	out := profileRules(m)
	for _, e := range m.Rules() {
		out = append(out, rulesOf(m.Index.Row(merge.RulesKey), e.Value, e, "")...)
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
func profileRules(m *merge.Merged) []Rule {
	row := m.Index.Row(profilesKey)
	var out []Rule
	for _, n := range m.Named(profilesKey) {
		for _, e := range m.Of(row) {
			if e.Value.Get(n.Name) == n.Value {
				out = append(out, rulesOf(row.Field("rules"), n.Value.Get("rules"), e, n.Name)...)
			}
		}
	}
	return out
}
