package transport

import "testing"

// A token can take nine tenths, even of a small limit, and the others get the rest.
func TestTokenCannotTakeEverything(t *testing.T) {
	for _, tt := range []struct{ most, one, all int }{{1, 1, 1}, {9, 9, 9}, {10, 9, 10}, {1000, 900, 1000}} {
		var s shares
		take := func(token string) (n int) {
			for n < tt.most+1 && s.Room(token, tt.most) {
				s.Add(token)
				n++
			}
			return n
		}
		if got := take("a"); got != tt.one {
			t.Errorf("one token can take %d of %d", got, tt.most)
		}
		if got := take("b"); got != tt.all-tt.one {
			t.Errorf("another can take %d of %d", got, tt.most)
		}
		s.Remove("a")
		if !s.Room("b", tt.most) || !s.Room("a", 0) {
			t.Errorf("of %d, another cannot take what was given back", tt.most)
		}
	}
}

// What others have makes room only if all is taken and the token has less than its share.
func TestWhoMakesRoom(t *testing.T) {
	s := shares{all: 8, of: map[string]int{"a": 8}}
	for _, tt := range []struct {
		holder, name string
		most         int
		want         bool
	}{{"a", "a", 8, true}, {"a", "b", 8, true}, {"a", "b", 9, false}, {"b", "a", 8, false}} {
		if got := s.Yields(tt.holder, tt.name, tt.most); got != tt.want {
			t.Errorf("one of %s for %s, at most %d: %t", tt.holder, tt.name, tt.most, got)
		}
	}
}
