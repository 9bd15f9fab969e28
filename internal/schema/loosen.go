package schema

import "github.com/toolreg/toolreg/internal/jsonx"

// Loosen changes the schemas of root around those in open, of which something was removed so that they
// accept more values than they should. Where more would be refused for that, they accept more, too: not and
// if are removed, and oneOf becomes anyOf.
func Loosen(root *jsonx.Value, open map[*jsonx.Value]bool) {
	if len(open) == 0 {
		return
	}
	l := loosening{refs: NewRefs(root), loose: open, seen: map[*jsonx.Value]bool{}}
	l.visit(root)
}

type loosening struct {
	refs  *Refs
	loose map[*jsonx.Value]bool
	seen  map[*jsonx.Value]bool
}

// visit visits s and all below, and reports whether s accepts more than it should.
func (l *loosening) visit(s *jsonx.Value) bool {
	if !s.Is(jsonx.Object) || l.seen[s] {
		return l.loose[s]
	}
	l.seen[s] = true
	if ref := s.Get("$ref"); ref.Is(jsonx.String) && l.visit(l.refs.Lookup(ref.Text())) {
		l.loose[s] = true
	}
	var within []string // keywords with such schemas
	for _, m := range s.Members {
		if Under(m.Name) == Other || Under(m.Name) == Data {
			continue
		}
		loose := false
		for part := range Within(jsonx.NewObject(m)) {
			loose = l.visit(part) || loose
		}
		if loose {
			within = append(within, m.Name)
			l.loose[s] = true
		}
	}
	for _, keyword := range within {
		switch keyword {
		case "not", "if": // without if, then and else only describe params
			s.Remove(keyword)
		case "oneOf":
			alternatives := jsonx.NewMember("anyOf", s.Get(keyword))
			s.Remove(keyword)
			Add(s, alternatives)
		}
	}
	return l.loose[s]
}
