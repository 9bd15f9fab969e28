package serve

// shares counts what each token has of something that all clients share, such as
// sessions. The zero value counts nothing.
type shares struct {
	all int
	of  map[string]int // by the name of the token
}

// room reports whether a token may have one more if there can be most; 0 is no limit. A
// tenth is left to the other tokens.
func (s *shares) room(name string, most int) bool {
	return most <= 0 || s.all < most && s.of[name] < most-most/10
}

func (s *shares) add(name string) {
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[name]++
}

func (s *shares) remove(name string) {
	s.all--
	if s.of[name]--; s.of[name] == 0 {
		delete(s.of, name)
	}
}
