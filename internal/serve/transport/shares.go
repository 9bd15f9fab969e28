package transport

import (
	"fmt"
	"maps"
	"sync"
)

// shares counts how much of a limited resource, such as sessions, each token uses. The
// zero value is ready to use. It is not safe for concurrent use.
type shares struct {
	all int
	of  map[string]int // by the name of the token
}

// Room reports whether a token may have one more if most is the limit for all tokens. Zero
// means no limit. A tenth of most is reserved for the other tokens.
func (s *shares) Room(name string, most int) bool {
	return most <= 0 || s.all < most && s.of[name] < most-most/10
}

// Yields reports whether one that its holder does not use may end so that a token gets one more: one of
// the token itself, or anybody's if the limit for all is reached and the token has not used up its share.
func (s *shares) Yields(holder, name string, most int) bool {
	return holder == name || s.all >= most && s.of[name] < most-most/10
}

// Add counts one more for a token.
func (s *shares) Add(name string) {
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[name]++
}

// Remove counts one less for a token, which must have at least one.
func (s *shares) Remove(name string) {
	s.all--
	if s.of[name]--; s.of[name] == 0 {
		delete(s.of, name)
	}
}

// clientsAtOnce is the ratio of the limit for the calls of all clients to that for those with one token.
const clientsAtOnce = 16

// Calls counts calls. The zero value has none. It is safe for concurrent use.
type Calls struct {
	mu   sync.Mutex
	held shares
}

// Add counts a call of a token unless the limit of one token, or that of all, is reached. Zero
// means no limit.
func (r *Calls) Add(token string, limit int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case limit > 0 && r.held.of[token] >= limit:
		return fmt.Errorf("%d calls with this token are running (serve.maxCalls); wait for one of them to end", limit)
	case limit > 0 && r.held.all >= limit*clientsAtOnce:
		return fmt.Errorf("%d calls of all clients are running (%d times serve.maxCalls); wait for one of them to end",
			r.held.all, clientsAtOnce)
	}
	r.held.Add(token)
	return nil
}

// Remove counts one call of a token less.
func (r *Calls) Remove(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.Remove(token)
}

// Counts returns how many each token has.
func (r *Calls) Counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.held.of)
}
