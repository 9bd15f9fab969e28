package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

const (
	// maxAnswered is how many questions clients with one token may answer within the
	// lifetime of a state.
	maxAnswered = 100_000
	// sweepEvery is how often expired states are forgotten.
	sweepEvery = time.Minute
)

// answeredStates remembers the questions that were answered, until their states expire: each
// is answered once. Create it with [newAnsweredStates]. It is safe for concurrent use.
type answeredStates struct {
	dir  *state.Dir
	warn func(error)

	mu      sync.Mutex
	byOwner map[string]map[string]time.Time // ID and when its state has expired
	swept   time.Time
	failed  bool // the state folder, which was reported
}

// newAnsweredStates returns an Answered. dir is the folder in which processes with the same key
// record what was answered; nil: each knows only its own. warn is called, once, if that
// cannot be recorded.
func newAnsweredStates(dir *state.Dir, warn func(error)) *answeredStates {
	return &answeredStates{dir: dir, warn: warn, byOwner: map[string]map[string]time.Time{}}
}

// errAnswered refuses a state whose question was answered before.
var errAnswered = errors.New("it was answered already")

// Claim remembers that a question is answered now. The error is [errAnswered], if it was
// answered in this process before, or says that the owner has answered too many.
func (a *answeredStates) Claim(owner, id string) error {
	a.sweep(time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.byOwner[owner]
	if own == nil {
		own = map[string]time.Time{}
		a.byOwner[owner] = own
	}
	switch {
	case !own[id].IsZero():
		return errAnswered
	case len(own) >= maxAnswered:
		return fmt.Errorf("more than %d questions were answered within %s", maxAnswered, stateLifetime)
	}
	own[id] = time.Now().Add(stateLifetime)
	return nil
}

// Record tells the other processes about a claim. The error is [ErrAnswered]: one of them
// was first.
func (a *answeredStates) Record(id string) error {
	if a.dir == nil {
		return nil
	}
	file, err := a.dir.Create(id)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errAnswered
	case err != nil:
		a.report(err)
	default:
		_ = file.Close()
	}
	return nil
}

// Has reports whether a question was answered, here or in a process that shares the
// state folder.
func (a *answeredStates) Has(id string) bool {
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
func (a *answeredStates) report(err error) {
	a.mu.Lock()
	first := !a.failed
	a.failed = true
	a.mu.Unlock()
	if first {
		a.warn(err)
	}
}

// sweep forgets states that have expired.
func (a *answeredStates) sweep(now time.Time) {
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
		_ = a.dir.Sweep(now, state.Bounds{Age: stateLifetime}) // the next one tries again
	}
}
