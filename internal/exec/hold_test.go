package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// shelf is an Unattended with at most one answer.
type shelf struct {
	tr      *trace
	answer  *Answer // of the kept question
	claims  bool    // whether a claim succeeds
	command *Answer // of the command; nil means there is none
	kept    []Question
	stamp   int
	change  func() // happens when the stamp is looked at after then
	then    time.Time
	settled []string // params of the calls whose question is forgotten, and whether it was asked
}

func (s *shelf) Answered(context.Context, *Question) (Answer, string, bool) {
	if s.answer == nil {
		return Answer{}, "", false
	}
	return *s.answer, "id", true
}

func (s *shelf) Claim(_ context.Context, ids ...string) bool {
	s.tr.add("claim " + strings.Join(ids, ","))
	return s.claims
}

func (s *shelf) Absent(_ context.Context, q *Question) (Answer, *policy.KeptQuestion, bool) {
	if s.command != nil {
		s.tr.add("command")
		return *s.command, nil, true
	}
	s.tr.add("keep")
	s.kept = append(s.kept, *q)
	return Answer{}, &policy.KeptQuestion{ID: "id"}, false
}

func (s *shelf) Keep(context.Context, *Question) string {
	s.tr.add("keep")
	return "id"
}

func (s *shelf) Settled(_ context.Context, _ *registry.Tool, sent registry.Call, asked bool) {
	s.settled = append(s.settled, fmt.Sprint(string(sent.Params), " ", asked))
}

func (s *shelf) Stamp(context.Context) string {
	if s.change != nil && !time.Now().Before(s.then) {
		s.change()
		s.change = nil
	}
	return fmt.Sprint(s.stamp)
}

// newShelf returns a rig in which there is nobody to ask.
func newShelf(v ...policy.Verdict) (*rig, *shelf) {
	r := newRig(v...)
	s := &shelf{tr: r.tr, claims: true}
	r.x.Unattended, r.x.Confirmer = s, nil
	return r, s
}

const asking = "validate check decide preview "

func TestUnattended(t *testing.T) {
	yes, no := &Answer{Choice: Yes}, &Answer{Choice: No, Said: "not today"}
	for name, tt := range map[string]struct {
		set   func(*rig, *shelf)
		steps string
		err   string // "" means it runs
	}{
		"nobody answers":      {func(*rig, *shelf) {}, asking + "keep", "nobody can be asked"},
		"yes was kept":        {func(_ *rig, s *shelf) { s.answer = yes }, asking + "claim id decide run", ""},
		"no was kept":         {func(_ *rig, s *shelf) { s.answer = no }, asking + "claim id", "you said no: not today"},
		"another call has it": {func(_ *rig, s *shelf) { s.answer, s.claims = yes, false }, asking + "claim id keep", "nobody can be asked"},
		"a command answers":   {func(_ *rig, s *shelf) { s.command = yes }, asking + "command decide run", ""},
		"a command refuses":   {func(_ *rig, s *shelf) { s.command = no }, asking + "command", "you said no: not today"},
		"the person comes first": {func(r *rig, s *shelf) {
			s.command = yes
			r.script.answers, r.x.Confirmer = []Answer{{Choice: No}}, func() Confirmer { return r.script }
		}, asking + "confirm", "you said no"},
		"the person cannot be asked": {func(r *rig, s *shelf) {
			s.command = yes
			r.script.err, r.x.Confirmer = &NeedsConfirmation{}, func() Confirmer { return r.script }
		}, asking + "confirm command decide run", ""},
		"the person's terminal fails": {func(r *rig, s *shelf) {
			s.command = yes
			r.script.err, r.x.Confirmer = errors.New("gone"), func() Confirmer { return r.script }
		}, asking + "confirm", "gone"},
		"it changes nothing": {func(r *rig, _ *shelf) { r.tool.Preview = unchanged }, "validate check decide run", ""},
		"it can only fail": {func(r *rig, _ *shelf) {
			r.tool.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
				return registry.Preview{}, &registry.FailedError{Result: registry.ErrorResult(registry.ErrorExecution, "no such file")}
			}
		}, "validate check decide", ""},
	} {
		r, s := newShelf(ask())
		tt.set(r, s)
		_, err := r.execute(t, `{}`)
		if got := strings.Join(r.tr.steps, " "); got != strings.TrimSpace(tt.steps) {
			t.Errorf("%s: steps %q, want %q", name, got, tt.steps)
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestModelIsNotToldTheID compares what people and models are told of a kept question.
func TestModelIsNotToldTheID(t *testing.T) {
	r, _ := newShelf(ask())
	_, err := r.execute(t, `{}`)
	open, ok := errors.AsType[*NeedsConfirmation](err)
	if !ok || open.Kept == nil || open.Kept.ID != "id" || strings.Contains(err.Error(), "id") {
		t.Errorf("error %v with %+v", err, open)
	}
	if got := Explain(err); !strings.Contains(got, "A person must approve this call") || strings.Contains(got, `"id"`) {
		t.Errorf("the model is told %q", got)
	}
}

func unchanged(context.Context, registry.Call) (registry.Preview, error) {
	return registry.Preview{Kind: registry.PreviewEdit, Unchanged: true}, nil
}

// A collected answer counts, although the call changes nothing by the time that it is made.
func TestCollectedNoHoldsForUnchangedFile(t *testing.T) {
	r, s := newShelf(ask())
	s.command = &Answer{Choice: No}
	h := hold(t, r, 0)
	r.tool.Preview = unchanged
	h.Again = true // another call has changed the file since
	if err := executeHeld(t, r, h); !errors.Is(err, registry.ErrDenied) || len(r.ran) > 0 {
		t.Errorf("%v, ran %q", err, r.ran)
	}
}

func hold(t *testing.T, r *rig, copy int) *Held {
	t.Helper()
	h, err := r.x.Hold(t.Context(), r.tool, registry.Call{Tool: "t", Params: json.RawMessage(`{}`)}, copy)
	if err != nil {
		t.Fatal(err)
	}
	r.tr.steps = nil
	return h
}

func executeHeld(t *testing.T, r *rig, h *Held) error {
	t.Helper()
	_, err := r.x.ExecuteHeld(t.Context(), r.tool, registry.Call{Tool: "t", Params: json.RawMessage(`{}`)}, h)
	return err
}

func TestHold(t *testing.T) {
	r, s := newShelf(ask())
	if h := hold(t, r, 3); h.Open == nil || h.Open.Kept == nil || len(s.kept) != 1 || s.kept[0].Copy != 3 || len(r.ran) > 0 {
		t.Errorf("%+v, kept %+v, ran %q", h, s.kept, r.ran)
	}

	s.answer, s.claims = &Answer{Choice: Yes}, false // kept answers are not taken before the whole response can run
	h := hold(t, r, 0)
	if h.Open != nil || !slices.Equal(h.Claims, []string{"id"}) || len(r.ran) > 0 {
		t.Errorf("%+v, ran %q", h, r.ran)
	}
	s.answer = nil
	if err := executeHeld(t, r, h); err != nil || strings.Join(r.tr.steps, " ") != asking+"decide run" {
		t.Errorf("steps %q, %v", r.tr.steps, err)
	}

	s.command = &Answer{Choice: Edit, Content: "new", Sure: true} // the answers of a command are collected, too
	if err := executeHeld(t, r, hold(t, r, 0)); err != nil || strings.Join(r.tr.steps, " ") != asking+"decide run" {
		t.Errorf("steps %q, %v", r.tr.steps, err)
	}
	s.command = &Answer{Choice: No}
	if err := executeHeld(t, r, hold(t, r, 0)); !errors.Is(err, registry.ErrDenied) || strings.Contains(strings.Join(r.tr.steps, " "), "command") {
		t.Errorf("steps %q, %v", r.tr.steps, err)
	}
}

// An edit after which the call changes nothing settles it: it runs as is decided about the edited call.
func TestEditToNoChange(t *testing.T) {
	confined := ask()
	confined.Confine.On = true
	r := newRig(ask(), confined)
	inside := false
	r.x.Confine = func(tool registry.Tool, _ policy.Confinement) registry.Tool { inside = true; return tool }
	r.tool.Preview = func(_ context.Context, c registry.Call) (registry.Preview, error) {
		edited := strings.Contains(string(c.Params), "original")
		return registry.Preview{Kind: registry.PreviewEdit, NewContent: string(c.Params), Unchanged: edited}, nil
	}
	r.script.answers = []Answer{{Choice: Edit, Content: "original"}}
	result, err := r.execute(t, `{}`)
	if err != nil || !inside || len(r.script.asked) != 1 || !strings.Contains(result.Text(), "The user edited the content") {
		t.Errorf("%v, in the sandbox %t, asked %d times: %s", err, inside, len(r.script.asked), result.Text())
	}
}

// All answers about a call are collected, each for its own question, until one settles the call: a yes, or
// an edit after which it changes nothing.
func TestHoldCollectsEdits(t *testing.T) {
	for content, answers := range map[string][]Answer{
		"mine":     {{Choice: Edit, Content: "mine"}, {Choice: Yes}},
		"original": {{Choice: Edit, Content: "original"}},
	} {
		r := newRig(ask())
		r.tool.Preview = func(_ context.Context, c registry.Call) (registry.Preview, error) {
			unchanged := strings.Contains(string(c.Params), "original")
			return registry.Preview{Kind: registry.PreviewEdit, OriginalContent: "original", Unchanged: unchanged}, nil
		}
		r.script.answers = answers
		h := hold(t, r, 0)
		if asked := len(r.script.asked); h.Open != nil || asked != len(answers) {
			t.Errorf("%s: open %v, asked %d times", content, h.Open, asked)
		}
		r.script.asked = nil
		if err := executeHeld(t, r, h); err != nil || len(r.script.asked) > 0 ||
			!slices.Equal(r.ran, []string{`{"content":"` + content + `"}`}) {
			t.Errorf("%s: %v, asked %d times, ran %q", content, err, len(r.script.asked), r.ran)
		}
	}
}

func TestHoldOfCallsWithoutQuestions(t *testing.T) {
	for _, v := range []policy.Verdict{allow(), deny()} {
		r, s := newShelf(v)
		if h := hold(t, r, 0); h.Open != nil || len(s.kept)+len(r.ran) > 0 {
			t.Errorf("%s: %+v", v.Decision, h)
		}
	}
}

// TestHeldAnswerIsVoid changes the file between the question and the call.
func TestHeldAnswerIsVoid(t *testing.T) {
	for _, again := range []bool{false, true} {
		r, s := newShelf(ask())
		content := "before"
		r.tool.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
			return registry.Preview{Kind: registry.PreviewEdit, FileName: "f", OriginalContent: content}, nil
		}
		s.command = &Answer{Choice: Yes}
		h := hold(t, r, 0)
		s.command, content, h.Again = nil, "after", again
		err := executeHeld(t, r, h)
		if asked := errors.Is(err, registry.ErrNeedsConfirmation); asked == again || h.File != "f" {
			t.Errorf("changed by an earlier call %t: %v", again, err)
		}
	}
}

// TestSureEditIsNotAskedAbout writes the content of a program's answer without another
// question, unless the tool would write something else.
func TestSureEditIsNotAskedAbout(t *testing.T) {
	for final, steps := range map[string]string{
		"mine\r\n": asking + "confirm revise " + asking + "decide run",
		"other":    asking + "confirm revise " + asking + "confirm decide run",
	} {
		r := newRig(ask())
		shown := []string{"proposed", final}
		r.tool.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
			r.tr.add("preview")
			p := registry.Preview{Kind: registry.PreviewEdit, FileName: "f", NewContent: shown[0]}
			shown = shown[1:]
			return p, nil
		}
		r.script.answers = []Answer{{Choice: Edit, Content: "mine", Sure: true}, {Choice: Yes}}
		if _, err := r.execute(t, `{}`); err != nil || strings.Join(r.tr.steps, " ") != steps {
			t.Errorf("the tool writes %q: steps %q, want %q, %v", final, r.tr.steps, steps, err)
		}
	}
}

// The content of a program's answer is asked about if the file has changed since, and then a
// second answer with the same content is a yes.
func TestSureEditIsAskedAboutIfTheFileChanged(t *testing.T) {
	for again, steps := range map[string]string{
		"mine":   asking + "confirm revise " + asking + "confirm decide run",
		"better": asking + "confirm revise " + asking + "confirm revise " + asking + "decide run",
	} {
		r := newRig(ask())
		originals, content := []string{"one", "two", "two"}, []string{"proposed", "mine\n", "better"}
		r.tool.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
			r.tr.add("preview")
			p := registry.Preview{Kind: registry.PreviewEdit, FileName: "f", OriginalContent: originals[0], NewContent: content[0]}
			originals, content = originals[1:], content[1:]
			return p, nil
		}
		r.script.answers = []Answer{{Choice: Edit, Content: "mine", Sure: true}, {Choice: Edit, Content: again, Sure: true}}
		if _, err := r.execute(t, `{}`); err != nil || strings.Join(r.tr.steps, " ") != steps {
			t.Errorf("answered %q: steps %q, want %q, %v", again, r.tr.steps, steps, err)
		}
	}
}

// The hooks of a call that was held run once, unless they failed.
func TestHooksOfAHeldCallRunOnce(t *testing.T) {
	for failed, want := range map[error]int{nil: 1, errors.New("hook"): 2} {
		r, s := newShelf(ask())
		s.command = &Answer{Choice: Yes}
		h := &hooked{before: failed}
		r.x.Hooks = h
		_ = executeHeld(t, r, hold(t, r, 0))
		before := 0
		for _, step := range h.trace {
			if strings.HasPrefix(step, "before") {
				before++
			}
		}
		if before != want {
			t.Errorf("failed: %v: the hooks ran %d times, want %d", failed, before, want)
		}
	}
}

// A call that changes nothing by the time that it is made needs no answer, if none was given.
func TestOpenQuestionOfUnchangedFile(t *testing.T) {
	r, _ := newShelf(ask())
	h := hold(t, r, 0)
	r.tool.Preview = unchanged
	if err := executeHeld(t, r, h); h.Open == nil || err != nil || len(r.ran) != 1 {
		t.Errorf("open %v; then %v, ran %q", h.Open, err, r.ran)
	}
}

func TestReply(t *testing.T) {
	q := &Question{Choices: []Choice{Yes, AlwaysTool, Edit, No}}
	if got := q.Words(); !slices.Equal(got, []string{"yes", "always", "no"}) {
		t.Errorf("choices %q", got)
	}
	content := ""
	for _, tt := range []struct {
		reply Reply
		want  Answer
		err   bool
	}{
		{Reply{Choice: "yes"}, Answer{Choice: Yes}, false},
		{Reply{Choice: "always"}, Answer{Choice: AlwaysTool}, false},
		{Reply{Choice: "no", Reason: "r"}, Answer{Choice: No, Said: "r"}, false},
		{Reply{Choice: "yes", Content: &content}, Answer{Choice: Edit, Sure: true}, false},
		{Reply{Choice: "no", Content: &content}, Answer{}, true},
		{Reply{Choice: "always-server"}, Answer{}, true},
		{Reply{Choice: "Yes"}, Answer{}, true},
		{Reply{}, Answer{}, true},
	} {
		if got, err := tt.reply.Answer(q); got != tt.want || (err != nil) != tt.err {
			t.Errorf("%+v: %+v, %v", tt.reply, got, err)
		}
	}
}
