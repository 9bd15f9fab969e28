package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	// MaxServerRequests limits how many requests from a server may await our answer.
	// Further requests are refused at once.
	MaxServerRequests = 16
	// maxRefusals limits how many refusals may wait to be written; further requests
	// are dropped.
	maxRefusals = 256
)

// ErrClosed is the error of requests after Close.
var ErrClosed = errors.New("the connection was closed")

// The causes with which the context of a question is canceled.
var (
	ErrRequestOver = errors.New("the request during which the server asked is over")
	ErrWithdrawn   = errors.New("the server withdrew its question")
)

// table holds the unanswered requests of a session: ours, and the server's questions. It knows
// whether the session has ended, so that no request begins afterwards. It is safe for concurrent
// use.
type table struct {
	mu         sync.Mutex
	err        error                                  // why the session ended
	closed     bool                                   // set by close
	serial     int64                                  // the id of our last request
	pending    map[int64]*Request                     // ours, by id
	questions  map[jsonrpc.ID]context.CancelCauseFunc // the server's
	refusing   chan struct{}                          // has an element for each refusal that is being written
	unexpected string                                 // id of an answer that matches no request, "" if there was none
}

// begin adds a request of ours. The error is the reason for which the session has ended.
func (t *table) begin(r *Request, cancel context.CancelCauseFunc) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.err != nil:
		return t.err
	}
	t.serial++
	r.id, r.cancel, r.answered, r.result, r.err = t.serial, cancel, make(chan struct{}), nil, nil
	t.pending[r.id] = r
	return nil
}

// forget drops a request whose caller no longer waits.
func (t *table) forget(r *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[r.id] == r {
		t.remove(r)
	}
}

// remove removes a request, and cancels all questions if no other request of ours is running. t.mu
// is held.
func (t *table) remove(r *Request) {
	delete(t.pending, r.id)
	if len(t.questions) > 0 && t.oldest() == nil {
		t.endQuestions(ErrRequestOver)
	}
}

// answer answers the request with an id. It returns false if there is none.
func (t *table) answer(id jsonrpc.ID, result json.RawMessage, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, numbered := idOf(id)
	r := t.pending[n]
	if r == nil {
		if t.unexpected == "" && (!numbered || n <= 0 || n > t.serial) {
			t.unexpected = fmt.Sprint(id.Raw())
		}
		return false
	}
	t.remove(r)
	r.answer(result, err)
	return true
}

// answerMalformed fails the request that a malformed message was clearly meant to answer. It
// returns false if an unknown one of several requests may wait for the message.
func (t *table) answerMalformed(bad *badMessageError) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := idOf(bad.id)
	r := t.pending[n]
	if !bad.id.IsValid() && bad.answer {
		r = t.onlyRequest()
	}
	if r == nil { // the request may have been canceled
		return bad.id.IsValid() || len(t.pending) == 0
	}
	t.remove(r)
	if bad.cause == nil {
		bad.cause = &AnswerError{bad.Error()}
	}
	r.answer(nil, bad.cause)
	return true
}

// Fail fails the request with this id, because something between us and the server has dropped its
// answer.
func (t *table) Fail(id int64, err error) {
	made, _ := jsonrpc.MakeID(float64(id))
	t.answer(made, nil, err)
}

// idOf returns the id of one of our requests as a number: some servers return it as a
// string.
func idOf(id jsonrpc.ID) (int64, bool) {
	switch id := id.Raw().(type) {
	case int64:
		return id, true
	case string:
		n, err := strconv.ParseUint(id, 10, 53)
		return int64(n), err == nil
	}
	return 0, false
}

// onlyRequest returns the only unanswered request, or nil if there is not exactly one. t.mu is held.
func (t *table) onlyRequest() (only *Request) {
	for _, r := range t.pending {
		switch {
		case r.Method == methodListen:
		case only != nil:
			return nil
		default:
			only = r
		}
	}
	return only
}

// MarkUnclear records that something between us and the server declined a question that may have
// been about the request with this id.
func (t *table) MarkUnclear(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.pending[id]; r != nil && r.Asked != nil {
		r.Asked.MarkUnclear()
	}
}

// progress returns what receives the progress with a token, or nil.
func (t *table) progress(token string) func(registry.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.pending {
		if r.Progress != nil && r.token() == token {
			return r.Progress
		}
	}
	return nil
}

// during returns our request to which a message from the server is attributed: the
// longest-running one, or nil if none is running. If requests of several clients are
// running, it returns one that allows no questions.
func (t *table) during() *ask.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oldest()
}

// oldest is [table.during] for a caller that holds t.mu.
func (t *table) oldest() *ask.Request {
	var oldest *Request
	var all []*ask.Request
	several := false
	for _, r := range t.pending {
		if r.Asked == nil {
			continue
		}
		all = append(all, r.Asked)
		several = several || oldest != nil && !r.Asked.SameCaller(oldest.Asked)
		if oldest == nil || r.id < oldest.id {
			oldest = r
		}
	}
	switch {
	case oldest == nil:
		return nil
	case several:
		return ask.Several(all)
	}
	return oldest.Asked
}

// Why a question is not added to the table.
var (
	errBusy  = errors.New("too many requests at once")
	errTwice = errors.New("a question with this id is open")
)

// ask adds a question of the server, and returns our request to which it is attributed.
// cancel ends the question. The error is ErrClosed, errBusy or errTwice.
func (t *table) ask(id jsonrpc.ID, cancel context.CancelCauseFunc) (during *ask.Request, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, twice := t.questions[id]
	switch {
	case t.closed:
		return nil, ErrClosed
	case len(t.questions) >= MaxServerRequests:
		return nil, errBusy
	case twice:
		return nil, errTwice
	}
	t.questions[id] = cancel
	return t.oldest(), nil
}

// asked removes a question.
func (t *table) asked(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.questions, id)
}

// withdraw ends the question with an id, if there is one.
func (t *table) withdraw(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cancel, ok := t.questions[id]; ok {
		cancel(ErrWithdrawn)
	}
}

// endQuestions ends all questions. t.mu is held.
func (t *table) endQuestions(cause error) {
	for _, cancel := range t.questions {
		cancel(cause)
	}
}

// close ends the session: requests fail with cause, and no more begin.
func (t *table) close(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, r := range t.pending {
		r.cancel(cause)
	}
	t.endQuestions(ErrClosed)
}

// end notes why the connection has ended.
func (t *table) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	t.endQuestions(ErrClosed)
}

// Retire makes new requests fail with cause. Pending ones continue.
func (t *table) Retire(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = cause
	}
}

// ended returns whether close was called, and why the session ended; nil if it has not.
func (t *table) ended() (closed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed, t.err
}

// UnexpectedAnswer returns the id of an answer that did not match any request.
func (t *table) UnexpectedAnswer() (id string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unexpected, t.unexpected != ""
}
