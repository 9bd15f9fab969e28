package settings

// silenceKey is the setting check.silence, a list to which all scopes add.
const silenceKey = "check.silence"

// Silence is an entry of check.silence: findings of servers check that are accepted.
type Silence struct {
	Rule   string `setting:"rule"`
	Reason string `setting:"reason"`
	Server string `setting:"server"` // a name or glob; "" means all
	Tool   string `setting:"tool"`   // a name or glob of tools, prompts or resources; "" means all
	Origin Origin
}

func (m *merged) silences() []Silence {
	return listOf(m, silenceKey, func(s *Silence) *Origin { return &s.Origin })
}

// listOf decodes a list to which all scopes add. origin returns the field of an entry with its
// place.
func listOf[T any](m *merged, key string, origin func(*T) *Origin) []T {
	row := m.index.Row(key)
	var out []T
	for _, e := range m.entries[row] {
		for _, n := range e.node.Items {
			o := e.origin
			o.Line, o.Col = n.Place()
			var one T
			*origin(&one) = o
			decodeEntry(&one, row, n, o)
			out = append(out, one)
		}
	}
	return out
}
