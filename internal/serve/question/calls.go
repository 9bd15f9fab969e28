package question

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/store"
)

// Turn is one request of a client. It may continue an earlier one that waits for an answer.
type Turn struct {
	Method, Name string
	Params       []byte // the part that stays the same when the request is repeated
	State        string
	Answers      mcp.InputResponseMap
}

// Asked is the answer to a request whose client must first answer questions.
type Asked struct {
	mcp.ResultBase
	Type     string              `json:"resultType"`
	Requests mcp.InputRequestMap `json:"inputRequests"`
	State    string              `json:"requestState"`
}

func askFor(requests mcp.InputRequestMap, state string) *Asked {
	return &Asked{Type: "input_required", Requests: requests, State: state}
}

// Why waiting calls end.
var (
	ErrNoAnswer  = errors.New("the client sent no answer")
	ErrBrokenOff = errors.New("the client canceled its request")
	errTooMany   = errors.New("too many calls are waiting for answers; try again later")
)

// digest returns the same value for a request and for its repetition with answers, even if they are
// encoded differently.
func (t *Turn) digest() requestDigest {
	return digestOf(t.Method, t.Name, jsonx.Canonical(t.Params))
}

// Make handles a request, or continues a call that waits for the client's answers; run does the
// work. Make returns the result of run, or what to ask the client first, or the *Call if that
// continues as a task.
func (s *Calls) Make(ctx context.Context, t Turn, run func(context.Context) (any, error)) (any, *Asked, error) {
	if !From(ctx).Modern {
		v, err := run(ctx)
		return v, nil, err
	}
	if t.State == "" {
		return s.next(ctx, s.Start(ctx, t, nil, run))
	}
	w, again, err := s.resume(ctx, t, run)
	if w == nil {
		return nil, again, err
	}
	return s.next(ctx, w)
}

// Start runs a request that can ask its client questions. given are the client's answers to another
// process; nil for a new request.
func (s *Calls) Start(ctx context.Context, t Turn, given *earlierAnswers,
	run func(context.Context) (any, error)) *Call {
	c := From(ctx)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &Call{
		owner: c.From.Account(), request: t.digest(), questions: make(chan Question),
		done: make(chan Outcome, 1), Cancel: cancel, given: given, task: make(chan struct{}),
	}
	w.carrier.Store(c.outbox)
	who, within := *caller.From(ctx), *c
	within.call, who.Peer = w, &within
	ctx = caller.With(ctx, &who)
	go func() {
		defer cancel(nil)
		v, err := run(ctx)
		w.done <- Outcome{v, err}
	}()
	return w
}

// errOtherProcess rejects an answer to a call that has begun to run in another process.
var errOtherProcess = errors.New("this answer (requestState) belongs to a call that waits in another process of " +
	"this server, or ended with it, and may have run in part; make the call again if that is safe")

func refusedState(reason string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "requestState: " + reason + ". Send the request again without it"}
}

// resume passes a client's answers to the call that waits for them. If the call does not wait in
// this process, it runs again, provided that it has had no effect yet. If answers are missing,
// resume returns the questions to ask again.
func (s *Calls) resume(ctx context.Context, t Turn, run func(context.Context) (any, error)) (*Call, *Asked, error) {
	c := From(ctx)
	state, err := s.keys.Open(t.State)
	switch {
	case err != nil:
		return nil, nil, refusedState(err.Error())
	case state.Owner != c.From.Account():
		return nil, nil, refusedState("it belongs to a client with another token or profile")
	case !state.Request.Equal(t.digest()):
		return nil, nil, refusedState("it belongs to another request; method, name and params must be the same")
	}
	if w := s.settled(state.ID); w != nil {
		w.carrier.Store(c.outbox)
		return w, nil, nil
	}
	asked, waits := s.waitsFor(state.ID)
	switch {
	case waits && slices.ContainsFunc(slices.Collect(maps.Keys(asked)),
		func(key string) bool { return t.Answers[key] == nil }):
		return nil, askFor(asked, t.State), nil
	case !waits && state.Stage == nil && !s.answered.Has(ctx, state.ID):
		return nil, nil, errOtherProcess
	}
	if err := s.answered.Claim(c.From.Account(), state.ID); err != nil {
		return nil, nil, refusedState(err.Error())
	}
	if s.keys.Shared() {
		err = s.answered.Record(ctx, state.ID)
	}
	if _, away := errors.AsType[*store.UnavailableError](err); away { // the call keeps waiting
		s.answered.Release(c.From.Account(), state.ID)
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "requestState: " + err.Error()}
	}
	w := s.unpark(state.ID)
	if err != nil {
		if w != nil {
			w.Cancel(caller.ErrTaken)
		}
		return nil, nil, refusedState(err.Error())
	}
	switch {
	case w != nil:
		w.carrier.Store(c.outbox)
		w.asked.answer <- t.Answers
		return w, nil, nil
	case state.Stage == nil: // it has just expired
		return nil, nil, refusedState(errExpired.Error())
	}
	return s.Start(ctx, t, &earlierAnswers{*state.Stage, t.Answers}, run), nil, nil
}

// next waits for the end of a call, or for its next question.
func (s *Calls) next(ctx context.Context, w *Call) (any, *Asked, error) {
	select {
	case o := <-w.done:
		if w.isTask() {
			w.done <- o // it has room
			return w, nil, nil
		}
		return o.Value, nil, o.Err
	case w.asked = <-w.questions:
		if w.isTask() {
			w.first = &w.asked
			return w, nil, nil
		}
	case <-w.task:
		return w, nil, nil
	case <-ctx.Done():
		w.Cancel(ErrBrokenOff)
		o := <-w.done
		return o.Value, nil, o.Err
	}
	a, err := s.park(ctx, w)
	if errors.Is(err, errSettled) {
		return s.next(ctx, w)
	}
	if stage := w.asked.stage; err != nil && stage != nil && stage.Server == nil {
		err = &exec.Denied{Tool: w.tool.Name, Reason: "it needs an answer, and " + err.Error(), Later: true}
	}
	if err != nil {
		w.Stop(err)
	}
	return nil, a, err
}

// Calls tracks the questions that modern clients were asked, and the calls that wait for answers.
type Calls struct {
	keys     *stateKeys
	answered *answeredStates

	mu      sync.Mutex
	waiting map[string]*Call // by the ID of the question
}

// NewCalls returns Calls without any call. holder is the id of this process among those that share
// a store.
func NewCalls(o Options, holder string) *Calls {
	return &Calls{keys: newStateKeys(o.Key), answered: newAnsweredStates(o, holder), waiting: map[string]*Call{}}
}

// ChangeKey replaces the Key of [Options]. Earlier questions can still be answered.
func (s *Calls) ChangeKey(secret string) { s.keys.Change(secret) }

// QuestionOf returns the id of the question that a sealed state belongs to; "" if the state is not
// valid for the account.
func (s *Calls) QuestionOf(sealed, account string) string {
	if state, err := s.keys.Open(sealed); err == nil && state.Owner == account {
		return state.ID
	}
	return ""
}

// Holder returns the id of the process where a call waits for the answer to a question, according
// to the store; "" if none does.
func (s *Calls) Holder(ctx context.Context, id string) string {
	v, err := s.answered.Store.Get(ctx, waitingKind, id)
	if err != nil || !v.Exists() {
		return ""
	}
	return string(v.Data)
}

// park stores a call until its client answers, and returns what to ask the client.
func (s *Calls) park(ctx context.Context, w *Call) (*Asked, error) {
	id := rand.Text()
	state, err := s.keys.Seal(&requestState{ID: id, Owner: w.owner, Request: w.request, Stage: w.asked.stage})
	if err != nil {
		return nil, err
	}
	if err := s.answered.Asked(ctx, id); err != nil {
		return nil, err
	}
	later := context.WithoutCancel(ctx)
	if !w.asked.settled.asked(func() bool { return s.take(later, w, id) }) {
		return nil, errSettled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(w.owner); err != nil {
		return nil, err
	}
	s.waiting[id], w.since = w, time.Now()
	w.expiry = time.AfterFunc(lookEvery, func() { s.endIfAnswered(later, w, id) })
	return askFor(w.asked.Requests, state), nil
}

// lookEvery is how often a waiting call checks whether it has to end.
const lookEvery = time.Second

// endIfAnswered ends a waiting call if the client has given the answer to another process, or its
// time is over.
func (s *Calls) endIfAnswered(ctx context.Context, w *Call, id string) {
	s.mu.Lock()
	taken := w.asked.stage != nil && s.keys.Shared()
	s.mu.Unlock()
	taken = taken && s.answered.Taken(id)
	s.mu.Lock()
	if !taken && time.Since(w.since) < AnswerTime {
		if s.waiting[id] != nil {
			w.expiry.Reset(lookEvery)
		}
		s.mu.Unlock()
		return
	}
	waited := s.unparkLocked(id) != nil
	s.mu.Unlock()
	switch {
	case !waited:
	case taken, s.answered.Has(ctx, id) && !w.asked.settled.wasElsewhere():
		w.Cancel(caller.ErrTaken)
	default:
		w.Cancel(ErrNoAnswer)
	}
}

// maxWaiting limits the calls that wait for answers, and maxWaitingOwn those of one token.
const (
	maxWaiting    = 1000
	maxWaitingOwn = 500
)

// makeRoom makes room for another waiting call of an owner. If there are too many, it drops the
// oldest call that another process can continue. s.mu is held.
func (s *Calls) makeRoom(owner string) error {
	own := 0
	oldest, oldestOwn := "", ""
	older := func(id, than string) bool { return than == "" || s.waiting[id].since.Before(s.waiting[than].since) }
	for id, w := range s.waiting {
		if w.owner == owner {
			own++
		}
		if w.asked.stage == nil {
			continue
		}
		if older(id, oldest) {
			oldest = id
		}
		if w.owner == owner && older(id, oldestOwn) {
			oldestOwn = id
		}
	}
	switch {
	case own >= maxWaitingOwn:
		oldest = oldestOwn
	case len(s.waiting) < maxWaiting:
		return nil
	}
	if oldest == "" {
		return errTooMany
	}
	s.unparkLocked(oldest).Cancel(caller.ErrContinued)
	return nil
}

// take records that the question of a waiting call was answered at the console. An answer of the
// client then counts neither here nor in another process. It returns false if the client was first.
func (s *Calls) take(ctx context.Context, w *Call, id string) bool {
	if s.answered.Claim(w.owner, id) != nil {
		return false
	}
	if s.keys.Shared() && s.answered.Record(ctx, id) != nil {
		s.unpark(id)
		w.Cancel(caller.ErrTaken)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asked.stage = nil
	return true
}

// settled returns the call whose question was answered at the console, once; otherwise nil.
func (s *Calls) settled(id string) *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiting[id]; w != nil && w.asked.settled.wasElsewhere() {
		return s.unparkLocked(id)
	}
	return nil
}

// unpark returns the call that belongs to a state, once.
func (s *Calls) unpark(id string) *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unparkLocked(id)
}

func (s *Calls) unparkLocked(id string) *Call {
	w := s.waiting[id]
	if w != nil {
		w.expiry.Stop()
		delete(s.waiting, id)
	}
	return w
}

// EndAll ends all waiting calls and waits until they have ended. Another process may be able to
// continue them.
func (s *Calls) EndAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.waiting))
	for id, w := range s.waiting {
		s.unparkLocked(id)
		if w.asked.stage != nil && s.keys.Shared() {
			w.Cancel(caller.ErrContinued)
		} else {
			w.Cancel(ErrNoAnswer)
		}
	}
	s.mu.Unlock()
	for _, w := range all {
		<-w.done
	}
}

// WaitsHere reports whether a call waits in this process for the answer to a question.
func (s *Calls) WaitsHere(id string) bool {
	_, is := s.waitsFor(id)
	return is
}

// OnlyHere reports whether a call waits here that no other process can run again. id is its
// question; "" means any.
func (s *Calls) OnlyHere(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, w := range s.waiting {
		if w.asked.stage == nil && (id == "" || id == other) {
			return true
		}
	}
	return false
}

// waitsFor returns the questions of a call that waits in this process.
func (s *Calls) waitsFor(id string) (mcp.InputRequestMap, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id]
	if w == nil {
		return nil, false
	}
	return w.asked.Requests, true
}
