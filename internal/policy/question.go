package policy

import (
	"bytes"
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
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

const (
	// questionsFile is the name of the file in the state directory.
	questionsFile = "questions.json"
	// QuestionLifetime is how long a question and its answer are kept.
	QuestionLifetime = 24 * time.Hour
	// maxQuestions and maxQuestionBytes limit the questions of one client that are kept.
	// A new one replaces the oldest.
	maxQuestions     = 100
	maxQuestionBytes = 8 << 20
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

type questionFile struct {
	Version   int            `json:"version"`
	Questions []KeptQuestion `json:"questions"`
}

// Questions keeps questions that nobody could be asked for a day, where the approvals of the
// caller are. It is safe for concurrent use, also by several processes.
type Questions struct {
	Approvals *Approvals // required

	warned sync.Once // warns of an unusable file once per run
}

// Keep keeps a question of the project and returns it, or the one that is kept already for
// the same call. The caller sets Client, Question, Call, State and Always. A void question about
// the same call is forgotten.
func (s *Questions) Keep(ctx context.Context, k KeptQuestion) (KeptQuestion, error) {
	most := maxQuestionBytes
	if s.Approvals.Shares(ctx) {
		most = maxShared / 2
	}
	if k.size() > most {
		return k, fmt.Errorf("the question is longer than %d bytes", most)
	}
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	k.ID, k.Project, k.Created = hex.EncodeToString(random[:]), s.Approvals.Project, s.Approvals.now()
	k.Expires = k.Created.Add(QuestionLifetime)
	kept := k
	err := s.update(ctx, s.Approvals.Shares(ctx), func(list []KeptQuestion) ([]KeptQuestion, error) {
		i := slices.IndexFunc(list, func(x KeptQuestion) bool { return x.Call == k.Call && x.State == k.State })
		if i >= 0 {
			kept = list[i]
			return list, nil
		}
		list = append(slices.DeleteFunc(list, func(x KeptQuestion) bool { return x.Call == k.Call }), k)
		return limited(list, k.Client), nil
	})
	return kept, err
}

// limited returns the questions without the oldest ones of a client if it has too many.
func limited(list []KeptQuestion, client string) []KeptQuestion {
	count, bytes := 0, 0
	var out []KeptQuestion
	for _, x := range slices.Backward(list) {
		if x.Client == client {
			count, bytes = count+1, bytes+x.size()
			if count > maxQuestions || bytes > maxQuestionBytes {
				continue
			}
		}
		out = append(out, x)
	}
	slices.Reverse(out)
	return out
}

// Answered returns the question about a call that was answered, if its state is unchanged.
func (s *Questions) Answered(ctx context.Context, call, state string) (KeptQuestion, bool) {
	shared := s.Approvals.Shares(ctx)
	if dir := s.Approvals.Dir; dir != nil && !shared { // most calls have no answer, and decoding a full file takes milliseconds
		if data, err := dir.Read(questionsFile); err == nil && !bytes.Contains(data, []byte(call)) {
			return KeptQuestion{}, false
		}
	}
	list, err := s.open(ctx, shared)
	if err != nil {
		s.warn(err)
		return KeptQuestion{}, false
	}
	i := slices.IndexFunc(list, func(x KeptQuestion) bool { return x.Choice != "" && x.Call == call && x.State == state })
	if i < 0 {
		return KeptQuestion{}, false
	}
	return list[i], true
}

// Forget forgets the question about a call that needs no answer any more. asked says that there was
// one in this run; if not, shared questions stay, because a call should not wait for the store.
func (s *Questions) Forget(ctx context.Context, call func() string, asked bool) {
	shared := s.Approvals.Shares(ctx)
	if shared && !asked || !shared && s.Approvals.Dir == nil {
		return
	}
	var data []byte
	if !shared {
		if data, _ = s.Approvals.Dir.Read(questionsFile); !bytes.Contains(data, []byte(`"call"`)) { // there are no questions
			return
		}
	}
	id := call()
	if !shared && !bytes.Contains(data, []byte(id)) {
		return
	}
	if err := s.update(ctx, shared, func(list []KeptQuestion) ([]KeptQuestion, error) {
		return slices.DeleteFunc(list, func(x KeptQuestion) bool { return x.Call == id }), nil
	}); err != nil {
		s.warn(err)
	}
}

// Stamp returns a value that is another one after questions were answered or approvals were
// changed. With a store, which does not tell, it is always another one.
func (s *Questions) Stamp(ctx context.Context) string {
	if s.Approvals.Shares(ctx) {
		return s.Approvals.now().String()
	}
	out := "-"
	if s.Approvals.Dir != nil {
		for _, name := range []string{questionsFile, approvalsFile} {
			if info, err := os.Stat(filepath.Join(s.Approvals.Dir.Path, name)); err == nil {
				out += fmt.Sprint(" ", info.Size(), " ", info.ModTime().UnixNano())
			}
		}
	}
	return out
}

// warn reports that the questions cannot be used.
func (s *Questions) warn(err error) {
	if s.Approvals.Warn != nil {
		s.warned.Do(func() {
			s.Approvals.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "questions_unavailable",
				Message: "questions that wait for an answer cannot be kept or read: " + err.Error()})
		})
	}
}

// Claim takes answered questions, which are then forgotten: all of them, or none if one is not
// there any more. It returns false and warns if the file cannot be changed.
func (s *Questions) Claim(ctx context.Context, ids ...string) bool {
	err := s.update(ctx, s.Approvals.Shares(ctx), func(list []KeptQuestion) ([]KeptQuestion, error) {
		for _, id := range ids {
			i := slices.IndexFunc(list, func(x KeptQuestion) bool { return x.ID == id && x.Choice != "" })
			if i < 0 {
				return nil, errClaimed
			}
			list = slices.Delete(list, i, i+1)
		}
		return list, nil
	})
	if err != nil && !errors.Is(err, errClaimed) {
		s.warn(err)
	}
	return err == nil
}

var errClaimed = errors.New("another call has the answer")

// Pending returns the questions of the project, or of all projects, that nobody has answered,
// oldest first.
func (s *Questions) Pending(ctx context.Context, all bool) ([]KeptQuestion, error) {
	list, err := s.open(ctx, false)
	if err == nil && s.Approvals.Shared != nil {
		var shared []KeptQuestion
		shared, err = s.open(ctx, true)
		list = append(list, shared...)
	}
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(x KeptQuestion) bool {
		return x.Choice != "" || !all && x.Project != s.Approvals.Project
	})
	slices.SortStableFunc(list, func(a, b KeptQuestion) int { return a.Created.Compare(b.Created) })
	return list, nil
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
	err = s.update(ctx, shared, func(list []KeptQuestion) ([]KeptQuestion, error) {
		i, err := find(list, id)
		if err != nil {
			return nil, err
		}
		k := &list[i]
		answered = k.ID
		switch choice {
		case "always", "always-server":
			approvals := k.Always
			if choice == "always-server" {
				approvals = k.Server
			}
			if len(approvals) == 0 {
				return nil, fmt.Errorf("question %s: %s: %w", k.ID, choice, ErrNotOffered)
			}
			if err := s.Approvals.Add(ctx, approvals); err != nil {
				return nil, err
			}
			id := k.ID
			return slices.DeleteFunc(list, func(x KeptQuestion) bool { return x.ID == id || covers(approvals, x.Always) }), nil
		case "yes", "no":
			k.Choice, k.Reason = choice, reason
			return list, nil
		}
		return nil, fmt.Errorf("question %s: %q: %w", k.ID, choice, ErrNotOffered)
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

// find returns the index of the only question without an answer whose id begins with a prefix.
func find(list []KeptQuestion, id string) (int, error) {
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

// open returns the questions that have not expired: the shared ones, or those in the file.
func (s *Questions) open(ctx context.Context, shared bool) ([]KeptQuestion, error) {
	var f questionFile
	if shared {
		data, err := s.Approvals.Shared.Read(ctx, questionsFile)
		if err == nil {
			err = parseFile(data, &f)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the questions of clients: %w", err)
		}
	} else if s.Approvals.Dir != nil {
		if err := s.Approvals.read(questionsFile, &f); err != nil {
			return nil, err
		}
	}
	return s.current(f.Questions), nil
}

func (s *Questions) current(list []KeptQuestion) []KeptQuestion {
	now := s.Approvals.now()
	return slices.DeleteFunc(list, func(x KeptQuestion) bool { return !now.Before(x.Expires) })
}

// update changes the questions that have not expired, shared ones or those in the file, while
// nobody else does.
func (s *Questions) update(ctx context.Context, shared bool, change func([]KeptQuestion) ([]KeptQuestion, error)) error {
	if shared {
		return s.updateShared(ctx, change)
	}
	return replaceFile(ctx, s.Approvals, questionsFile, func(f *questionFile) (err error) {
		f.Version = approvalsVersion
		f.Questions, err = change(s.current(f.Questions))
		return err
	})
}

// updateShared is update for the shared questions. The oldest are forgotten if there are too many.
func (s *Questions) updateShared(ctx context.Context, change func([]KeptQuestion) ([]KeptQuestion, error)) error {
	return s.Approvals.Shared.Update(ctx, questionsFile, func(old []byte) ([]byte, error) {
		var f questionFile
		if err := parseFile(old, &f); errors.Is(err, errNewer) {
			return nil, err
		}
		list, err := change(s.current(f.Questions))
		if err != nil {
			return nil, err
		}
		bytes := 0
		for i, x := range slices.Backward(list) {
			if bytes += x.size(); bytes > maxShared {
				list = list[i+1:]
				break
			}
		}
		return json.Marshal(questionFile{approvalsVersion, list})
	})
}
