package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxRounds is how often a server may ask for input before it answers one
// request.
const maxRounds = 5

// requester sends requests for users and clients, and answers the server's questions
// meanwhile.
type requester struct {
	opts  *Options
	asker *ask.Handler
	pool  *pool
}

// request is one request of a user or a client, during which the server may ask. It is sent
// again with the answers.
type request struct {
	method   string
	name     string // of the tool or prompt, or the URI of the resource, "" for none
	params   any    // encoded as a JSON object
	headers  http.Header
	progress func(registry.Progress) // may be nil

	detach   func(registry.RemoteTask) error // see [registry.Call]
	detached bool                            // it was called

	asked *ask.Request
	input json.RawMessage // members to add to the params: the input that the server asked for
}

// fetch sends one request for the user, and answers the server's questions
// meanwhile.
func (q *requester) fetch(ctx context.Context, r *request, what string) (json.RawMessage, error) {
	sess, err := q.pool.live(ctx)
	if err != nil {
		return nil, err
	}
	if !sess.offers(what) {
		return nil, &NotOfferedError{Server: q.opts.Server.Name, What: what}
	}
	raw, sess, err := q.do(ctx, sess, r)
	if err := q.answerError(ctx, sess, r.method, raw, err); err != nil {
		return nil, err
	}
	return raw, nil
}

// answerError returns the error for a failed request other than a call.
func (q *requester) answerError(ctx context.Context, sess *session, method string, raw json.RawMessage, err error) error {
	switch {
	case err == nil && jsonx.KindOf(raw) != jsonx.Object:
		return q.opts.malformed(method, "the server's answer is not a result object")
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("server %q: %s: %w", q.opts.Server.Name, method, context.Cause(ctx))
	}
	if unmet, ok := errors.AsType[*ask.InputError](err); ok {
		return &RefusedError{Server: q.opts.Server.Name, Request: method, Message: unmet.Reason}
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &RefusedError{Server: q.opts.Server.Name, Request: method, Code: refused.Code, Message: text.Valid(text.Head(sess.hide(refused.Message), maxMessage))}
	}
	return q.opts.errorf(method, err, sess.failure(err))
}

// do sends a request. If the session ended before, or the server has forgotten it and
// refuses the request for that reason, do sends the request over a new session, once. It
// returns the session used last.
func (q *requester) do(ctx context.Context, sess *session, r *request) (json.RawMessage, *session, error) {
	raw, err := q.doOn(ctx, sess, r)
	lost, missing := errors.AsType[*wire.SessionLostError](err)
	if missing && lost.MayHaveRun || !missing && !errors.Is(err, errEnded) {
		return raw, sess, err
	}
	if missing {
		sess.forgotten()
	} else if !sess.isLeaving() {
		sess.end()
	}
	next, err := q.pool.live(ctx)
	if err != nil {
		return nil, sess, err
	}
	raw, err = q.doOn(ctx, next, r)
	return raw, next, err
}

// doOn sends a request over a session and answers the server's questions until
// the response arrives. Legacy servers ask by sending requests, which the session
// passes to package ask. Modern ones respond that they need input and get the
// request again with that input (revision 2026-07-28, input_required). Both may
// refuse until the user has opened a URL (error -32042). The error is the cause
// of ctx, an *ask.InputError or one of [wire.Session.Do].
func (q *requester) doOn(ctx context.Context, sess *session, r *request) (json.RawMessage, error) {
	ctx, done, err := sess.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	params, err := jsonx.Marshal(r.params)
	if err != nil {
		return nil, fmt.Errorf("encoding the params: %w", err)
	}
	round, err := answered(q.opts.Server.Name, r)
	if err != nil {
		return nil, err
	}
	for ; ; round++ {
		raw, err := sess.wire.Do(ctx, &wire.Request{Method: r.method, Params: with(params, r.input), Name: r.name, Headers: r.headers, Asked: r.asked, Progress: r.progress})
		addresses := needsAddresses(err)
		again := false
		switch {
		case err == nil && !ask.WantsInput(raw) && r.method == "tools/call":
			return q.finished(ctx, sess, r, raw)
		case err == nil && !ask.WantsInput(raw):
			return raw, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case round >= maxRounds && (err == nil || addresses != nil):
			return nil, &ask.InputError{Reason: fmt.Sprintf("it asked for input more than %d times", maxRounds)}
		case err == nil:
			r.input, err = q.inputs(ctx, r, raw, round)
			again = err == nil
		case addresses != nil:
			again = q.asker.Addresses(ctx, r.asked, addresses.Data, sess.wire.Completion)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !again {
			return nil, err
		}
	}
}

// with adds members to an object.
func with(object, members json.RawMessage) json.RawMessage {
	if len(members) == 0 || string(object) == "{}" {
		return object
	}
	return slices.Concat(bytes.TrimSuffix(object, []byte("}")), []byte(","), members, []byte("}"))
}

// answered adds the answers of an earlier run of the call to a request, and returns
// how often the server had asked by then.
func answered(server string, r *request) (rounds int, err error) {
	members, rounds, err := r.asked.Peer().Answered(server)
	if len(members) > 0 {
		r.asked.MarkAsked()
		r.input = members
	}
	return rounds, err
}

// inputs provides the input that a modern server asks for. A server that asks for none
// is busy, and gets the request again after a pause.
func (q *requester) inputs(ctx context.Context, r *request, raw json.RawMessage, round int) (json.RawMessage, error) {
	asks := false
	for range jsonx.Members(jsonx.Get(raw, "inputRequests")) {
		asks = true
		break
	}
	if !asks {
		pause(ctx, time.Duration(round+1)*busyPause)
	}
	if peer := r.asked.Peer(); peer.TakesInput() {
		if asks {
			r.asked.MarkAsked()
		}
		return peer.Input(ctx, q.opts.Server.Name, raw)
	}
	return q.asker.Inputs(ctx, r.asked, raw)
}

// busyPause is how long to wait for a busy server, multiplied by the round.
const busyPause = 100 * time.Millisecond

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// needsAddresses returns err as the error that refuses a request until the user
// has opened URLs, or nil if it is another error.
func needsAddresses(err error) *jsonrpc.Error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code == mcp.CodeURLElicitationRequired {
		return refused
	}
	return nil
}
