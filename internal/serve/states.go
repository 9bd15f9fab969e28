package serve

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// QuestionOptions configure questions to clients of revision 2026-07-28 and later, which
// return a state with each answer.
type QuestionOptions struct {
	// Key is the secret that protects the states. Processes with the same key can
	// continue each other's calls. "": only this process can continue its calls.
	Key string
	// Store is where processes with the same key record that instead of in Answered. nil:
	// there is none.
	Store *store.Store
	// Answered is the folder in which processes with the same key record which questions
	// were answered. nil: each process knows only its own.
	Answered *state.Dir
	// Warn is called at most once, if Answered cannot be used. It is required with
	// Answered.
	Warn func(error)
}

// states are the questions that modern clients were asked, and the calls that wait for
// the answers.
type states struct {
	keys     *stateKeys
	answered *answeredStates

	mu      sync.Mutex
	waiting map[string]*waitingCall // by the ID of the question
}

func newStates(o QuestionOptions) *states {
	return &states{keys: newStateKeys(o.Key), answered: newAnsweredStates(o.Store, o.Answered, o.Warn), waiting: map[string]*waitingCall{}}
}

// park stores a call until its client answers, and returns what to ask the client.
func (s *states) park(ctx context.Context, w *waitingCall) (*asks, error) {
	id := rand.Text()
	state, err := s.keys.Seal(&requestState{ID: id, Owner: w.owner, Request: w.request, Stage: w.asked.stage})
	if err != nil {
		return nil, err
	}
	if err := s.answered.Asked(ctx, id); err != nil {
		return nil, err
	}
	later := context.WithoutCancel(ctx)
	if !w.asked.settled.asked(func() bool { return s.take(later, w, id) }) {
		return nil, errSettled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(w.owner); err != nil {
		return nil, err
	}
	s.waiting[id], w.since = w, time.Now()
	w.expiry = time.AfterFunc(stateLifetime, func() {
		switch {
		case s.unpark(id) == nil:
		case s.answered.Has(later, id) && !w.asked.settled.wasElsewhere():
			w.cancel(caller.ErrContinued)
		default:
			w.cancel(errNoAnswer)
		}
	})
	return &asks{w.asked.requests, state}, nil
}

// makeRoom makes room for another waiting call of an owner. If too many wait, it drops
// the oldest call that any process can continue. s.mu is held.
func (s *states) makeRoom(owner string) error {
	own := 0
	oldest, oldestOwn := "", ""
	older := func(id, than string) bool { return than == "" || s.waiting[id].since.Before(s.waiting[than].since) }
	for id, w := range s.waiting {
		if w.owner == owner {
			own++
		}
		if w.asked.stage == nil {
			continue
		}
		if older(id, oldest) {
			oldest = id
		}
		if w.owner == owner && older(id, oldestOwn) {
			oldestOwn = id
		}
	}
	switch {
	case own >= maxWaitingOwn:
		oldest = oldestOwn
	case len(s.waiting) < maxWaiting:
		return nil
	}
	if oldest == "" {
		return errTooMany
	}
	s.unparkLocked(oldest).cancel(caller.ErrContinued)
	return nil
}

// take records that the question of a waiting call was answered at the console, so that an
// answer of the client counts neither here nor in another process. It returns false if the
// client was first.
func (s *states) take(ctx context.Context, w *waitingCall, id string) bool {
	if s.answered.Claim(w.owner, id) != nil {
		return false
	}
	if s.keys.Shared() && s.answered.Record(ctx, id) != nil {
		s.unpark(id)
		w.cancel(caller.ErrContinued)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asked.stage = nil
	return true
}

// settled returns the call whose question was answered at the console, at most once; nil if
// it was not.
func (s *states) settled(id string) *waitingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiting[id]; w != nil && w.asked.settled.wasElsewhere() {
		return s.unparkLocked(id)
	}
	return nil
}

// unpark returns the call that belongs to a state, at most once.
func (s *states) unpark(id string) *waitingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unparkLocked(id)
}

func (s *states) unparkLocked(id string) *waitingCall {
	w := s.waiting[id]
	if w != nil {
		w.expiry.Stop()
		delete(s.waiting, id)
	}
	return w
}

// endAll ends the calls that wait for answers, and returns them. Another process may be
// able to continue them.
func (s *states) endAll() []*waitingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.waiting))
	for id, w := range s.waiting {
		s.unparkLocked(id)
		if w.asked.stage != nil && s.keys.Shared() {
			w.cancel(caller.ErrContinued)
		} else {
			w.cancel(errNoAnswer)
		}
	}
	return all
}

// waitsHere reports whether a call waits in this process for the answer to a question.
func (s *states) waitsHere(id string) bool {
	_, is := s.waitsFor(id)
	return is
}

// onlyHere reports whether a call waits that no other process can run again: for the answer to a
// question or, if id is "", to any.
func (s *states) onlyHere(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, w := range s.waiting {
		if w.asked.stage == nil && (id == "" || id == other) {
			return true
		}
	}
	return false
}

// waitsFor returns the questions of a call that waits in this process.
func (s *states) waitsFor(id string) (mcp.InputRequestMap, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id]
	if w == nil {
		return nil, false
	}
	return w.asked.requests, true
}
