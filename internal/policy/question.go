package policy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

const (
	// QuestionLifetime is how long a question and its answer are kept.
	QuestionLifetime = 24 * time.Hour
	// maxQuestions and maxQuestionBytes limit the stored questions of one client. When a process
	// has stored pruneEvery more, the oldest are removed.
	maxQuestions     = 100
	maxQuestionBytes = 8 << 20
	pruneEvery       = 16
)

// KeptQuestion is a stored question about a call that nobody could answer at the time, and its
// answer.
type KeptQuestion struct {
	ID      string    `json:"id"`
	Client  string    `json:"client"`  // as [Approval.Client]
	Project string    `json:"project"` // root of the project
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Question is what people and programs are asked, as JSON. This package does not interpret it.
	Question string `json:"question"`
	// Call identifies the call, in letters and digits: two calls with the same value are the same
	// call.
	Call string `json:"call"`
	// State identifies what the question was about besides the call: the definition of
	// the tool, the files that were shown, the rule that asked. An answer is void if it
	// has changed.
	State string `json:"state"`
	// Always are the approvals that the answer "always" adds; empty if it is not offered.
	Always []Approval `json:"always,omitempty"`
	// Server are the approvals that the answer "always-server" adds.
	Server []Approval `json:"server,omitempty"`
	// Choice is the answer, "yes" or "no"; "" if there is none yet. Reason is for the model.
	Choice string `json:"choice,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// size estimates how many bytes a question takes in the file.
func (k *KeptQuestion) size() int {
	return len(k.Question) + len(k.Reason) + sizeOf(k.Always) + sizeOf(k.Server)
}

func sizeOf(approvals []Approval) (n int) {
	for _, a := range approvals {
		for _, t := range a.Tools {
			for _, p := range t.Parts {
				n += len(p.Value)
			}
		}
	}
	return n
}

// OfferServer adds the answer "always-server" to the question, unless the definitions of the
// server's tools would leave too little room for other questions. It reports whether the answer was
// added.
func (k *KeptQuestion) OfferServer(approvals []Approval) bool {
	if len(approvals) == 0 || sizeOf(approvals) > maxQuestionBytes/maxQuestions*4 {
		return false
	}
	k.Server = approvals
	return true
}

// storedQuestion is the content of the file of a question.
type storedQuestion struct {
	Version int `json:"version"`
	KeptQuestion
}

// Questions stores questions for a day, where the approvals of the caller are. It is safe for
// concurrent use, also by several processes.
type Questions struct {
	Approvals *Approvals // required

	kept   atomic.Int64 // how many questions this process has kept
	warned sync.Once    // warns of unusable questions once per run
}

// Keep stores a question of the project and returns it, or returns a stored one about the same
// call. The caller sets Client, Question, Call, State and Always. A void question about the same
// call is removed.
func (s *Questions) Keep(ctx context.Context, k KeptQuestion) (KeptQuestion, error) {
	shared, most, all := s.Approvals.Shares(ctx), maxQuestionBytes, maxQuestionBytes // bytes
	if shared {
		most, all = maxShared/2, maxShared
	}
	if k.size() > most {
		return k, fmt.Errorf("the question is longer than %d bytes", most)
	}
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	k.ID, k.Project, k.Created = hex.EncodeToString(random[:]), s.Approvals.Project, s.Approvals.clock()
	k.Expires = k.Created.Add(QuestionLifetime)
	kept := k
	err := s.change(ctx, shared, func(files QuestionFiles) error {
		err := files.Update(ctx, questionFile(k.Call), func(old []byte) ([]byte, error) {
			was, err := s.decode(files, old)
			switch {
			case errors.Is(err, errNewer):
				return nil, err
			case err == nil && was.ID != "" && was.State == k.State:
				kept = was
				return old, nil
			}
			kept = k
			return json.Marshal(storedQuestion{approvalsVersion, k})
		})
		if err == nil && s.kept.Add(1)%pruneEvery == 1 {
			err = s.prune(ctx, files, k.Client, all)
		}
		return err
	})
	return kept, err
}

// decode decodes a question. It returns the zero value if there is none, or if it has expired.
func (s *Questions) decode(files QuestionFiles, data []byte) (KeptQuestion, error) {
	var q storedQuestion
	if err := parseFile(data, &q); err != nil {
		where := "serve.store"
		if folder, own := files.(questionFolder); own {
			where = folder.Path
		}
		return KeptQuestion{}, fmt.Errorf("a question in %s: %w", where, err)
	}
	if !s.Approvals.clock().Before(q.Expires) {
		return KeptQuestion{}, nil
	}
	return q.KeptQuestion, nil
}

// prune removes expired questions, and the oldest of a client that has too many.
func (s *Questions) prune(ctx context.Context, files QuestionFiles, client string, most int) error {
	type one struct {
		created time.Time
		size    int
		remove  func(context.Context) error
	}
	var own []one
	err := files.Each(ctx, questionsFolder, func(data []byte, remove func(context.Context) error) error {
		k, err := s.decode(files, data)
		switch {
		case errors.Is(err, errNewer):
		case k.ID == "": // or it is damaged
			return remove(ctx)
		case k.Client == client:
			own = append(own, one{k.Created, k.size(), remove})
		}
		return nil
	})
	slices.SortStableFunc(own, func(a, b one) int { return b.created.Compare(a.created) })
	bytes := 0
	for i, k := range own {
		if bytes += k.size; err == nil && (i >= maxQuestions || bytes > most) {
			err = k.remove(ctx)
		}
	}
	return err
}

// listKept returns the questions that have not expired, oldest first.
func (s *Questions) listKept(ctx context.Context, files QuestionFiles) (out []KeptQuestion, err error) {
	err = files.Each(ctx, questionsFolder, func(data []byte, _ func(context.Context) error) error {
		k, err := s.decode(files, data)
		if err != nil {
			s.warn(ctx, err)
		} else if k.ID != "" {
			out = append(out, k)
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b KeptQuestion) int { return a.Created.Compare(b.Created) })
	return out, err
}

// Answered returns the answered question about a call, if its state is unchanged.
func (s *Questions) Answered(ctx context.Context, call, state string) (KeptQuestion, bool) {
	shared := s.Approvals.Shares(ctx)
	if !shared && s.Approvals.Dir == nil {
		return KeptQuestion{}, false
	}
	var k KeptQuestion
	files, err := s.files(shared)
	if err == nil {
		var data []byte
		if data, err = files.Read(ctx, questionFile(call)); err == nil {
			k, err = s.decode(files, data)
		}
	}
	if err != nil {
		s.warn(ctx, err)
	}
	return k, k.Choice != "" && k.State == state
}

// Forget removes the question about a call that no longer needs an answer. asked says that this run
// asked it; if not, shared questions are left alone, so that calls do not wait for the store.
func (s *Questions) Forget(ctx context.Context, call func() string, asked bool) {
	shared := s.Approvals.Shares(ctx)
	if shared && !asked || !shared && s.Approvals.Dir == nil {
		return
	}
	files, err := s.files(shared)
	if folder, own := files.(questionFolder); err == nil && own { // most calls have no question, and then need no lock
		if names, err := folder.Names("", ""); err == nil && (len(names) == 0 || !slices.Contains(names, call())) {
			return
		}
	}
	if err == nil {
		err = s.change(ctx, shared, func(files QuestionFiles) error { return forget(ctx, files, call()) })
	}
	if err != nil {
		s.warn(ctx, err)
	}
}

func forget(ctx context.Context, files QuestionFiles, call string) error {
	return files.Update(ctx, questionFile(call), func([]byte) ([]byte, error) { return nil, nil })
}

// Stamp returns a value that changes whenever questions are answered or approvals change. With a
// store, which cannot tell, it always changes.
func (s *Questions) Stamp(ctx context.Context) string {
	now := time.Now()
	if s.Approvals.Shares(ctx) {
		return now.String()
	}
	out := "-"
	if s.Approvals.Dir != nil {
		for _, name := range []string{questionsFolder, approvalsFile} {
			info, err := os.Stat(filepath.Join(s.Approvals.Dir.Path, name))
			if err != nil {
				continue
			}
			out += fmt.Sprint(" ", info.Size(), " ", info.ModTime().UnixNano())
			if now.Sub(info.ModTime()) < clockTick { // the next change may get the same time
				out += " " + now.String()
			}
		}
	}
	return out
}

// clockTick is longer than the steps of the clock of a file system.
const clockTick = 2 * time.Second

// warn reports that questions cannot be used, unless ctx has ended.
func (s *Questions) warn(ctx context.Context, err error) {
	if s.Approvals.Warn != nil && ctx.Err() == nil {
		s.warned.Do(func() {
			s.Approvals.Warn(registry.Warning("questions_unavailable", "",
				"questions that wait for an answer cannot be kept or read: "+err.Error(), ""))
		})
	}
}

// Claim takes and removes answered questions: all of them, or none if one is missing. Shared ones
// are claimed one at a time. If they cannot be changed, it warns and returns false.
func (s *Questions) Claim(ctx context.Context, ids ...string) bool {
	err := s.change(ctx, s.Approvals.Shares(ctx), func(files QuestionFiles) error {
		list, err := s.listKept(ctx, files)
		if err != nil {
			return err
		}
		var claimed []KeptQuestion
		for _, id := range ids {
			i := slices.IndexFunc(list, func(x KeptQuestion) bool { return x.ID == id && x.Choice != "" })
			if i < 0 {
				return errClaimed
			}
			claimed = append(claimed, list[i])
			list = slices.Delete(list, i, i+1)
		}
		for _, k := range claimed {
			if err := s.replace(ctx, files, &k, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errClaimed) {
		s.warn(ctx, err)
	}
	return err == nil
}

var errClaimed = errors.New("another call has the answer")

// replace replaces a question by another, or removes it if the other is nil. The error is
// [errClaimed] if the question has changed meanwhile.
func (s *Questions) replace(ctx context.Context, files QuestionFiles, old, k *KeptQuestion) error {
	return files.Update(ctx, questionFile(old.Call), func(data []byte) ([]byte, error) {
		now, _ := s.decode(files, data) // what cannot be read has no ID
		switch {
		case now.ID != old.ID, now.Choice != old.Choice:
			return nil, errClaimed
		case k == nil:
			return nil, nil
		}
		return json.Marshal(storedQuestion{approvalsVersion, *k})
	})
}

// Pending returns the unanswered questions of the project, or of all projects, oldest first.
func (s *Questions) Pending(ctx context.Context, all bool) (out []KeptQuestion, err error) {
	for _, shared := range []bool{false, true} {
		if shared && s.Approvals.Shared == nil || !shared && s.Approvals.Dir == nil {
			continue
		}
		files, err := s.files(shared)
		if err != nil {
			return nil, err
		}
		list, err := s.listKept(ctx, files)
		if err != nil {
			return nil, fmt.Errorf("reading the questions: %w", err)
		}
		out = append(out, list...)
	}
	out = slices.DeleteFunc(out, func(x KeptQuestion) bool {
		return x.Choice != "" || !all && x.Project != s.Approvals.Project
	})
	slices.SortStableFunc(out, func(a, b KeptQuestion) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// NoQuestionError reports that no unanswered question has the given id. It wraps
// registry.ErrNotFound.
type NoQuestionError struct {
	ID       string
	Answered bool // it was answered before
}

func (e *NoQuestionError) Error() string {
	if e.Answered {
		return fmt.Sprintf("question %q was answered already", e.ID)
	}
	return fmt.Sprintf("no open question has the id %q", e.ID)
}

// Hint says where to look.
func (e *NoQuestionError) Hint() string {
	return "run toolreg approvals pending to see the open questions"
}

// Unwrap returns registry.ErrNotFound.
func (e *NoQuestionError) Unwrap() error { return registry.ErrNotFound }

// Answer answers the question, of any project, whose id begins with the given prefix, and returns
// its id. choice is "yes", "no", "always" or "always-server"; the last two add the question's
// approvals. reason is for the model. The error is a *NoQuestionError if there is no such question
// or it was answered before, and wraps [ErrNotOffered] if the question does not offer the choice.
func (s *Questions) Answer(ctx context.Context, id, choice, reason string) (answered string, err error) {
	answered, err = s.answer(ctx, false, id, choice, reason)
	if none, ok := errors.AsType[*NoQuestionError](err); ok && !none.Answered && s.Approvals.Shared != nil {
		return s.answer(ctx, true, id, choice, reason)
	}
	return answered, err
}

func (s *Questions) answer(ctx context.Context, shared bool, id, choice, reason string) (answered string, err error) {
	err = s.change(ctx, shared, func(files QuestionFiles) error {
		list, err := s.listKept(ctx, files)
		if err != nil {
			return err
		}
		i, err := findUnanswered(list, id)
		if err != nil {
			return err
		}
		k := list[i]
		answered = k.ID
		switch choice {
		case "always", "always-server":
			approvals := k.Always
			if choice == "always-server" {
				approvals = k.Server
			}
			if len(approvals) == 0 {
				return fmt.Errorf("question %s: %s: %w", k.ID, choice, ErrNotOffered)
			}
			if err := s.Approvals.Add(ctx, approvals); err != nil {
				return err
			}
			for _, x := range list {
				if x.ID == k.ID || covers(approvals, x.Always) {
					if err := forget(ctx, files, x.Call); err != nil {
						return err
					}
				}
			}
			return nil
		case "yes", "no":
			next := k
			next.Choice, next.Reason = choice, reason
			err := s.replace(ctx, files, &k, &next)
			if errors.Is(err, errClaimed) {
				err = &NoQuestionError{ID: k.ID, Answered: true}
			}
			return err
		}
		return fmt.Errorf("question %s: %q: %w", k.ID, choice, ErrNotOffered)
	})
	return answered, err
}

// covers reports whether the added approvals are those that another question offers, so that it
// need not be answered.
func covers(added, offered []Approval) bool {
	return slices.EqualFunc(added, offered, func(a, b Approval) bool {
		a.ID, a.Created, b.ID, b.Created = "", time.Time{}, "", time.Time{}
		return reflect.DeepEqual(a, b)
	})
}

// ErrNotOffered is wrapped by the error about a choice that a question does not offer.
var ErrNotOffered = errors.New("it is not one of the choices of the question")

// findUnanswered returns the index of the only unanswered question whose id begins with a prefix.
func findUnanswered(list []KeptQuestion, id string) (int, error) {
	var fits []int
	for i, x := range list {
		if id != "" && strings.HasPrefix(x.ID, id) {
			fits = append(fits, i)
		}
	}
	switch {
	case len(fits) == 0:
		return 0, &NoQuestionError{ID: id}
	case len(fits) > 1:
		return 0, fmt.Errorf("%q matches %d questions; give more characters of the id", id, len(fits))
	case list[fits[0]].Choice != "":
		return 0, &NoQuestionError{ID: list[fits[0]].ID, Answered: true}
	}
	return fits[0], nil
}

// files returns the files of shared questions, or those in the state folder.
func (s *Questions) files(shared bool) (QuestionFiles, error) {
	if shared {
		return s.Approvals.Shared, nil
	}
	if s.Approvals.Dir == nil {
		return nil, s.Approvals.noFolder()
	}
	dir, err := state.OpenDir(filepath.Join(s.Approvals.Dir.Path, questionsFolder))
	return questionFolder{dir}, err
}

// change calls do with the files. Those in the state folder are locked meanwhile; shared ones may
// change between its steps.
func (s *Questions) change(ctx context.Context, shared bool, do func(QuestionFiles) error) error {
	files, err := s.files(shared)
	if err != nil {
		return err
	}
	if !shared {
		unlock, err := s.Approvals.Dir.Lock(ctx, questionsFolder)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return do(files)
}
