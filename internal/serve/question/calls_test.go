package question

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/state"
)

// A call that waits for an answer ends soon after its client has answered another process, unless only
// this process can continue it, and else when the time for answers is over.
func TestWaitingCallsEnd(t *testing.T) {
	dir, err := state.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	never := func(error) { t.Error("the folder cannot be used") }
	for name, tt := range map[string]struct {
		key      string
		stage    *callStage
		answered bool // another process has the answer
		after    time.Duration
		cause    error
	}{
		"answered elsewhere":      {secret, &callStage{}, true, lookEvery, caller.ErrTaken},
		"not answered":            {secret, &callStage{}, false, AnswerTime, ErrNoAnswer},
		"only here":               {secret, nil, true, AnswerTime, caller.ErrTaken},
		"no other has the key":    {"", &callStage{}, true, AnswerTime, caller.ErrTaken},
		"not answered, only here": {secret, nil, false, AnswerTime, ErrNoAnswer},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s := NewCalls(Options{Key: tt.key, Answered: dir, Warn: never}, "")
			ctx, cancel := context.WithCancelCause(t.Context())
			w := &Call{owner: "alice", Cancel: cancel, asked: Question{stage: tt.stage}}
			asked, err := s.park(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if tt.answered {
				other := newAnsweredStates(Options{Answered: dir, Warn: never}, "")
				if err := other.Record(t.Context(), s.QuestionOf(asked.State, "alice")); err != nil {
					t.Fatal(err)
				}
			}
			<-ctx.Done()
			if got := time.Since(began); got != tt.after || !errors.Is(context.Cause(ctx), tt.cause) {
				t.Errorf("%s: ended after %v: %v", name, got, context.Cause(ctx))
			}
			if s.WaitsHere(s.QuestionOf(asked.State, "alice")) {
				t.Errorf("%s: it still waits", name)
			}
		})
	}
}
