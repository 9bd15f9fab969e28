package wire

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// MaxServerRequests limits how many requests from a server may await our answer.
	// Further requests are refused at once.
	MaxServerRequests = 16
	// maxRefusals limits how many refusals may wait to be written; further requests
	// are dropped.
	maxRefusals = 256
	// replyTime limits the time for writing an answer to a server that may not be
	// reading.
	replyTime = 5 * time.Second
	// codeBusy is our error code for a request that the server may repeat
	// later.
	codeBusy = -32000
)

// questions holds the server's requests.
type questions struct {
	waiting     int // still unanswered
	refusing    int // excess requests whose refusal is being written
	running     map[jsonrpc.ID]context.CancelCauseFunc
	completions map[string]chan struct{} // by the id of the elicitation
}

// The causes with which the context of a question is canceled.
var (
	ErrRequestOver = errors.New("the request during which the server asked is over")
	ErrWithdrawn   = errors.New("the server withdrew its question")
)

// question answers a request from the server while reading goes on. The protocol does not say
// which of our requests it is about, so it is attributed to the longest-running one. ctx may
// belong to any request, so its values about the calling client are not passed on.
func (s *Session) question(ctx context.Context, r *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(caller.With(context.WithoutCancel(ctx), nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.questions
	_, twice := q.running[r.ID]
	full := q.waiting >= MaxServerRequests
	if full && !s.closed {
		s.refuse(ctx, r)
	}
	if full || twice || s.closed {
		cancel(nil)
		return
	}
	q.waiting++
	q.running[r.ID] = cancel
	during := s.during()
	s.running.Go(func() {
		defer cancel(nil)
		result, err := s.respond(ctx, during, r)
		withdrawn := errors.Is(context.Cause(ctx), ErrWithdrawn)
		s.mu.Lock()
		delete(q.running, r.ID)
		q.waiting--
		s.mu.Unlock()
		if !withdrawn { // a withdrawn request gets no answer
			s.reply(ctx, &jsonrpc.Response{ID: r.ID, Result: result, Error: err})
		}
	})
}

// respond returns the answer to a request from the server.
func (s *Session) respond(ctx context.Context, during *ask.Request, r *jsonrpc.Request) (json.RawMessage, error) {
	switch {
	case r.Method == "ping":
		return json.RawMessage("{}"), nil
	case ask.IsQuestion(r.Method):
		return s.opts.Answer(ctx, during, r.Method, r.Params)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not a request that clients answer: " + text.Quote(r.Method)}
}

// during returns our request to which a question from the server is attributed: the
// longest-running one, or nil if none is running. If requests of several clients are
// running, it returns one that allows no questions. s.mu is held.
func (s *Session) during() *ask.Request {
	var oldest *Request
	var all []*ask.Request
	several := false
	for _, r := range s.pending {
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

// endQuestionsOfNoRequest cancels the open questions if none of our requests is running
// any more. s.mu is held.
func (s *Session) endQuestionsOfNoRequest() {
	if len(s.questions.running) > 0 && s.during() == nil {
		s.endQuestions(ErrRequestOver)
	}
}

// endQuestions cancels the open questions. s.mu is held.
func (s *Session) endQuestions(cause error) {
	for _, cancel := range s.questions.running {
		cancel(cause)
	}
}

// refuse refuses a request beyond the limit. s.mu is held.
func (s *Session) refuse(ctx context.Context, r *jsonrpc.Request) {
	if s.questions.refusing >= maxRefusals {
		return
	}
	s.questions.refusing++
	s.running.Go(func() {
		s.reply(ctx, &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: codeBusy, Message: "too many requests at once"}})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.questions.refusing--
	})
}

func (s *Session) reply(ctx context.Context, r *jsonrpc.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	if r.Error != nil {
		r.Result = nil
	}
	if err := s.send(ctx, message{Message: r, revision: s.Revision()}); err != nil {
		s.opts.Logger.Debug("an answer was not delivered", "error", err)
	}
}

// MarkUnclear records that a question was declined, by whatever is between us and the
// server, because it may have been about the request with this id.
func (s *Session) MarkUnclear(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.pending[id]; r != nil && r.Asked != nil {
		r.Asked.MarkUnclear()
	}
}

// withdraw ends a question that the server has canceled.
func (s *Session) withdraw(params json.RawMessage) {
	id := messageID(jsonx.Get(params, "requestId"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.questions.running[id]; ok {
		cancel(ErrWithdrawn)
	}
}

// Completion is an [ask.Completion]: the server reports with
// notifications/elicitation/complete that the user has finished at a URL.
func (s *Session) Completion(elicitationID string) (<-chan struct{}, func()) {
	done := make(chan struct{})
	if elicitationID == "" {
		return done, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions.completions[elicitationID] = done
	return done, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.questions.completions[elicitationID] == done {
			delete(s.questions.completions, elicitationID)
		}
	}
}

func (s *Session) completed(params json.RawMessage) {
	id, _ := jsonx.Text(jsonx.Get(params, "elicitationId"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, ok := s.questions.completions[id]; ok {
		close(done)
		delete(s.questions.completions, id)
	}
}
