package settings

import "slices"

// profilesKey is the setting serve.profiles, which merges by name.
const profilesKey = "serve.profiles"

// Profile is an entry of serve.profiles: what some clients of serve are offered.
type Profile struct {
	Name     string
	Preset   string   `setting:"preset"`
	Source   []string `setting:"source"` // globs
	Server   []string `setting:"server"` // globs
	Category []string `setting:"category"`
	Tag      []string `setting:"tag"`
	Expose   string   `setting:"expose"` // all, search, scripts
	Always   []string `setting:"always"` // globs
	Groups   []string `setting:"groups"` // globs; empty = it is for everybody
	Origin   Origin
}

func (m *merged) profiles() []Profile {
	var out []Profile
	for _, e := range m.named(profilesKey) {
		p := Profile{Name: e.Name, Origin: e.Origin}
		decodeEntry(&p, m.index.Row(profilesKey), e.Value, e.Origin)
		out = append(out, p)
	}
	return out
}

// profileRules are the rules of a profile and their place.
type profileRules struct {
	entry
	rules []Rule
}

// profileEntries returns the rules of the profiles in effect, in the order of their places.
func (m *merged) profileEntries() []profileRules {
	row := m.index.Row(profilesKey)
	var out []profileRules
	for _, n := range m.named(profilesKey) {
		for _, e := range m.entries[row] {
			if e.node.Get(n.Name) == n.Value {
				out = append(out, profileRules{e, rulesOf(row.Field("rules"), n.Value.Get("rules"), e.origin, n.Name)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b profileRules) int { return ruleOrder(a.entry, b.entry) })
	return out
}
