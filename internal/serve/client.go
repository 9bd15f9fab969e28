//lint:file-ignore SA1019 clients still use roots and sampling, which a later revision deprecates

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/text"
)

// client is the sender of a request.
type client struct {
	from    auth.Identity
	session *mcp.ServerSession
	can     mcp.ClientCapabilities
	asking  Asking
	// revision is that of its request, which decides if it is modern: it receives questions in
	// results, not as requests.
	revision string
	modern   bool
	request  context.Context // context of its request; notifications sent with it belong to the request
	call     *waitingCall
	console  bool // people at the console are asked too
	// progress is the progress token of its request; nil if it did not ask for progress.
	progress any
	out      outbox
	asked    *transport.Calls // counts the questions to people; nil: nothing does
	closed   <-chan struct{}  // of the client on stdin, closed when no answer of it is read any more; nil: it is another
	// peer is the answer to its request that arrived at another replica, which passes on what it
	// is asked; nil: the request is here.
	peer *taskEvents
}

func clientFrom(ctx context.Context) *client {
	if who := caller.From(ctx); who != nil {
		c, _ := who.Peer.(*client)
		return c
	}
	return nil
}

// sender describes the sender of a request.
type sender interface {
	ProtocolVersion() string
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// withClient returns a context for a client's request.
func (s *Server) withClient(ctx context.Context, from auth.Identity, session *mcp.ServerSession, req sender) context.Context {
	c := &client{from: from, session: session, asking: s.opts.Asking, revision: req.ProtocolVersion(), request: ctx, asked: &s.asked}
	if from.Name == caller.Stdio {
		c.closed = s.stopping
	}
	c.modern = c.revision >= wire.FirstModern
	info, caps := c.declared(req)
	if caps != nil {
		c.can = *caps
	}
	if c.asking == AskNobody {
		c.can.Elicitation = nil
	}
	who := &caller.Caller{ID: session, Name: from.Name, Groups: from.Groups, Profile: from.Profile, Owner: c.owner(), Peer: c} // each modern request has its own session
	if from.Name != caller.Stdio && from.Name != caller.Local {
		who.Token = from.Name
	}
	if from.Scoped() {
		who.Scopes = append([]string{}, from.Scopes...)
	}
	c.console = s.opts.Console
	if info != nil {
		who.Client, who.Version = info.Name, info.Version
	}
	return caller.With(ctx, who)
}

// declared returns what the sender of a request declared. Over HTTP the session has it,
// even if it was created only for this request, which avoids the 64 KiB that the SDK
// needs to read it from the request. On stdin each request of a modern client may differ.
func (c *client) declared(req sender) (*mcp.Implementation, *mcp.ClientCapabilities) {
	if p := c.session.InitializeParams(); p != nil && c.from.Name != caller.Stdio {
		return p.ClientInfo, p.Capabilities
	}
	return req.ClientInfo(), req.ClientCapabilities()
}

// Capabilities implements [caller.Peer]: what the client declared, and what people at the console
// answer for it.
func (c *client) Capabilities() json.RawMessage {
	caps := map[string]any{}
	if c.can.Elicitation != nil {
		caps["elicitation"] = c.can.Elicitation
	} else if c.console {
		caps["elicitation"] = mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if c.can.Sampling != nil {
		caps["sampling"] = c.can.Sampling
	}
	if c.can.RootsV2 != nil {
		caps["roots"] = c.can.RootsV2
	}
	extensions := wire.Extensions() // toolreg waits for tasks
	if apps, ok := c.can.Extensions[wire.AppsExtension]; ok {
		extensions[wire.AppsExtension] = apps
	}
	caps["extensions"] = extensions
	out, _ := json.Marshal(caps) // plain structs: cannot fail
	return out
}

// owner returns the key of what belongs to the client alone, such as its own process of a
// server: for a modern client, which has no session, its token.
func (c *client) owner() any {
	if c.modern {
		return c.from.Name
	}
	return c.session
}

// canFill reports whether the client can show forms to its user. A client that
// declares no mode supports forms (revision 2025-06-18).
func (c *client) canFill() bool {
	e := c.can.Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// showsApps reports whether the client declared that it shows pages of tools.
func (c *client) showsApps() bool {
	if c == nil {
		return false
	}
	_, ok := c.can.Extensions[wire.AppsExtension]
	return ok
}

// canOpen reports whether the client can send its user to URLs.
func (c *client) canOpen() bool {
	e := c.can.Elicitation
	return e != nil && e.URL != nil
}

// continues reports whether the client may have to continue its request with another one.
func (c *client) continues() bool {
	return c.modern && (c.can.Elicitation != nil || c.can.Sampling != nil)
}

// answers reports whether the client declared that it can answer a question of this kind.
func (c *client) answers(q mcp.InputRequest) bool {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		return q.URL == "" && c.canFill() || q.URL != "" && c.canOpen()
	case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
		return c.can.Sampling != nil
	case *mcp.ListRootsParams:
		return c.can.RootsV2 != nil
	}
	return false
}

// carrier is the sender of the request that the client's call currently belongs to: a
// modern client continues a call with another request.
func (c *client) carrier() *client {
	if c.call != nil {
		return c.call.carrier.Load()
	}
	return c
}

// errInputEnded is the cause with which a question to the client on stdin is withdrawn: no answer
// can arrive any more.
var errInputEnded = errors.New("the client has ended its input, so it cannot answer")

// opens counts a question to a person until done is called.
func (c *client) opens() (done func()) {
	if c == nil || c.asked == nil {
		return func() {}
	}
	_ = c.asked.Add(c.from.Name, 0) // there is no limit
	return func() { c.asked.Remove(c.from.Name) }
}

// elicit asks the client's user a question. stage is that of [client.ask].
func (c *client) elicit(ctx context.Context, key string, q *mcp.ElicitParams, stage *callStage) (*mcp.ElicitResult, error) {
	answers, err := c.ask(ctx, mcp.InputRequestMap{key: q}, stage)
	if err != nil {
		return nil, err
	}
	if r, ok := answers[key].(*mcp.ElicitResult); ok {
		return r, nil
	}
	return &mcp.ElicitResult{Action: "cancel"}, nil
}

// ask asks the client questions: in the result of its request, by its task or, before revision
// 2026-07-28, by one request after the other. stage is what another process would need to
// continue the call; nil: it can only continue here.
func (c *client) ask(ctx context.Context, questions mcp.InputRequestMap, stage *callStage) (mcp.InputResponseMap, error) {
	if c.closed == nil {
		return c.askOpen(ctx, questions, stage)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.closed:
			cancel(errInputEnded)
		case <-ctx.Done():
		}
	}()
	answers, err := c.askOpen(ctx, questions, stage)
	if err != nil && errors.Is(context.Cause(ctx), errInputEnded) {
		err = errInputEnded // the SDK does not return the cause
	}
	return answers, err
}

// askOpen is ask for a client whose answers are read.
func (c *client) askOpen(ctx context.Context, questions mcp.InputRequestMap, stage *callStage) (mcp.InputResponseMap, error) {
	switch {
	case c.call != nil:
		return c.call.ask(ctx, questions, stage)
	case c.modern: // such as a completion, whose result cannot carry questions
		return nil, errors.New("the client cannot be asked during this request")
	}
	out := mcp.InputResponseMap{}
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		answer, err := c.send(ctx, questions[key])
		if err != nil {
			return nil, err
		}
		out[key] = answer
	}
	return out, nil
}

func (c *client) send(until context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	if c.peer != nil {
		return c.peer.ask(until, q)
	}
	ctx, cancel := context.WithCancelCause(c.request) // over HTTP it is sent in the response to that request
	defer cancel(nil)
	defer context.AfterFunc(until, func() { cancel(context.Cause(until)) })()
	switch q := q.(type) {
	case *mcp.ElicitParams:
		return c.session.Elicit(ctx, q)
	case *mcp.CreateMessageWithToolsParams:
		return c.session.CreateMessageWithTools(ctx, q)
	case *mcp.ListRootsParams:
		return c.session.ListRoots(ctx, q)
	}
	return nil, fmt.Errorf("unexpected question %T", q)
}

// maxInputs limits how many questions a server can ask at once.
const maxInputs = 20

// TakesInput implements [caller.Peer]. People at the console are asked one by one.
func (c *client) TakesInput() bool { return !c.console || c.can.Elicitation != nil }

// Input implements [caller.Peer]: it passes a server's questions on under the server's keys.
func (c *client) Input(ctx context.Context, server string, result json.RawMessage) (json.RawMessage, error) {
	var wanted struct {
		Requests mcp.InputRequestMap `json:"inputRequests"`
		State    json.RawMessage     `json:"requestState"`
	}
	if err := json.Unmarshal(result, &wanted); err != nil {
		return nil, &ask.InputError{Reason: "its request for input is malformed"}
	}
	if len(wanted.Requests) > maxInputs {
		return nil, &ask.InputError{Reason: fmt.Sprintf("it asks for more than %d inputs at once", maxInputs)}
	}
	for key, q := range wanted.Requests {
		if !c.answers(q) {
			return nil, &ask.InputError{Reason: fmt.Sprintf("the client cannot answer its request for input %s", text.Quote(key))}
		}
		if e, ok := q.(*mcp.ElicitParams); ok {
			e.Message = messageOf(server, e.Message)
		}
	}
	answers := mcp.InputResponseMap{}
	if len(wanted.Requests) > 0 {
		defer c.opens()()
		var err error
		if answers, err = c.ask(ctx, wanted.Requests, c.call.atServer(server, wanted.Requests, wanted.State)); err != nil {
			return nil, &ask.InputError{Reason: "its request for input was not answered: " + err.Error()}
		}
	}
	return inputMembers(answers, wanted.State)
}

// Continues implements [caller.Peer].
func (c *client) Continues(failed error) {
	if c.call == nil || !c.knowsTasks() {
		return
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](failed); ok {
		c.call.failed.Store(refused)
	}
	c.call.isTask.Do(func() { close(c.call.task) })
}

// Left implements [caller.Peer].
func (c *client) Left() bool { return !c.modern && left(c.request) }

// Roots implements [caller.Peer].
func (c *client) Roots(ctx context.Context) (json.RawMessage, error) {
	if c.can.RootsV2 == nil {
		return nil, nil
	}
	answers, err := c.ask(ctx, mcp.InputRequestMap{questionKey: &mcp.ListRootsParams{}}, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answers[questionKey])
}

// messageOf returns a server's question with the name of the server.
func messageOf(server, message string) string {
	return fmt.Sprintf("MCP server %q asks: %s", server, message)
}
