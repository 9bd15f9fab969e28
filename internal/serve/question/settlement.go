package question

import (
	"errors"
	"sync"
	"sync/atomic"
)

// settlement decides which answer to a question counts if it can be given by a client and
// elsewhere, such as at the console: the first one. The zero value has none.
type settlement struct {
	mu        sync.Mutex
	byClient  bool
	elsewhere atomic.Bool
	// claim takes the answer to a question that a modern client has received. It is nil as long
	// as the client has received none.
	claim func() bool
}

// Elsewhere reports whether an answer that the client has not given is the first one.
func (s *settlement) Elsewhere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byClient || s.elsewhere.Load() || s.claim != nil && !s.claim() {
		return false
	}
	s.elsewhere.Store(true)
	return true
}

// Client reports whether an answer of the client is the first one.
func (s *settlement) Client() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.elsewhere.Load() {
		return false
	}
	s.byClient = true
	return true
}

// asked records that a modern client gets the question in the result of its request, unless it
// was answered elsewhere before. claim takes the answer from the client.
func (s *settlement) asked(claim func() bool) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = claim
	return !s.elsewhere.Load()
}

// wasElsewhere reports whether the question was answered elsewhere than at the client.
func (s *settlement) wasElsewhere() bool { return s != nil && s.elsewhere.Load() }

type settlementKey struct{}

// errSettled is the cause with which the question to the place that was slower is withdrawn.
var errSettled = errors.New("the question was answered elsewhere")
