//lint:file-ignore SA1019 what a later revision deprecates, servers of today still do: logging

package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	// maxRounds is how often a server may answer one request by asking for input.
	maxRounds = 5
	// maxCancelled is how long a canceled request waits for
	// notifications/cancelled to be written: a process that ends at once would
	// never send it.
	maxCancelled = 250 * time.Millisecond
)

// request is one request, during which the server may ask.
type request struct {
	asked    *ask.Request
	exchange *transport.Exchange
	send     func(ctx context.Context, sess *session, token string) error
}

// newRequest returns a request on behalf of the caller of ctx; name describes it
// to the person, such as "tool echo". progress may be nil.
func newRequest(ctx context.Context, name string, progress func(registry.Progress), send func(ctx context.Context, sess *session, token string) error) *request {
	asked := ask.NewRequest(ctx, name)
	return &request{asked: asked, exchange: transport.NewExchange(asked, progress), send: send}
}

// do sends a request. If the server has forgotten the session and refused the
// request for that, do sends it once more over a new one. It returns the session
// used last.
func (s *Source) do(ctx context.Context, sess *session, r *request) (json.RawMessage, *session, error) {
	raw, err := s.doOn(ctx, sess, r)
	missing := errors.Is(err, mcp.ErrSessionMissing)
	if missing && r.exchange.MayHaveRun() || !missing && !errors.Is(err, errIdled) {
		return raw, sess, err
	}
	sess.endWith(mcp.ErrSessionMissing) // to its other requests it is that, too
	next, err := s.liveSession(ctx)
	if err != nil {
		return nil, sess, err
	}
	raw, err = s.doOn(ctx, next, r)
	return raw, next, err
}

// doOn sends a request over a session and answers what the server asks, until it
// answers. Legacy servers ask by sending requests, which the connection passes to
// package ask; modern ones answer that they need input and get the request again
// with it (revision 2026-07-28, input_required); both may refuse until the person
// has opened an address (error -32042). The error is the cause of ctx, an
// *ask.InputError or the SDK's.
func (s *Source) doOn(ctx context.Context, sess *session, r *request) (json.RawMessage, error) {
	sess.askForLogs(ctx, s.opts.LogLevel)
	ctx, done, err := sess.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	defer sess.conn.Forget(r.exchange)
	stop := context.AfterFunc(ctx, func() { sess.conn.Forget(r.exchange) })
	defer stop()
	round, err := answered(ctx, s.opts.Server.Name, r)
	if err != nil {
		return nil, err
	}
	for ; ; round++ {
		raw, err := r.exchange.Outcome(r.send(r.exchange.Context(ctx), sess, r.exchange.Token(sess.token())))
		addresses := needsAddresses(err)
		again := false
		switch {
		case err == nil && !ask.WantsInput(raw):
			return raw, nil
		case ctx.Err() != nil:
			r.exchange.WaitCancelled(maxCancelled)
			return nil, context.Cause(ctx)
		case round >= maxRounds && (err == nil || addresses != nil):
			return nil, &ask.InputError{Reason: fmt.Sprintf("it asked for input more than %d times", maxRounds)}
		case err == nil:
			var input json.RawMessage
			if input, err = s.inputs(ctx, r, raw, round); err == nil {
				r.exchange.AddInput(input)
				again = true
			}
		case addresses != nil:
			again = s.asker.Addresses(ctx, r.asked, addresses.Data, sess.conn.Completion)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !again {
			return nil, err
		}
	}
}

// answered adds to a request what an earlier run of the call had answered, and returns
// how often the server had asked then.
func answered(ctx context.Context, server string, r *request) (rounds int, err error) {
	c := caller.From(ctx)
	if c == nil || c.Answered == nil {
		return 0, nil
	}
	members, rounds, err := c.Answered(server)
	if len(members) > 0 {
		r.asked.MarkAsked()
		r.exchange.AddInput(members)
	}
	return rounds, err
}

// inputs answers what a modern server asks for. One that asks for nothing is busy, and
// gets the request again after a pause.
func (s *Source) inputs(ctx context.Context, r *request, raw json.RawMessage, round int) (json.RawMessage, error) {
	asks := false
	for range jsonx.Members(jsonx.Get(raw, "inputRequests")) {
		asks = true
		break
	}
	if !asks {
		pause(ctx, time.Duration(round+1)*busyPause)
	}
	if c := caller.From(ctx); c != nil && c.Input != nil {
		if asks {
			r.asked.MarkAsked()
		}
		return c.Input(ctx, s.opts.Server.Name, raw)
	}
	return s.asker.Inputs(ctx, r.asked, raw)
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

// needsAddresses returns the error that refuses a request until the person has
// opened addresses, nil if err is another.
func needsAddresses(err error) *jsonrpc.Error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code == mcp.CodeURLElicitationRequired {
		return refused
	}
	return nil
}

// setLogLevel tells a modern server, in each request, which log messages are
// wanted.
func (s *Source) setLogLevel(sess *session, meta mcp.Meta) {
	if sess.modern() && s.opts.LogLevel != "" {
		meta[mcp.MetaKeyLogLevel] = s.opts.LogLevel
	}
}
