package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// patient is a Confirmer that nobody answers.
type patient struct {
	script
	mayAnswer bool // elsewhere
}

func (p *patient) Confirm(ctx context.Context, q Question) (Answer, error) {
	return q.Elsewhere(ctx, func(id string) { p.tr.add("waits " + id) }, func() bool { return p.mayAnswer })
}

// shift decides with a verdict that changes.
type shift struct{ now policy.Verdict }

func (s *shift) Decide(context.Context, *registry.Tool, registry.Call) policy.Verdict { return s.now }

// TestElsewhere changes something while a question waits.
func TestElsewhere(t *testing.T) {
	confined := policy.Verdict{Decision: policy.Sandbox, Confine: policy.Confinement{On: true, By: "a rule"}}
	firm := ask()
	firm.Firm = true
	for name, tt := range map[string]struct {
		asks   policy.Verdict
		change func(*shift, *shelf)
		err    string // "" means it runs
	}{
		"it is answered with yes":        {ask(), func(_ *shift, s *shelf) { s.answer = &Answer{Choice: Yes} }, ""},
		"it is answered with no":         {ask(), func(_ *shift, s *shelf) { s.answer = &Answer{Choice: No, Said: "later"} }, "you said no: later"},
		"another call takes the answer":  {ask(), func(_ *shift, s *shelf) { s.answer, s.claims = &Answer{Choice: Yes}, false }, "over"},
		"the call is allowed":            {ask(), func(d *shift, _ *shelf) { d.now = allow() }, ""},
		"the call is confined":           {ask(), func(d *shift, _ *shelf) { d.now = confined }, "sandbox, which is not available"},
		"the call is denied":             {ask(), func(d *shift, _ *shelf) { d.now = deny() }, `"t" is denied: not here (s.yaml:3)`},
		"no rule can answer it":          {firm, func(d *shift, _ *shelf) { d.now = allow() }, "over"},
		"no answer, but a rule can deny": {firm, func(d *shift, _ *shelf) { d.now = deny() }, "not here"},
		"nothing has changed":            {ask(), func(_ *shift, s *shelf) { s.answer = &Answer{Choice: Yes}; s.stamp-- }, "over"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, s := newShelf()
			person := &patient{script{tr: r.tr}, true}
			decider := &shift{tt.asks}
			r.x.Decide, r.x.Confirmer = decider.Decide, func() Confirmer { return person }
			s.then, s.change = time.Now().Add(3*time.Second), func() { s.stamp++; tt.change(decider, s) }
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("over"))
			defer cancel()
			_, err := r.x.Execute(ctx, r.tool, registry.Call{Tool: "t"})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s: %v", name, err)
			}
			if !slices.Contains(r.tr.steps, "keep") || !slices.Contains(r.tr.steps, "waits id") || slices.Contains(r.tr.steps, "run") != (tt.err == "") {
				t.Errorf("%s: steps %q", name, r.tr.steps)
			}
		})
	}
}

// A question that is answered at once is not kept. One that a client has answered another process is
// forgotten, because it may have been kept after that.
func TestQuestionsThatEndEarly(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		cause error
		kept  bool
		want  []string
	}{
		"at once":            {lookEvery / 2, errors.New("over"), false, nil},
		"later":              {lookEvery * 3 / 2, caller.ErrContinued, true, nil},
		"in another process": {lookEvery * 3 / 2, caller.ErrTaken, true, []string{"sent true"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, s := newShelf(ask(), ask())
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(tt.after, func() { cancel(tt.cause) })
			q := Question{Tool: r.tool, Call: registry.Call{Params: []byte("sent")}}
			_, err := r.x.elsewhere(r.tool, registry.Call{}, q)(ctx, func(string) {}, func() bool { return false })
			if !errors.Is(err, tt.cause) || slices.Contains(r.tr.steps, "keep") != tt.kept || !slices.Equal(s.settled, tt.want) {
				t.Errorf("%s: %v, steps %q, settled %q", name, err, r.tr.steps, s.settled)
			}
		})
	}
}

// Somebody else has answered: that answer counts, whatever has changed since.
func TestElsewhereIsLate(t *testing.T) {
	r, s := newShelf()
	decider := &shift{ask()}
	person := &patient{script{tr: r.tr}, false}
	r.x.Decide, r.x.Confirmer = decider.Decide, func() Confirmer { return person }
	s.answer = &Answer{Choice: Yes}
	if a, err := r.x.elsewhere(r.tool, registry.Call{}, Question{Tool: r.tool})(t.Context(), func(string) {}, func() bool { return false }); !errors.Is(err, ErrAnswered) || a.Choice != No {
		t.Errorf("%v, %v", a, err)
	}
}

// The question that is kept about a call is forgotten when the call runs without one, and when
// somebody has answered it, but not while nobody has, nor when its answer is taken.
func TestSettledQuestionsAreForgotten(t *testing.T) {
	yes := &Answer{Choice: Yes}
	person := func(choice Choice) func(*rig, *shelf) {
		return func(r *rig, _ *shelf) {
			r.script.answers, r.x.Confirmer = []Answer{{Choice: choice}}, func() Confirmer { return r.script }
		}
	}
	for name, tt := range map[string]struct {
		verdict policy.Verdict
		set     func(*rig, *shelf)
		want    []string
	}{
		"it is allowed":          {allow(), func(*rig, *shelf) {}, []string{"wire false"}},
		"it is denied":           {deny(), func(*rig, *shelf) {}, nil},
		"nobody answers":         {ask(), func(*rig, *shelf) {}, nil},
		"a person agrees":        {ask(), person(Yes), []string{"wire true"}},
		"a person refuses":       {ask(), person(No), []string{"wire true"}},
		"a command answers":      {ask(), func(_ *rig, s *shelf) { s.command = yes }, []string{"wire true"}},
		"the answer was kept":    {ask(), func(_ *rig, s *shelf) { s.answer = yes }, nil},
		"there is no such place": {allow(), func(r *rig, _ *shelf) { r.x.Unattended = nil }, nil},
	} {
		r, s := newShelf(tt.verdict)
		r.tool.Wire = func(c registry.Call) (registry.Call, error) {
			c.Params = []byte("wire")
			return c, nil
		}
		tt.set(r, s)
		_, _ = r.execute(t, `{}`)
		if !slices.Equal(s.settled, tt.want) {
			t.Errorf("%s: %q, want %q", name, s.settled, tt.want)
		}
	}
}
