package settings

// silenceKey is the setting check.silence, a list to which all scopes add.
const silenceKey = "check.silence"

// Silence is an entry of check.silence: findings of servers check that are accepted.
type Silence struct {
	Rule   string `setting:"rule"`
	Reason string `setting:"reason"`
	Server string `setting:"server"` // a name or glob; "" = all
	Tool   string `setting:"tool"`   // a name or glob of tools, prompts or resources; "" = all
	Origin Origin
}

func (m *merged) silences() []Silence {
	row := m.index.Row(silenceKey)
	var out []Silence
	for _, e := range m.entries[row] {
		for _, n := range e.node.Items {
			o := e.origin
			o.Line, o.Col = n.Place()
			s := Silence{Origin: o}
			decodeEntry(&s, row, n, o)
			out = append(out, s)
		}
	}
	return out
}
