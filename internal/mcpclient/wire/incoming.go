//lint:file-ignore SA1019 servers still use logging, which a later revision deprecates

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// receiveAll receives the messages in a valid JSON text; see [decodeAll]. The error is about
// malformed messages.
func (s *Session) receiveAll(ctx context.Context, data json.RawMessage) error {
	messages, malformed := decodeAll(data)
	for _, m := range messages {
		s.receive(ctx, m)
	}
	return malformed
}

// receiveResponse is receiveAll for the response to a request. An error without an id can only
// belong to that request.
func (s *Session) receiveResponse(ctx context.Context, r *Request, data json.RawMessage) error {
	failure := jsonx.Get(data, "error")
	if jsonx.KindOf(failure) == jsonx.Object && jsonx.IsNull(jsonx.Get(data, "id")) &&
		jsonx.IsNull(jsonx.Get(data, "method")) {
		if refused := refusalOf(failure); refused != nil {
			s.table.Fail(r.id, refused)
			return nil
		}
	}
	return s.receiveAll(ctx, data)
}

// receive receives one message from any stream. Messages are passed on in the order of
// their arrival, so that progress precedes its result.
func (s *Session) receive(ctx context.Context, m jsonrpc.Message) {
	s.trace("from server", m)
	s.receiving.Lock()
	defer s.receiving.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		s.answer(m)
	case *jsonrpc.Request:
		if m.IsCall() {
			s.question(ctx, m)
		} else {
			s.notification(m)
		}
	}
}

// answer passes an answer to its request.
func (s *Session) answer(m *jsonrpc.Response) {
	result, err := json.RawMessage(bytes.TrimSpace(m.Result)), m.Error
	switch {
	case err != nil:
		result = nil
	case len(result) == 0:
		err = &AnswerError{"the answer has neither a result nor an error"}
	}
	if !s.table.answer(m.ID, result, err) {
		s.opts.Logger.Debug("answer without a request dropped", "id", m.ID.Raw())
	}
}

// receiveMalformed fails a request if a malformed message was clearly meant to answer
// it, so that the request does not have to time out. It returns false if an unknown one of
// several requests may wait for the message.
func (s *Session) receiveMalformed(err error) bool {
	s.opts.Logger.Warn("malformed message from the server", "error", err.Error())
	bad, ok := errors.AsType[*badMessageError](err)
	return ok && s.table.answerMalformed(bad)
}

// maxNotification limits the length of progress and log messages that are
// passed on, in bytes.
const maxNotification = 4 << 10

// notification passes progress to the calls that it belongs to, in the order in
// which the server sent it and thus before the result, and log messages and changes
// to their receivers. It drops all other notifications.
func (s *Session) notification(r *jsonrpc.Request) {
	switch r.Method {
	case "notifications/progress":
		s.progress(r.Params)
		return
	case "notifications/cancelled":
		s.table.withdraw(messageID(jsonx.Get(r.Params, "requestId")))
		return
	}
	if s.opts.Notified != nil && s.opts.Notified(s.table.during(), r.Method, r.Params) {
		return
	}
	switch r.Method {
	case "notifications/message":
		s.logMessage(r.Params)
	case "notifications/elicitation/complete":
		id, _ := jsonx.Text(jsonx.Get(r.Params, "elicitationId"))
		if done, waits := s.completions.LoadAndDelete(id); waits {
			close(done.(chan struct{}))
		}
	case "notifications/tools/list_changed":
		s.changed(Change{List: "tools"})
	case "notifications/prompts/list_changed":
		s.changed(Change{List: "prompts"})
	case "notifications/resources/list_changed":
		s.changed(Change{List: "resources"})
	case "notifications/resources/updated":
		uri, _ := jsonx.Text(jsonx.Get(r.Params, "uri"))
		s.changed(Change{URI: uri})
	default:
		s.opts.Logger.Debug("notification dropped", "method", text.Head(r.Method, 100))
	}
}

func (s *Session) changed(change Change) {
	if s.opts.Changed != nil {
		s.opts.Changed(change)
	}
}

func (s *Session) progress(params json.RawMessage) {
	var p struct {
		Token    any     `json:"progressToken"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	token, _ := p.Token.(string)
	if report := s.table.progress(token); report != nil {
		report(registry.Progress{Done: p.Progress, Total: p.Total, Message: text.Head(p.Message, maxNotification)})
	}
}

// logMessage passes a log message on. The protocol does not say which request it
// belongs to, so it is attributed to the longest-running one.
func (s *Session) logMessage(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if s.opts.LogMessage == nil || json.Unmarshal(params, &p) != nil {
		return
	}
	data, ok := jsonx.Text(p.Data)
	if !ok {
		data = string(p.Data)
	}
	s.opts.LogMessage(s.table.during(), text.Head(p.Level, 20),
		text.Head(p.Logger, 100), text.Valid(text.Head(data, maxNotification)))
}

const (
	// replyTime limits the time for writing an answer to a server that may not be
	// reading.
	replyTime = 5 * time.Second
	// codeBusy is our error code for a request that the server may repeat
	// later.
	codeBusy = -32000
)

// question answers a request from the server while reading goes on. The protocol does not say
// which of our requests it is about, so it is attributed to the longest-running one. ctx may
// belong to any request, so its values about the calling client are not passed on.
func (s *Session) question(ctx context.Context, r *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(caller.With(context.WithoutCancel(ctx), nil))
	during, err := s.table.ask(r.ID, cancel)
	if err != nil {
		if err == errBusy {
			s.refuse(ctx, r)
		}
		cancel(nil)
		return
	}
	s.spawn(func() {
		defer cancel(nil)
		result, err := s.respond(ctx, during, r)
		withdrawn := errors.Is(context.Cause(ctx), ErrWithdrawn)
		s.table.asked(r.ID)
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
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
		Message: "not a request that clients answer: " + text.Quote(r.Method)}
}

// refuse refuses a request that exceeds the limit.
func (s *Session) refuse(ctx context.Context, r *jsonrpc.Request) {
	select {
	case s.table.refusing <- struct{}{}:
	default: // too many wait to be written
		return
	}
	s.spawn(func() {
		defer func() { <-s.table.refusing }()
		s.reply(ctx, &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: codeBusy, Message: errBusy.Error()}})
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

// Completion is an [ask.Completion]: the server reports with
// notifications/elicitation/complete that the user has finished at a URL.
func (s *Session) Completion(elicitationID string) (<-chan struct{}, func()) {
	done := make(chan struct{})
	if elicitationID == "" {
		return done, func() {}
	}
	s.completions.Store(elicitationID, done)
	return done, func() { s.completions.CompareAndDelete(elicitationID, done) }
}
