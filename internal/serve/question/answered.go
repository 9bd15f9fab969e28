package question

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

const (
	// maxAnswered is how many questions clients with one token may answer within the
	// lifetime of a state.
	maxAnswered = 100_000
	// sweepEvery is how often expired states are forgotten.
	sweepEvery = time.Minute
)

// Options configure questions to clients of revision 2026-07-28 and later, which
// return a state with each answer.
type Options struct {
	// Key is the secret that protects the states. Processes with the same key can
	// continue each other's calls. With an empty key, only this process can continue its calls.
	Key string
	// Store is where processes with the same key record which questions were answered. If it
	// is nil, they use Answered.
	Store *store.Store
	// Answered is the folder in which processes with the same key record which questions
	// were answered. If it is nil too, each process knows only its own answers.
	Answered *state.Dir
	// Warn is called at most once, if Answered cannot be used. It is required with
	// Answered.
	Warn func(error)
}

// answeredStates remembers which questions were answered until their states expire, so
// that each is answered only once. Create it with [newAnsweredStates]. It is safe for
// concurrent use.
type answeredStates struct {
	Options
	holder string // the id of this replica in the store

	mu      sync.Mutex
	byOwner map[string]map[string]time.Time // when the state expires, by ID
	swept   time.Time
	failed  sync.Once // warns that the state folder cannot be used
}

func newAnsweredStates(o Options, holder string) *answeredStates {
	return &answeredStates{Options: o, holder: holder, byOwner: map[string]map[string]time.Time{}}
}

var (
	// errAnswered is the error for a state whose question was already answered.
	errAnswered = errors.New("it was already answered")
	// errVoid is that for a question that the store does not have (any more).
	errVoid = errors.New("it was already answered, or serve.store does not have the question: it was started again " +
		"since, which makes earlier answers void, or this process uses another database or prefix than the one that asked")
)

// Asked records that a question can be answered, so that it can be recorded once that it was.
// It returns an error if it cannot.
func (a *answeredStates) Asked(ctx context.Context, id string) error {
	if a.Store == nil {
		return nil
	}
	if err := a.Store.Put(ctx, waitingKind, id, []byte(a.holder), AnswerTime+sweepEvery); err != nil {
		return err
	}
	return a.Store.Offer(ctx, questionKind, id, nil, AnswerTime+sweepEvery)
}

const (
	// questionKind is the kind of values in the store for questions that were not answered.
	questionKind = "question"
	// waitingKind is the kind of values that say where a call waits for the answer to a question.
	waitingKind = "waiting"
)

// Claim records that a question is being answered. It returns [errAnswered] if the
// question was already answered in this process, or another error if the owner has
// answered too many.
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
		return fmt.Errorf("more than %d questions were answered within %s", maxAnswered, AnswerTime)
	}
	own[id] = time.Now().Add(AnswerTime)
	return nil
}

// Release takes a claim back.
func (a *answeredStates) Release(owner, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byOwner[owner], id)
}

// Record makes a claim visible to the other processes. It returns [errAnswered] or [errVoid]
// if one of them may have been first, and a *store.UnavailableError if that cannot be told.
func (a *answeredStates) Record(ctx context.Context, id string) error {
	if a.Store != nil {
		v, err := a.Store.Take(ctx, questionKind, id)
		if err == nil && !v.Exists() {
			return errVoid
		}
		return err
	}
	if a.Answered == nil {
		return nil
	}
	file, err := a.Answered.Create(id)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errAnswered
	case err != nil:
		a.failed.Do(func() { a.Warn(err) })
	default:
		_ = file.Close()
	}
	return nil
}

// Taken reports whether the folder says that another process has taken the answer to a question.
func (a *answeredStates) Taken(id string) bool {
	if a.Store != nil || a.Answered == nil {
		return false
	}
	_, err := a.Answered.Read(id)
	return err == nil && !a.claimed(id) // this process claims before it records
}

// claimed reports whether this process takes the answer to a question, or has.
func (a *answeredStates) claimed(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, own := range a.byOwner {
		if !own[id].IsZero() {
			return true
		}
	}
	return false
}

// Has reports whether a question was answered, in this process or in one that shares the
// store or the state folder.
func (a *answeredStates) Has(ctx context.Context, id string) bool {
	if a.claimed(id) {
		return true
	}
	if a.Store != nil {
		v, err := a.Store.Look(ctx, questionKind, id)
		return err == nil && !v.Exists()
	}
	return a.Taken(id)
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
	if due && a.Answered != nil {
		_ = a.Answered.Sweep(now, state.Bounds{Age: AnswerTime}) // the next one tries again
	}
}
