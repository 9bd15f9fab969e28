package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxRounds is how often a server may answer one request with a wish for
	// input.
	maxRounds = 5
	// breather is how long a server that is busy and asks for nothing but
	// patience is left alone, times the round.
	breather = 100 * time.Millisecond
)

// inputError tells that a server asked for what it does not get. The server
// lives; the request has failed.
type inputError struct{ reason string }

func (e *inputError) Error() string { return e.reason }

// converse sends a request and answers what the server asks, until it answers.
// Legacy servers ask by requests of their own (question.go); modern ones answer
// that they need input and get the request again with it (revision 2026-07-28,
// input_required); both may refuse until the person has visited an address
// (error -32042). The error is the cause of ctx, an *inputError or the SDK's.
func (s *Source) converse(ctx context.Context, sess *session, x *exchange, send func(context.Context) error) (json.RawMessage, error) {
	ctx, done := sess.begin(ctx)
	defer done()
	defer sess.wire.forget(x)
	stop := context.AfterFunc(ctx, func() { sess.wire.forget(x) })
	defer stop()
	for round := 0; ; round++ {
		err := send(withExchange(ctx, x))
		raw := x.result()
		again := false
		switch {
		case err == nil && !wantsInput(raw):
			return raw, nil
		case ctx.Err() != nil:
			await(x.withdrew, withdrawal)
			return nil, context.Cause(ctx)
		case round >= maxRounds && (err == nil || isVisitFirst(err)):
			return nil, &inputError{fmt.Sprintf("it asked for input more than %d times", maxRounds)}
		case err == nil:
			err = s.supply(ctx, x, raw, round)
			again = err == nil
		default:
			again = s.answerURLs(ctx, sess, x, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !again {
			return nil, err
		}
	}
}

func wantsInput(raw json.RawMessage) bool {
	kind, ok := text(member(raw, "resultType"))
	return ok && kind == "input_required"
}

func isVisitFirst(err error) bool {
	var refused *jsonrpc.Error
	return errors.As(err, &refused) && refused.Code == mcp.CodeURLElicitationRequired
}

// supply answers, in their order, what a result of type input_required asks for,
// and has the request sent again with the answers.
func (s *Source) supply(ctx context.Context, x *exchange, raw json.RawMessage, round int) error {
	wishes := member(raw, "inputRequests")
	if !isNull(wishes) && !isObject(wishes) {
		return &inputError{"it asks for input in a form that is none"}
	}
	var out bytes.Buffer
	out.WriteString(`"inputResponses":{`)
	n := 0
	for key, wish := range members(wishes) {
		if n++; n > maxQuestions {
			return &inputError{fmt.Sprintf("it asks for more than %d things at once", maxQuestions)}
		}
		response, err := s.grant(ctx, x, wish)
		if err != nil {
			return &inputError{fmt.Sprintf("it asks for what it does not get: %v", err)}
		}
		if n > 1 {
			out.WriteByte(',')
		}
		out.WriteString(jsString(key) + ":")
		out.Write(response)
	}
	out.WriteByte('}')
	if n == 0 {
		await(ctx.Done(), time.Duration(round+1)*breather)
	}
	if state := member(raw, "requestState"); !isNull(state) {
		out.WriteString(`,"requestState":`)
		out.Write(state)
	}
	x.resume(out.Bytes())
	return nil
}

// grant answers one wish for input, which has the form of a request.
func (s *Source) grant(ctx context.Context, x *exchange, wish json.RawMessage) (json.RawMessage, error) {
	method, _ := text(member(wish, "method"))
	switch {
	case isQuestion(method):
		return s.answer(ctx, x, method, member(wish, "params"))
	case method == "roots/list":
		return s.rootsResult(), nil
	}
	return nil, fmt.Errorf("no request that clients answer: %s", quote(method))
}

// answer implements answerer.
func (s *Source) answer(ctx context.Context, x *exchange, method string, params json.RawMessage) (json.RawMessage, error) {
	if method == methodSample {
		return s.sample(ctx, x, params)
	}
	return s.elicit(ctx, x, params), nil
}
