package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

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
	result, err := json.RawMessage(bytes.TrimSpace(m.Result)), m.Error
	switch {
	case err != nil:
		result = nil
	case len(result) == 0:
		err = malformed("the answer has neither a result nor an error")
	}
	if !s.table.answer(m.ID, result, err) {
		s.opts.Logger.Debug("answer without a request dropped", "id", m.ID.Raw())
	}
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
	return s.table.answerMalformed(bad)
}
