package question

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/timing"
)

// settlement decides which answer to a question counts if it can be given by a client and
// elsewhere, such as at the console: the first one. The zero value has none.
type settlement struct {
	mu        sync.Mutex
	byClient  bool
	elsewhere atomic.Bool
	// claim takes the answer to a question that a modern client has received. It is nil as long
	// as the client has received none.
	claim func() bool
}

// Elsewhere reports whether an answer that the client has not given is the first one.
func (s *settlement) Elsewhere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byClient || s.elsewhere.Load() || s.claim != nil && !s.claim() {
		return false
	}
	s.elsewhere.Store(true)
	return true
}

// Client reports whether an answer of the client is the first one.
func (s *settlement) Client() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.elsewhere.Load() {
		return false
	}
	s.byClient = true
	return true
}

// asked records that a modern client gets the question in the result of its request, unless it
// was answered elsewhere before. claim takes the answer from the client.
func (s *settlement) asked(claim func() bool) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = claim
	return !s.elsewhere.Load()
}

// wasElsewhere reports whether the question was answered elsewhere than at the client.
func (s *settlement) wasElsewhere() bool { return s != nil && s.elsewhere.Load() }

type settlementKey struct{}

// errSettled is the cause with which the question to the place that was slower is withdrawn.
var errSettled = errors.New("the question was answered elsewhere")

// answering shows a question until it is answered, which counts if first reports so, or ctx is done.
type answering[T any] func(ctx context.Context, first func() bool) (T, error)

// firstAnswer returns the first answer: that of the client, that of the console, which shows the question
// until patience is over, or that of the place where the question is kept. Console and kept may
// be nil. If asked is false, the client cannot be asked, and client says what happens without an answer.
func firstAnswer[T any](ctx context.Context, patience time.Duration, asked bool,
	client func(context.Context) (T, error), console, kept answering[T],
) (T, error) {
	if console == nil && !asked {
		return client(ctx)
	}
	defer From(ctx).opens()()
	s := &settlement{}
	both, cancel := context.WithCancelCause(context.WithValue(ctx, settlementKey{}, s))
	defer cancel(nil)
	patient, expire := timing.Limit(both, patience, nil)
	defer expire()
	type result struct {
		answer   T
		err      error
		Asked    bool // a person, at the client or the console
		atClient bool
	}
	results := make(chan result, 3)
	open, asking := 0, 0
	ask := func(f func() (T, error), asks, atClient bool) {
		open++
		if asks {
			asking++
		}
		go func() {
			answer, err := f()
			results <- result{answer, err, asks, atClient}
		}()
	}
	if console != nil {
		ask(func() (T, error) { return console(patient, s.Elsewhere) }, true, false)
	}
	if kept != nil {
		ask(func() (T, error) { return kept(both, s.Elsewhere) }, false, false)
	}
	if asked {
		ask(func() (T, error) {
			answer, err := client(both)
			if err == nil && !s.Client() {
				err = errSettled
			}
			return answer, err
		}, true, true)
	}
	var given, failed *result // the first answer, and why the person asked last gave none
	for ; open > 0; open-- {
		switch r := <-results; {
		case r.err == nil:
			given = &r
		case r.Asked:
			asking--
			if failed == nil || r.atClient {
				failed = &r
			}
		}
		if given != nil || asking == 0 {
			cancel(errSettled) // the rest are awaited, because they use the state of the call
		}
	}
	switch {
	case given != nil:
		if c := From(ctx); c != nil && c.call != nil && !given.atClient {
			c.call.stays = true
		}
		return given.answer, nil
	case !asked && ctx.Err() == nil:
		return client(ctx)
	}
	return failed.answer, failed.err
}
