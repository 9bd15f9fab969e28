package settings

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
			if e.node.Get(n.Name) == n.Value {
				out = append(out, rulesOf(row.Field("rules"), n.Value.Get("rules"), e, n.Name)...)
			}
		}
	}
	return out
}
