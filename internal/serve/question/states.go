package question

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

// Options configure questions to clients of revision 2026-07-28 and later, which
// return a state with each answer.
type Options struct {
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

// Calls are the questions that modern clients were asked, and the calls that wait for
// the answers.
type Calls struct {
	keys     *stateKeys
	answered *answeredStates

	mu      sync.Mutex
	waiting map[string]*Call // by the ID of the question
}

// NewCalls returns no calls. holder is the id of this process among those that share a store.
func NewCalls(o Options, holder string) *Calls {
	return &Calls{keys: newStateKeys(o.Key), answered: newAnsweredStates(o, holder), waiting: map[string]*Call{}}
}

// ChangeKey replaces the Key of [Options]. Questions that were asked before can still be
// answered.
func (s *Calls) ChangeKey(secret string) { s.keys.Change(secret) }

// QuestionOf returns the id of the question that a client with an account answers by a state that it
// has got; "" if the state is not valid for it.
func (s *Calls) QuestionOf(sealed, account string) string {
	if state, err := s.keys.Open(sealed); err == nil && state.Owner == account {
		return state.ID
	}
	return ""
}

// Holder returns the id of the process where a call waits for the answer to a question, as the store
// knows it; "" if it does not.
func (s *Calls) Holder(ctx context.Context, id string) string { return s.answered.Holder(ctx, id) }

// park stores a call until its client answers, and returns what to ask the client.
func (s *Calls) park(ctx context.Context, w *Call) (*Asked, error) {
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
	w.expiry = time.AfterFunc(AnswerTime, func() {
		switch {
		case s.unpark(id) == nil:
		case s.answered.Has(later, id) && !w.asked.settled.wasElsewhere():
			w.Cancel(caller.ErrContinued)
		default:
			w.Cancel(ErrNoAnswer)
		}
	})
	return &Asked{w.asked.Requests, state}, nil
}

// makeRoom makes room for another waiting call of an owner. If too many wait, it drops
// the oldest call that any process can continue. s.mu is held.
func (s *Calls) makeRoom(owner string) error {
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
	s.unparkLocked(oldest).Cancel(caller.ErrContinued)
	return nil
}

// take records that the question of a waiting call was answered at the console, so that an
// answer of the client counts neither here nor in another process. It returns false if the
// client was first.
func (s *Calls) take(ctx context.Context, w *Call, id string) bool {
	if s.answered.Claim(w.owner, id) != nil {
		return false
	}
	if s.keys.Shared() && s.answered.Record(ctx, id) != nil {
		s.unpark(id)
		w.Cancel(caller.ErrContinued)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asked.stage = nil
	return true
}

// settled returns the call whose question was answered at the console, at most once; nil if
// it was not.
func (s *Calls) settled(id string) *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiting[id]; w != nil && w.asked.settled.wasElsewhere() {
		return s.unparkLocked(id)
	}
	return nil
}

// unpark returns the call that belongs to a state, at most once.
func (s *Calls) unpark(id string) *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unparkLocked(id)
}

func (s *Calls) unparkLocked(id string) *Call {
	w := s.waiting[id]
	if w != nil {
		w.expiry.Stop()
		delete(s.waiting, id)
	}
	return w
}

// EndAll ends the calls that wait for answers, and waits until they have ended. Another process may be
// able to continue them.
func (s *Calls) EndAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.waiting))
	for id, w := range s.waiting {
		s.unparkLocked(id)
		if w.asked.stage != nil && s.keys.Shared() {
			w.Cancel(caller.ErrContinued)
		} else {
			w.Cancel(ErrNoAnswer)
		}
	}
	s.mu.Unlock()
	for _, w := range all {
		<-w.done
	}
}

// WaitsHere reports whether a call waits in this process for the answer to a question.
func (s *Calls) WaitsHere(id string) bool {
	_, is := s.waitsFor(id)
	return is
}

// OnlyHere reports whether a call waits that no other process can run again: for the answer to a
// question or, if id is "", to any.
func (s *Calls) OnlyHere(id string) bool {
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
func (s *Calls) waitsFor(id string) (mcp.InputRequestMap, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id]
	if w == nil {
		return nil, false
	}
	return w.asked.Requests, true
}
