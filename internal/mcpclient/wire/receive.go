package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// receiveAll receives the messages in a valid JSON text: one message or, up to
// revision 2025-03-26, a list of messages. It returns an error for anything that is
// not a message.
func (s *Session) receiveAll(ctx context.Context, data json.RawMessage) error {
	if jsonx.KindOf(data) != jsonx.Array {
		m, err := decodeMessage(data)
		if err == nil {
			s.receive(ctx, m)
		}
		return err
	}
	var malformed error
	parts, _ := jsonx.Elements(data)
	for _, part := range parts {
		if m, err := decodeMessage(part); err != nil {
			malformed = err
		} else {
			s.receive(ctx, m)
		}
	}
	return malformed
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
	s.mu.Lock()
	defer s.mu.Unlock()
	n, numbered := idOf(m.ID)
	r := s.pending[n]
	if r == nil {
		if s.unexpected == "" && (!numbered || n <= 0 || n > s.serial) {
			s.unexpected = fmt.Sprint(m.ID.Raw())
		}
		s.opts.Logger.Debug("answer without a request dropped", "id", m.ID.Raw())
		return
	}
	delete(s.pending, n)
	s.endQuestionsOfNoRequest()
	result := bytes.TrimSpace(m.Result)
	switch {
	case m.Error != nil:
		r.answer(nil, m.Error)
	case len(result) == 0:
		r.answer(nil, malformed("the answer has neither a result nor an error"))
	default:
		r.answer(result, nil)
	}
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

// receiveMalformed fails a request if a malformed message was clearly meant to answer
// it, so that the request does not have to time out. It returns false if an unknown one
// of several requests may wait for the message.
func (s *Session) receiveMalformed(err error) bool {
	s.opts.Logger.Warn("malformed message from the server", "error", err.Error())
	var bad *badMessageError
	if !errors.As(err, &bad) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := idOf(bad.id)
	r := s.pending[n]
	if !bad.id.IsValid() && bad.answer {
		r = s.only()
	}
	if r == nil { // the request may have been canceled
		return bad.id.IsValid() || len(s.pending) == 0
	}
	failure := malformed(bad.Error())
	if bad.long != nil {
		failure = bad.long
	}
	s.fail(r, failure)
	return true
}

// fail answers a pending request with an error. s.mu is held.
func (s *Session) fail(r *Request, err error) {
	delete(s.pending, r.id)
	s.endQuestionsOfNoRequest()
	r.answer(nil, err)
}

// Fail makes the request with this id fail, because whatever is between us and the server has
// dropped its answer.
func (s *Session) Fail(id int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.pending[id]; r != nil {
		s.fail(r, err)
	}
}

// only returns the only unanswered request, or nil if there is not exactly one. s.mu
// is held.
func (s *Session) only() (only *Request) {
	for _, r := range s.pending {
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

func malformed(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: what}
}
