package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/requeststate"
	"github.com/toolreg/toolreg/internal/state"
)

const (
	// maxAnswered is how many questions clients with one token may answer within the
	// lifetime of a state.
	maxAnswered = 100_000
	// sweepEvery is how often expired states are forgotten.
	sweepEvery = time.Minute
)

// QuestionOptions are options for questions to modern clients, which carry a state from
// each question to its answer.
type QuestionOptions struct {
	// Key is the secret that protects the states. Processes with the same one can
	// continue each other's calls. "": no other process can.
	Key string
	// Answered is the folder in which such processes record what was answered. nil:
	// each knows only what was answered there.
	Answered *state.Dir
	// Warn reports, once, that this cannot be recorded. Required with Answered.
	Warn func(error)
}

// states makes and takes the states of questions.
type states struct {
	keys     *requeststate.Keys
	answered answered
}

func newStates(o QuestionOptions) *states {
	return &states{requeststate.New(o.Key), answered{dir: o.Answered, warn: o.Warn, byOwner: map[string]map[string]time.Time{}}}
}

// ChangeStateKey replaces the Key of [QuestionOptions]. Questions that were asked before can
// still be answered.
func (s *states) ChangeStateKey(secret string) { s.keys.Change(secret) }

// answered remembers the questions that were answered, until their states expire: each
// is answered once. Processes that share the state folder share this, too.
type answered struct {
	dir  *state.Dir // nil: there is none
	warn func(error)

	mu      sync.Mutex
	byOwner map[string]map[string]time.Time // ID and when its state has expired
	swept   time.Time
	failed  bool // the state folder, which was reported
}

// claim records that a question is answered now. The error is a protocol error: it was
// answered before. shared says that another process may get the same answer.
func (a *answered) claim(owner, id string, shared bool) error {
	a.sweep(time.Now())
	if err := a.remember(owner, id); err != nil || !shared || a.dir == nil {
		return err
	}
	file, err := a.dir.Create(id)
	if errors.Is(err, fs.ErrExist) {
		return errAnswered()
	}
	if err != nil {
		a.report(err)
		return nil
	}
	_ = file.Close()
	return nil
}

func errAnswered() error { return refusedState("it was answered already") }

func (a *answered) remember(owner, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.byOwner[owner]
	if own == nil {
		own = map[string]time.Time{}
		a.byOwner[owner] = own
	}
	switch {
	case !own[id].IsZero():
		return errAnswered()
	case len(own) >= maxAnswered:
		return refusedState(fmt.Sprintf("more than %d questions were answered within %s", maxAnswered, requeststate.Lifetime))
	}
	own[id] = time.Now().Add(requeststate.Lifetime)
	return nil
}

// has reports whether a question was answered, here or in a process that shares the
// state folder.
func (a *answered) has(id string) bool {
	a.mu.Lock()
	for _, own := range a.byOwner {
		if !own[id].IsZero() {
			a.mu.Unlock()
			return true
		}
	}
	a.mu.Unlock()
	if a.dir == nil {
		return false
	}
	_, err := a.dir.Read(id)
	return err == nil
}

// report warns, once, that other processes do not see what was answered here.
func (a *answered) report(err error) {
	a.mu.Lock()
	first := !a.failed
	a.failed = true
	a.mu.Unlock()
	if first {
		a.warn(err)
	}
}

// sweep forgets states that have expired.
func (a *answered) sweep(now time.Time) {
	a.mu.Lock()
	due := now.Sub(a.swept) >= sweepEvery
	if due {
		a.swept = now
		for owner, own := range a.byOwner {
			maps.DeleteFunc(own, func(_ string, expired time.Time) bool { return now.After(expired) })
			if len(own) == 0 {
				delete(a.byOwner, owner)
			}
		}
	}
	a.mu.Unlock()
	if due && a.dir != nil {
		_ = a.dir.Sweep(now, state.Bounds{Age: requeststate.Lifetime}) // the next one tries again
	}
}
