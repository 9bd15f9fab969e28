package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Requests of a server that need a person, or a program that the person pays
// for, are answered here and not by the SDK: it would lose the order of fields
// and the digits of numbers, and a schema that refers to itself would end the
// process.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
)

const (
	// maxQuestions is how many questions a server may put during one request of
	// ours.
	maxQuestions = 20
	// replyTime bounds writing an answer to a server that may not read it.
	replyTime = time.Second
)

// answerer answers a request of the server. x is the request of ours during
// which it came, nil if there is none.
type answerer func(ctx context.Context, x *exchange, method string, params json.RawMessage) (json.RawMessage, error)

func isQuestion(method string) bool { return method == methodElicit || method == methodSample }

// asking returns the request of ours during which the server may ask, the one
// that runs longest where there are several, nil where there is none. w.mu is
// held.
func (w *wire) asking() *exchange {
	var oldest *pending
	for _, p := range w.pending {
		if p.exchange != nil && p.exchange.what != "" && (oldest == nil || p.serial < oldest.serial) {
			oldest = p
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.exchange
}

// endQuestions ends the questions that nobody waits for any more. w.mu is held.
func (w *wire) endQuestions() {
	if len(w.questions) == 0 || w.asking() != nil {
		return
	}
	for _, cancel := range w.questions {
		cancel(errRequestOver)
	}
}

var (
	errRequestOver = errors.New("the request during which the server asked is over")
	errWithdrawn   = errors.New("the server withdrew its question")
)

// question answers a request of the server beside the reading. The protocol does
// not say which request of ours a question is about; the one that runs longest
// stands for it.
func (w *wire) question(ctx context.Context, r *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, twice := w.questions[r.ID]; twice || w.waited {
		w.serving--
		cancel(nil)
		return
	}
	w.questions[r.ID] = cancel
	x := w.asking()
	over := make(chan struct{})
	w.spawnLocked(func() {
		select {
		case <-w.done:
		case <-w.eof:
		case <-over:
		}
		cancel(errClosed)
	})
	w.spawnLocked(func() {
		defer close(over)
		result, err := w.opts.answer(ctx, x, r.Method, r.Params)
		withdrawn := errors.Is(context.Cause(ctx), errWithdrawn)
		w.mu.Lock()
		delete(w.questions, r.ID)
		w.serving--
		w.mu.Unlock()
		if !withdrawn { // a request that was withdrawn wants no answer
			w.reply(ctx, &jsonrpc.Response{ID: r.ID, Result: result, Error: err})
		}
	})
}

// turnAway refuses a request that there is no room for.
func (w *wire) turnAway(ctx context.Context, r *jsonrpc.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusing >= maxRefusals {
		return
	}
	w.refusing++
	w.spawnLocked(func() {
		w.reply(ctx, &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: codeBusy, Message: "too many requests at once"}})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refusing--
	})
}

// codeBusy is our code for a request that may be made again later.
const codeBusy = -32000

func (w *wire) reply(ctx context.Context, r *jsonrpc.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	if r.Error != nil {
		r.Result = nil
	}
	w.trace("to server", r)
	if err := w.inner.Write(ctx, r); err != nil {
		w.opts.log.Debug("an answer was not delivered", "error", err)
	}
}

// withdraw ends a question that the server cancels, and reports whether it is
// one of ours.
func (w *wire) withdraw(params json.RawMessage) bool {
	id := messageID(member(params, "requestId"))
	w.mu.Lock()
	defer w.mu.Unlock()
	cancel, ok := w.questions[id]
	if ok {
		cancel(errWithdrawn)
	}
	return ok
}

// completion returns a channel that is closed when the server says that what an
// address was opened for is done (notifications/elicitation/complete), and a
// function that forgets it.
func (w *wire) completion(id string) (<-chan struct{}, func()) {
	done := make(chan struct{})
	if id == "" {
		return done, func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visits[id] = done
	return done, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.visits[id] == done {
			delete(w.visits, id)
		}
	}
}

func (w *wire) completed(params json.RawMessage) {
	id, _ := text(member(params, "elicitationId"))
	w.mu.Lock()
	defer w.mu.Unlock()
	if done, ok := w.visits[id]; ok {
		close(done)
		delete(w.visits, id)
	}
}
