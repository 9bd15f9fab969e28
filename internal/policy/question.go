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
	// maxQuestions and maxQuestionBytes limit the questions of one client that are kept. The
	// oldest are forgotten when a process has kept pruneEvery more.
	maxQuestions     = 100
	maxQuestionBytes = 8 << 20
	pruneEvery       = 16
)

// KeptQuestion is a question about a call that nobody could be asked about, with its answer.
type KeptQuestion struct {
	ID      string    `json:"id"`
	Client  string    `json:"client"`  // as [Approval.Client]
	Project string    `json:"project"` // root of the project
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Question is what people and programs are asked, as JSON whose form is not a matter of
	// this package.
	Question string `json:"question"`
	// Call identifies the call: two calls with the same value, of letters and digits, are the
	// same call.
	Call string `json:"call"`
	// State identifies what the question was about besides the call: the definition of
	// the tool, the files that were shown, the rule that asked. An answer is void if it
	// has changed.
	State string `json:"state"`
	// Always are the approvals that the answer "always" adds; empty if it is not offered.
	Always []Approval `json:"always,omitempty"`
	// Server are those of the answer "always-server".
	Server []Approval `json:"server,omitempty"`
	// Choice is the answer, "yes" or "no"; "" if there is none yet. Reason is for the model.
	Choice string `json:"choice,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// size is about how many bytes of the file a question takes.
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

// OfferServer lets the question have the answer "always-server", unless the definitions of the
// server's tools take too much room beside other questions. It reports whether it does.
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

// Questions keeps questions that nobody could be asked for a day, where the approvals of the
// caller are. It is safe for concurrent use, also by several processes.
type Questions struct {
	Approvals *Approvals // required

	kept   atomic.Int64 // how many questions this process has kept
	warned sync.Once    // warns of unusable questions once per run
}

// Keep keeps a question of the project and returns it, or the one that is kept already for
// the same call. The caller sets Client, Question, Call, State and Always. A void question about
// the same call is forgotten.
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

// prune forgets questions that have expired, and the oldest ones of a client that has too many.
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

// Answered returns the question about a call that was answered, if its state is unchanged.
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

// Forget forgets the question about a call that needs no answer any more. asked says that there was
// one in this run; if not, shared questions stay, because a call should not wait for the store.
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

// Stamp returns a value that is another one after questions were answered or approvals were
// changed. With a store, which does not tell, it is always another one.
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

// warn reports that the questions cannot be used, unless that is for the end of ctx.
func (s *Questions) warn(ctx context.Context, err error) {
	if s.Approvals.Warn != nil && ctx.Err() == nil {
		s.warned.Do(func() {
			s.Approvals.Warn(registry.Warning("questions_unavailable", "",
				"questions that wait for an answer cannot be kept or read: "+err.Error(), ""))
		})
	}
}

// Claim takes answered questions, which are then forgotten: all of them, or none if one is not
// there any more. Shared ones are claimed one at a time. It returns false and warns if they cannot be
// changed.
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

// replace replaces a question by another one, or forgets it if that is nil. The error is
// [errClaimed] if it is no longer kept as it was.
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

// Pending returns the questions of the project, or of all projects, that nobody has answered,
// oldest first.
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

// NoQuestionError reports that no question with the given id waits for an answer. It wraps
// registry.ErrNotFound.
type NoQuestionError struct {
	ID       string
	Answered bool // it has an answer
}

func (e *NoQuestionError) Error() string {
	if e.Answered {
		return fmt.Sprintf("question %q was answered already", e.ID)
	}
	return fmt.Sprintf("no question with the id %q waits for an answer", e.ID)
}

// Hint says where to look.
func (e *NoQuestionError) Hint() string {
	return "run toolreg approvals pending to see the questions that wait for an answer"
}

// Unwrap returns registry.ErrNotFound.
func (e *NoQuestionError) Unwrap() error { return registry.ErrNotFound }

// Answer answers the question, of any project, whose id begins with the given prefix, and returns
// its id. choice is "yes", "no", or "always" or "always-server", which add approvals of the
// question; reason is for the model. The
// error is a *NoQuestionError if there is no such question, or it was answered before, and wraps
// [ErrNotOffered] if the question does not offer the choice.
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

// covers reports whether added approvals are those that another question offers, which then need
// not be answered.
func covers(added, offered []Approval) bool {
	return slices.EqualFunc(added, offered, func(a, b Approval) bool {
		a.ID, a.Created, b.ID, b.Created = "", time.Time{}, "", time.Time{}
		return reflect.DeepEqual(a, b)
	})
}

// ErrNotOffered is wrapped by the error for an answer that a question does not offer.
var ErrNotOffered = errors.New("it is not one of the choices of the question")

// findUnanswered returns the index of the only question without an answer whose id begins with a prefix.
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

// files returns the files of the shared questions, or of those in the state folder.
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

// change lets do change the shared questions, which others may change too between its steps, or
// those in the state folder while nobody else does.
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
