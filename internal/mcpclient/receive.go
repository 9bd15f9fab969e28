package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxServerRequests is how many requests of a server may wait for our answer.
	// More are refused, so that nobody waits for them.
	maxServerRequests = 16
	// maxRefusals is how many refusals may wait to be written; requests beyond
	// are dropped.
	maxRefusals = 256
)

// pump reads until the connection ends, after Close too: a server that blocks
// on its stdout would not get to see that its stdin was closed.
func (w *wire) pump(ctx context.Context) {
	for {
		m, err := w.inner.Read(ctx)
		var bad *badMessageError
		if errors.As(err, &bad) {
			m, err = w.salvage(bad), nil
		}
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			close(w.eof)
			return
		}
		w.hear(ctx, m)
	}
}

// hear takes one message in, from whichever stream it came.
func (w *wire) hear(ctx context.Context, m jsonrpc.Message) {
	w.trace("from server", m)
	w.hearing.Lock()
	m = w.incoming(ctx, m)
	w.hearing.Unlock()
	if m != nil {
		w.deliver(m)
	}
}

func (w *wire) deliver(m jsonrpc.Message) {
	select {
	case w.in <- m:
	case <-w.done:
	case <-w.eof:
	}
}

// inject hands the SDK an answer of our own, from within its Write.
func (w *wire) inject(r *jsonrpc.Response) {
	w.spawn(func() { w.deliver(r) })
}

// incoming returns what the SDK is to see of a message, nil for nothing.
func (w *wire) incoming(ctx context.Context, m jsonrpc.Message) jsonrpc.Message {
	switch m := m.(type) {
	case *jsonrpc.Response:
		if w.response(m) {
			return m
		}
	case *jsonrpc.Request:
		switch {
		case m.IsCall() && !w.serve():
			w.turnAway(ctx, m)
		case m.IsCall() && isQuestion(m.Method):
			w.question(ctx, m)
		case m.IsCall():
			return m
		case m.Method == "notifications/cancelled" && !w.withdraw(m.Params):
			return m
		default:
			w.notification(m)
		}
	}
	return nil
}

// serve counts a request of the server in and reports whether it may be
// answered.
func (w *wire) serve() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serving >= maxServerRequests {
		return false
	}
	w.serving++
	return true
}

func (w *wire) response(r *jsonrpc.Response) bool {
	w.mu.Lock()
	p := w.pending[r.ID]
	delete(w.pending, r.ID)
	w.endQuestions()
	if p == nil && w.strange == "" && !w.madeLocked(r.ID) {
		w.strange = fmt.Sprint(r.ID.Raw())
	}
	if r.ID.Raw() == logsID {
		w.logging.Do(func() { close(w.logs) })
	}
	w.mu.Unlock()
	if p == nil {
		w.opts.log.Debug("answer to no request dropped", "id", r.ID.Raw())
		return false
	}
	w.check(r)
	if p.method == "initialize" || p.method == "server/discover" {
		w.shake(r.ID, r)
		return false
	}
	if p.exchange != nil {
		p.exchange.capture(p.method, r)
	}
	return true
}

// madeLocked reports whether a request of that id was made at some time; nobody
// may wait for it any more.
func (w *wire) madeLocked(id jsonrpc.ID) bool {
	switch id := id.Raw().(type) {
	case int64:
		return id > 0 && id <= w.issued
	case string:
		return id == logsID || id == initializeID
	}
	return false
}

// check turns an answer that is none into an error.
func (w *wire) check(r *jsonrpc.Response) {
	if r.Error != nil {
		r.Result = nil
		return
	}
	r.Result = bytes.TrimSpace(r.Result)
	if !w.opts.validated && !json.Valid(r.Result) {
		r.Result = nil
	}
	if len(r.Result) == 0 {
		r.Error = malformed("the answer holds neither a result nor an error")
	}
}

// salvage makes an answer of a malformed message, where it can be told what it
// should have answered, so that nobody waits for it in vain.
func (w *wire) salvage(bad *badMessageError) jsonrpc.Message {
	w.opts.log.Warn("malformed message of the server", "error", bad.Error())
	w.mu.Lock()
	defer w.mu.Unlock()
	id := bad.id
	if !id.IsValid() && bad.answer && len(w.pending) == 1 {
		for only := range w.pending {
			id = only
		}
	}
	if !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: malformed(bad.Error())}
}

func malformed(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: what}
}

// badMessageError tells of JSON that is no JSON-RPC message; the connection
// lives on.
type badMessageError struct {
	id     jsonrpc.ID // of what it may answer; invalid if unknown
	answer bool       // it looks like an answer to whatever we asked
	reason string
}

func (e *badMessageError) Error() string { return fmt.Sprintf("malformed message: %s", e.reason) }
