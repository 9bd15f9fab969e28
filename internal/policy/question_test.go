package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// newQuestions returns an empty store with a clock that the test sets.
func newQuestions(t *testing.T) (*Questions, *time.Time) {
	t.Helper()
	dir, err := state.OpenDir(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tick := func() time.Time { now = now.Add(time.Nanosecond); return now }
	return &Questions{Approvals: &Approvals{Dir: dir, Project: "/p", Now: tick}}, &now
}

// run returns the questions as another run sees them, which looks at the limits when it keeps one.
func run(s *Questions) *Questions { return &Questions{Approvals: s.Approvals} }

func keep(t *testing.T, s *Questions, k KeptQuestion) string {
	t.Helper()
	kept, err := s.Keep(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return kept.ID
}

func answer(t *testing.T, s *Questions, id, choice string) {
	t.Helper()
	if _, err := s.Answer(t.Context(), id, choice, "because"); err != nil {
		t.Fatal(err)
	}
}

func pendingIDs(t *testing.T, s *Questions) []string {
	t.Helper()
	list, err := s.Pending(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, q := range list {
		out = append(out, q.ID)
	}
	return out
}

func TestQuestionIsAnsweredOnce(t *testing.T) {
	s, _ := newQuestions(t)
	id := keep(t, s, KeptQuestion{Call: "c", State: "s", Question: "{}"})
	if again := keep(t, s, KeptQuestion{Call: "c", State: "s", Question: "{}"}); again != id {
		t.Errorf("the same call has the questions %s and %s", id, again)
	}
	if _, ok := s.Answered(t.Context(), "c", "s"); ok || s.Claim(t.Context(), id) {
		t.Error("an open question has an answer")
	}
	answer(t, s, id[:4], "no")
	if got, ok := s.Answered(t.Context(), "c", "s"); !ok || got.ID != id || got.Choice != "no" || got.Reason != "because" {
		t.Errorf("%+v, %t", got, ok)
	}
	for _, wrong := range []string{id, "zz", ""} {
		_, err := s.Answer(t.Context(), wrong, "yes", "")
		if missing, ok := errors.AsType[*NoQuestionError](err); !ok || !errors.Is(err, registry.ErrNotFound) || missing.Answered != (wrong == id) {
			t.Errorf("answering %q: %v", wrong, err)
		}
	}
	if got := pendingIDs(t, s); got != nil {
		t.Errorf("pending: %q", got)
	}
	if !s.Claim(t.Context(), id) || s.Claim(t.Context(), id) {
		t.Error("the answer must be there for one call")
	}
	if fresh := keep(t, s, KeptQuestion{Call: "c", State: "s", Question: "{}"}); fresh == id {
		t.Error("a new question has the id of an old one")
	}
}

func TestAnswerIsVoidAfterAChange(t *testing.T) {
	s, _ := newQuestions(t)
	id := keep(t, s, KeptQuestion{Call: "c", State: "before"})
	answer(t, s, id, "yes")
	if _, ok := s.Answered(t.Context(), "c", "after"); ok {
		t.Error("the answer applies to another state")
	}
	fresh := keep(t, s, KeptQuestion{Call: "c", State: "after"})
	if got := pendingIDs(t, s); !slices.Equal(got, []string{fresh}) || s.Claim(t.Context(), id) {
		t.Errorf("pending %q, want %q alone, and no void answer", got, fresh)
	}
}

func TestQuestionExpires(t *testing.T) {
	s, now := newQuestions(t)
	open, answered := keep(t, s, KeptQuestion{Call: "a"}), keep(t, s, KeptQuestion{Call: "b"})
	answer(t, s, answered, "yes")
	*now = now.Add(QuestionLifetime - time.Second)
	if _, ok := s.Answered(t.Context(), "b", ""); !ok || len(pendingIDs(t, s)) != 1 {
		t.Error("it expired too early")
	}
	*now = now.Add(time.Second)
	if _, ok := s.Answered(t.Context(), "b", ""); ok || len(pendingIDs(t, s)) != 0 || s.Claim(t.Context(), answered) {
		t.Error("it did not expire")
	}
	if _, err := s.Answer(t.Context(), open, "yes", ""); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("answering an expired question: %v", err)
	}
}

// TestClaimRace lets many calls claim two answers, in both orders and alone.
func TestClaimRace(t *testing.T) {
	s, _ := newQuestions(t)
	a, b := keep(t, s, KeptQuestion{Call: "a"}), keep(t, s, KeptQuestion{Call: "b"})
	answer(t, s, a, "yes")
	answer(t, s, b, "yes")
	var got atomic.Int32 // answers
	var running sync.WaitGroup
	for i := range 100 {
		ids := [][]string{{a, b}, {b, a}, {a}, {b}, {a, a}}[i%5]
		running.Go(func() {
			if s.Claim(context.WithoutCancel(t.Context()), ids...) {
				got.Add(int32(len(ids)))
			}
		})
	}
	running.Wait()
	if got.Load() != 2 {
		t.Errorf("%d answers were given, want 2", got.Load())
	}
}

// TestClaimTakesAllOrNone leaves the answers of a claim that is not complete to others.
func TestClaimTakesAllOrNone(t *testing.T) {
	s, _ := newQuestions(t)
	a, b := keep(t, s, KeptQuestion{Call: "a"}), keep(t, s, KeptQuestion{Call: "b"})
	answer(t, s, a, "yes")
	if s.Claim(t.Context(), a, b) || s.Claim(t.Context(), a, a) {
		t.Error("an incomplete claim succeeded")
	}
	if !s.Claim(t.Context(), a) {
		t.Error("an incomplete claim took an answer")
	}
}

func TestAlwaysAddsApprovals(t *testing.T) {
	s, _ := newQuestions(t)
	plain := keep(t, s, KeptQuestion{Call: "a"})
	lasting := keep(t, s, KeptQuestion{Call: "b", Always: []Approval{{ID: "x", Project: "/p", Kind: ScopeTool}}})
	if _, err := s.Answer(t.Context(), plain, "always", ""); !errors.Is(err, ErrNotOffered) {
		t.Errorf("always without a scope: %v", err)
	}
	answer(t, s, lasting, "always")
	if list, err := s.Approvals.List(t.Context(), false); err != nil || len(list) != 1 || list[0].ID != "x" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := pendingIDs(t, s); !slices.Equal(got, []string{plain}) {
		t.Errorf("pending: %q", got)
	}
}

func TestQuestionsAreLimited(t *testing.T) {
	s, _ := newQuestions(t)
	other := keep(t, s, KeptQuestion{Call: "other", Client: "other"})
	var ids []string
	for i := range maxQuestions + 3*pruneEvery {
		ids = append(ids, keep(t, s, KeptQuestion{Call: fmt.Sprint(i)}))
		if got := len(pendingIDs(t, s)); got > maxQuestions+pruneEvery {
			t.Fatalf("%d questions", got)
		}
	}
	ids = append(ids, keep(t, run(s), KeptQuestion{Call: "last"}))
	if want := append([]string{other}, ids[len(ids)-maxQuestions:]...); !slices.Equal(pendingIDs(t, s), want) {
		t.Errorf("there are %q, want %q", pendingIDs(t, s), want)
	}
	if _, err := s.Keep(t.Context(), KeptQuestion{Call: "long", Question: strings.Repeat("x", maxQuestionBytes+1)}); err == nil {
		t.Error("a question beyond the limit was kept")
	}
}

// A question that cannot be read has no answer, is reported and does not hide others; the same call
// replaces it, if no newer version has written it.
func TestDamagedQuestions(t *testing.T) {
	s, _ := newQuestions(t)
	var warned []string
	s.Approvals.Warn = func(d registry.Diagnostic) { warned = append(warned, d.Code+": "+d.Message) }
	id := keep(t, s, KeptQuestion{Call: "a"})
	answer(t, s, id, "yes")
	other := keep(t, s, KeptQuestion{Call: "other"})
	folder := filepath.Join(s.Approvals.Dir.Path, questionsFolder)
	write := func(data string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "a"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range []string{`{"version":1,"id":"` + id + `","choice":"yes","call":"a",`, `{"version":2,"id":"` + id + `","choice":"yes","call":"a"}`} {
		write(data)
		warned = nil
		next := run(s)
		if _, ok := next.Answered(t.Context(), "a", ""); ok {
			t.Errorf("%s is an answer", data)
		}
		if got := pendingIDs(t, next); !slices.Equal(got, []string{other}) {
			t.Errorf("%q wait, want %q", got, other)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "questions_unavailable: ") || !strings.Contains(warned[0], folder) {
			t.Errorf("warned %q", warned)
		}
	}
	if _, err := s.Keep(t.Context(), KeptQuestion{Call: "a"}); !errors.Is(err, errNewer) {
		t.Errorf("replacing a file of a newer version: %v", err)
	}
	keep(t, run(s), KeptQuestion{Call: "b"})
	if data, err := os.ReadFile(filepath.Join(folder, "a")); err != nil || !strings.Contains(string(data), `"version":2`) {
		t.Errorf("of the newer version is left %q, %v", data, err)
	}
	write("{")
	if fresh := keep(t, s, KeptQuestion{Call: "a"}); fresh == id || len(pendingIDs(t, s)) != 3 {
		t.Errorf("kept as %s; %q wait", fresh, pendingIDs(t, s))
	}
	write("{")
	keep(t, run(s), KeptQuestion{Call: "c"})
	if _, err := os.Stat(filepath.Join(folder, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the damaged file is still there: %v", err)
	}
}

// approvalsOf returns approvals whose definitions take n bytes together.
func approvalsOf(n int) []Approval {
	part := func(n int) registry.Part { return registry.Part{Value: strings.Repeat("x", n)} }
	return []Approval{
		{Tools: map[string]ApprovedTool{"a": {Parts: []registry.Part{part(1), part(2)}}}},
		{Tools: map[string]ApprovedTool{"b": {Parts: []registry.Part{part(n - 3)}}}},
	}
}

// "always-server" is offered unless the definitions take more than the share of four questions.
func TestServerIsOfferedIfThereIsRoom(t *testing.T) {
	const room = 4 * (8 << 20 / 100)
	for n, want := range map[int]bool{3: true, room: true, room + 1: false} {
		var k KeptQuestion
		if got := k.OfferServer(approvalsOf(n)); got != want || (k.Server != nil) != want {
			t.Errorf("%d bytes: %t, %d approvals", n, got, len(k.Server))
		}
	}
	var k KeptQuestion
	if k.OfferServer(nil) || k.Server != nil {
		t.Error("offered without approvals")
	}
}

// The text, the reason and the definitions of a question count, of one question and of all.
func TestQuestionsTakeLimitedRoom(t *testing.T) {
	s, _ := newQuestions(t)
	half := KeptQuestion{Question: strings.Repeat("q", 4<<20-300), Reason: strings.Repeat("r", 100), Always: approvalsOf(100), Server: approvalsOf(100)}
	whole := half
	whole.Call, whole.Question = "whole", half.Question+strings.Repeat("q", 4<<20)
	if _, err := s.Keep(t.Context(), whole); err != nil {
		t.Errorf("of the greatest length: %v", err)
	}
	whole.Question += "q"
	if _, err := s.Keep(t.Context(), whole); err == nil {
		t.Error("kept a question that is too long")
	}
	var ids []string
	for _, call := range []string{"a", "b", "c"} {
		half.Call = call
		ids = append(ids, keep(t, run(s), half))
	}
	if got := pendingIDs(t, s); !slices.Equal(got, ids[1:]) {
		t.Errorf("kept %q of %q", got, ids)
	}
}

// That another call has taken an answer is no reason to warn, a file that cannot be changed is.
func TestClaimWarnsAboutTheFileOnly(t *testing.T) {
	s, _ := newQuestions(t)
	var warned []string
	s.Approvals.Warn = func(d registry.Diagnostic) { warned = append(warned, d.Code) }
	id := keep(t, s, KeptQuestion{Call: "c"})
	answer(t, s, id, "yes")
	if !s.Claim(t.Context(), id) || s.Claim(t.Context(), id) || warned != nil {
		t.Errorf("warned %q", warned)
	}
	file := filepath.Join(s.Approvals.Dir.Path, questionsFolder)
	if err := errors.Join(os.Remove(file), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if s.Claim(t.Context(), id) || !slices.Equal(warned, []string{"questions_unavailable"}) {
		t.Errorf("warned %q", warned)
	}
	next := &Questions{Approvals: s.Approvals}
	if _, ok := next.Answered(t.Context(), "c", ""); ok || len(warned) != 2 {
		t.Errorf("a file that cannot be read: %t, warned %q", ok, warned)
	}
}

func TestNoQuestionIsAnsweredWithoutState(t *testing.T) {
	s := &Questions{Approvals: &Approvals{}}
	if _, ok := s.Answered(t.Context(), "c", "s"); ok {
		t.Error("a question that cannot be kept has an answer")
	}
}

// A question that needs no answer any more is forgotten, and only that one.
func TestForget(t *testing.T) {
	id := func(call string) func() string { return func() string { return call } }
	never := func() string { t.Error("the call is identified"); return "" }
	s, _ := newQuestions(t)
	s.Approvals.Warn = func(d registry.Diagnostic) { t.Errorf("%+v", d) }
	s.Forget(t.Context(), never, true) // there are no questions
	keep(t, s, KeptQuestion{Call: "aa"})
	bb := keep(t, s, KeptQuestion{Call: "bb"})
	s.Forget(t.Context(), id("cc"), true)
	s.Forget(t.Context(), id("aa"), false)
	if got := pendingIDs(t, s); !slices.Equal(got, []string{bb}) {
		t.Errorf("%q wait, want %q", got, bb)
	}
	(&Questions{Approvals: &Approvals{}}).Forget(t.Context(), never, true)

	warned := 0
	m := &memory{}
	shared := &Questions{Approvals: &Approvals{Shared: m, Warn: func(registry.Diagnostic) { warned++ }}}
	alice := caller.With(t.Context(), &caller.Caller{Name: "alice"})
	if _, err := shared.Keep(alice, KeptQuestion{Call: "aa"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		asked bool
		want  int
	}{{false, 1}, {true, 0}} {
		shared.Forget(alice, id("aa"), tt.asked)
		if list, err := shared.Pending(alice, true); err != nil || len(list) != tt.want {
			t.Errorf("asked %t: %d questions, %v", tt.asked, len(list), err)
		}
	}
	m.away = errors.New("gone")
	over, cancel := context.WithCancel(alice)
	cancel()
	if shared.Forget(over, id("aa"), true); warned > 0 {
		t.Error("a warning without a cause")
	}
	if shared.Forget(alice, id("aa"), true); warned != 1 {
		t.Errorf("%d warnings, want one", warned)
	}
}

// A stamp changes with the questions and with the approvals.
func TestStamp(t *testing.T) {
	if got := (&Questions{Approvals: &Approvals{}}).Stamp(t.Context()); got != "-" {
		t.Errorf("without a folder: %q", got)
	}
	s, _ := newQuestions(t)
	stamps := []string{s.Stamp(t.Context())}
	change := func(err error) {
		if stamp := s.Stamp(t.Context()); err != nil || slices.Contains(stamps, stamp) {
			t.Errorf("%q again, %v", stamp, err)
		} else {
			stamps = append(stamps, stamp)
		}
	}
	change(s.Approvals.Remember(t.Context(), todoTool(), Scope{Kind: ScopeTool}))
	_, err := s.Keep(t.Context(), KeptQuestion{Call: "aa"})
	change(err)
	change(s.Approvals.Remember(t.Context(), fetchTool(), Scope{Kind: ScopeTool}))
	change(nil) // the next change may get the same time
	for i, name := range []string{questionsFolder, approvalsFile, questionsFolder, approvalsFile} {
		old := time.Now().Add(-time.Duration(i+1) * time.Hour)
		if err := os.Chtimes(filepath.Join(s.Approvals.Dir.Path, name), old, old); err != nil {
			t.Fatal(err)
		}
		change(nil)
	}
	if got := s.Stamp(t.Context()); got != stamps[len(stamps)-1] {
		t.Errorf("without a change: %q after %q", got, stamps[len(stamps)-1])
	}
}

// Only the question that was read is replaced or taken, because others may change what is shared.
func TestReplace(t *testing.T) {
	s, _ := newQuestions(t)
	s.Approvals.Shared = &memory{}
	alice := caller.With(t.Context(), &caller.Caller{Name: "alice"})
	k, err := s.Keep(alice, KeptQuestion{Call: "c"})
	if err != nil {
		t.Fatal(err)
	}
	other, answered := k, k
	other.ID, answered.Choice = "other", "yes"
	for _, old := range []KeptQuestion{other, answered} {
		if err := s.replace(alice, s.Approvals.Shared, &old, nil); !errors.Is(err, errClaimed) {
			t.Errorf("%+v: %v", old, err)
		}
	}
	if list, err := s.Pending(alice, true); err != nil || len(list) != 1 {
		t.Errorf("%d questions, %v", len(list), err)
	}
	if err := s.replace(alice, s.Approvals.Shared, &k, &answered); err != nil {
		t.Error(err)
	}
	if got, ok := s.Answered(alice, "c", ""); !ok || got.ID != k.ID {
		t.Errorf("%+v, %t", got, ok)
	}
}

// The answer "always" also answers questions that offer the same.
func TestAlwaysAnswersLikeQuestions(t *testing.T) {
	s, now := newQuestions(t)
	always := func(tool string) []Approval {
		list, err := s.Approvals.New(t.Context(), pathTool(tool, registry.CategoryOther), Scope{Kind: ScopeTool})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := keep(t, s, KeptQuestion{Call: "1", Always: always("a")})
	*now = now.Add(time.Minute)
	keep(t, s, KeptQuestion{Call: "2", Always: always("a")})
	other, none := keep(t, s, KeptQuestion{Call: "3", Always: always("b")}), keep(t, s, KeptQuestion{Call: "4"})
	answer(t, s, first, "always")
	if got := pendingIDs(t, s); !slices.Equal(got, []string{other, none}) {
		t.Errorf("%q wait, want %q and %q", got, other, none)
	}
}

// A long question takes the room of the oldest ones.
func TestSharedQuestionsGiveWay(t *testing.T) {
	s := &Questions{Approvals: &Approvals{Shared: &memory{}}}
	alice := caller.With(t.Context(), &caller.Caller{Name: "alice"})
	for call, size := range []int{maxShared/4 + 1, maxShared/4 + 1, maxShared/4 + 1, maxShared / 2} {
		if _, err := run(s).Keep(alice, KeptQuestion{Call: fmt.Sprint(call), Question: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Pending(alice, true)
	if err != nil || len(list) != 2 || list[0].Call != "2" || list[1].Call != "3" {
		t.Errorf("%d questions, %v", len(list), err)
	}
}
