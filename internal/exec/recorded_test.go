package exec

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

// taped has the answers of an earlier run.
type taped struct {
	tr     *trace
	answer *Answer
	kept   []Answer
}

func (a *taped) Find(*Question) (Answer, bool) {
	if a.answer == nil {
		return Answer{}, false
	}
	a.tr.add("found")
	return *a.answer, true
}

func (a *taped) Keep(_ *Question, given Answer) { a.kept = append(a.kept, given) }

func TestRecordedAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		recorded *Answer
		person   *Answer // nil means asking fails
		steps    string
		kept     int
		err      error
	}{
		"a yes is used":            {recorded: &Answer{Choice: Yes}, steps: asking + "found decide run"},
		"a no is used":             {recorded: &Answer{Choice: No}, steps: asking + "found", err: registry.ErrDenied},
		"else the person is asked": {person: &Answer{Choice: Yes}, steps: asking + "confirm decide run", kept: 1},
		"a refusal is kept":        {person: &Answer{Choice: No}, steps: asking + "confirm", kept: 1, err: registry.ErrDenied},
		"what failed is not kept":  {steps: asking + "confirm", err: registry.ErrNeedsConfirmation},
	} {
		r := newRig(ask())
		a := &taped{tr: r.tr, answer: tt.recorded}
		r.x.Recorded = a
		if tt.person != nil {
			r.script.answers = []Answer{*tt.person}
		} else {
			r.script.err = errors.New("gone")
		}
		_, err := r.execute(t, `{}`)
		if steps := strings.Join(r.tr.steps, " "); !errors.Is(err, tt.err) || steps != tt.steps || len(a.kept) != tt.kept {
			t.Errorf("%s: %v after %q, kept %v", name, err, steps, a.kept)
		}
	}
}

// A recorded call took as long as the recording says; others are measured.
func TestRecordedDuration(t *testing.T) {
	for name, tt := range map[string]struct {
		recorded Answers
		claimed  time.Duration
		isKept   bool
	}{
		"replayed":             {&taped{}, time.Hour, true},
		"replayed, no time":    {&taped{}, 0, false},
		"an ordinary run":      {nil, time.Hour, false},
		"an ordinary run of 0": {nil, 0, false},
	} {
		r := newRig(allow())
		r.x.Recorded = tt.recorded
		r.tool.Run = func(context.Context, registry.Call) (registry.Result, error) {
			return registry.Result{Duration: tt.claimed}, nil
		}
		res, err := r.execute(t, `{}`)
		if err != nil || (res.Duration == time.Hour) != tt.isKept || res.Duration <= 0 {
			t.Errorf("%s: %s, %v", name, res.Duration, err)
		}
	}
}
