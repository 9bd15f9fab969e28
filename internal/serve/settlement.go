package serve

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// settlement decides which answer to a question counts if a client and the console are both
// asked: the first one. The zero value has none.
type settlement struct {
	mu        sync.Mutex
	byClient  bool
	byConsole atomic.Bool
	claim     func() bool // takes the answer to a question that a modern client has got; nil: it has got none
}

// Console reports whether an answer given at the console is the first one.
func (s *settlement) Console() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byClient || s.byConsole.Load() || s.claim != nil && !s.claim() {
		return false
	}
	s.byConsole.Store(true)
	return true
}

// Client reports whether an answer of the client is the first one.
func (s *settlement) Client() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byConsole.Load() {
		return false
	}
	s.byClient = true
	return true
}

// asked records that a modern client gets the question in the result of its request, unless it
// was answered at the console before. claim takes the answer from the client.
func (s *settlement) asked(claim func() bool) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = claim
	return !s.byConsole.Load()
}

// atConsole reports whether the question was answered at the console.
func (s *settlement) atConsole() bool { return s != nil && s.byConsole.Load() }

type settlementKey struct{}

// errSettled is the cause with which the question to the place that was slower is withdrawn.
var errSettled = errors.New("the question was answered elsewhere")

// firstAnswer gets the answer of the client or, if there is a console, the one that is given
// first. asked says that the client can be asked; if it cannot, client says what happens when
// nobody at the console answers.
func firstAnswer[T any](ctx context.Context, a Asker, asked bool, client func(context.Context) (T, error), console func(context.Context, func() bool) (T, error)) (T, error) {
	if a.Console == nil {
		return client(ctx)
	}
	s := &settlement{}
	both, cancel := context.WithCancelCause(context.WithValue(ctx, settlementKey{}, s))
	defer cancel(nil)
	patient, stop := context.WithCancel(both)
	defer stop()
	if a.Patience > 0 {
		var expire context.CancelFunc
		patient, expire = context.WithTimeout(patient, a.Patience)
		defer expire()
	}
	if !asked {
		answer, err := console(patient, s.Console)
		if err != nil && ctx.Err() == nil {
			return client(ctx)
		}
		return answer, err
	}
	type result struct {
		answer T
		err    error
	}
	atClient := make(chan result, 1)
	go func() {
		answer, err := client(both)
		if err == nil && s.Client() {
			stop()
		}
		atClient <- result{answer, err}
	}()
	if answer, err := console(patient, s.Console); err == nil {
		cancel(errSettled)
		<-atClient // it uses the state of the call
		if c := clientFrom(ctx); c.call != nil {
			c.call.stays = true
		}
		return answer, nil
	}
	r := <-atClient
	return r.answer, r.err
}
