//lint:file-ignore SA1019 clients still use roots and sampling, which a later revision deprecates

// Package question asks clients questions, each in the way of its protocol revision, and at the
// same time the console and the place where questions are kept. The first answer counts. A client
// of revision 2026-07-28 gets a question as the result of its request and sends the request again
// with the answer. The call waits here meanwhile. If the answer reaches another process, that
// process runs the call again.
package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// Client is the sender of a request.
type Client struct {
	*outbox
	From   auth.Identity
	can    mcp.ClientCapabilities
	asking Asking
	// Revision is the revision of its request. Clients of modern revisions get questions in
	// results, not as requests.
	Revision string
	Modern   bool
	call     *Call            // the call that asks the client; see [Calls.Start]
	console  bool             // people at the console are asked too
	open     *transport.Calls // counts open questions to people; may be nil
	// closed is closed when no more answers are read from the client on stdin; nil for other
	// clients.
	closed <-chan struct{}
	remote Remote // for a request that another process received
}

// Asking controls whether the clients of a server may be asked. A server that a tool has
// started must not let the tool approve its own calls.
type Asking int

const (
	// AskAll puts every question to the client's user and remembers "always".
	AskAll Asking = iota
	// AskOnce remembers no answer: the client is the toolreg process that started
	// this one, and asks its own user.
	AskOnce
	// AskNobody treats every client as one that cannot ask its user.
	AskNobody
)

// From returns the client that sent the request of ctx; nil if there is none.
func From(ctx context.Context) *Client {
	if who := caller.From(ctx); who != nil {
		c, _ := who.Peer.(*Client)
		return c
	}
	return nil
}

// Sender is a request that describes its sender.
type Sender interface {
	mcp.Request
	ProtocolVersion() string
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// Clients makes the [Client] of each request.
type Clients struct {
	Asking  Asking
	Console bool             // people at the console answer for clients that cannot ask
	Open    *transport.Calls // counts the questions to people
	// Stopping is closed when no more answers are read from the client on stdin.
	Stopping <-chan struct{}
}

// With returns a context for the request of a client.
func (o *Clients) With(ctx context.Context, from auth.Identity, req Sender) context.Context {
	session, _ := req.GetSession().(*mcp.ServerSession) // that of a server
	c := &Client{
		outbox:   &outbox{Session: session, Request: ctx},
		From:     from,
		asking:   o.Asking,
		Revision: req.ProtocolVersion(),
		open:     o.Open,
		console:  o.Console,
	}
	if from.Name == caller.Stdio {
		c.closed = o.Stopping
	}
	if p, ok := req.GetParams().(mcp.RequestParams); ok && !reflect.ValueOf(p).IsNil() {
		c.progress = p.GetProgressToken()
	}
	c.Modern = c.Revision >= wire.FirstModern
	// Over HTTP the session has what the client declared, even if it was created for this request
	// only; this avoids the 64 KiB that the SDK needs to read it from the request. On stdin, each
	// request of a modern client may differ.
	var info *mcp.Implementation
	var caps *mcp.ClientCapabilities
	if p := session.InitializeParams(); p != nil && from.Name != caller.Stdio {
		info, caps = p.ClientInfo, p.Capabilities
	} else {
		info, caps = req.ClientInfo(), req.ClientCapabilities()
	}
	if caps != nil {
		c.can = *caps
	}
	if c.asking == AskNobody {
		c.can.Elicitation = nil
	}
	who := from.Caller()
	who.ID, who.Owner, who.Peer = session, session, c
	if c.Modern { // each request has its own session
		who.Owner = from.Name
	}
	if info != nil {
		who.Client, who.Version = info.Name, info.Version
	}
	return caller.With(ctx, who)
}

// Remote asks a client whose request another process is handling.
type Remote func(context.Context, mcp.InputRequest) (mcp.InputResponse, error)

// WithRemote returns a context for a client's request that another process has received.
func WithRemote(ctx context.Context, from auth.Identity, revision string, ask Remote) context.Context {
	return caller.With(ctx, &caller.Caller{Peer: &Client{
		From: from, Revision: revision, Modern: revision >= wire.FirstModern, outbox: &outbox{}, remote: ask,
	}})
}

// Capabilities implements [caller.Peer]. It returns what the client declared, and what people at
// the console answer for it.
func (c *Client) Capabilities() json.RawMessage {
	caps := map[string]any{}
	if c.can.Elicitation != nil {
		caps["elicitation"] = c.can.Elicitation
	} else if c.console {
		caps["elicitation"] = mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{},
			URL: &mcp.URLElicitationCapabilities{}}
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

// canFill reports whether the client can show forms to its user. A client that declares no mode can
// (revision 2025-06-18).
func (c *Client) canFill() bool {
	e := c.can.Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// ShowsApps reports whether the client declared that it shows pages of tools.
func (c *Client) ShowsApps() bool {
	if c == nil {
		return false
	}
	_, ok := c.can.Extensions[wire.AppsExtension]
	return ok
}

// CanOpen reports whether the client can open URLs for its user.
func (c *Client) CanOpen() bool {
	e := c.can.Elicitation
	return e != nil && e.URL != nil
}

// answers reports whether the client declared support for this kind of question.
func (c *Client) answers(q mcp.InputRequest) bool {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		return q.URL == "" && c.canFill() || q.URL != "" && c.CanOpen()
	case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
		return c.can.Sampling != nil
	case *mcp.ListRootsParams:
		return c.can.RootsV2 != nil
	}
	return false
}

// current returns the outbox of the request that carries the client's call now: a modern client
// continues a call with another request.
func (c *Client) current() *outbox {
	if c.call != nil {
		return c.call.carrier.Load()
	}
	return c.outbox
}

// errInputEnded is the cause with which a question on stdin is withdrawn, because no answer can
// arrive any more.
var errInputEnded = errors.New("the client has ended its input, so it cannot answer")

// opens counts a question to a person until done is called.
func (c *Client) opens() (done func()) {
	if c == nil || c.open == nil {
		return func() {}
	}
	_ = c.open.Add(c.From.Name, 0) // there is no limit
	return func() { c.open.Remove(c.From.Name) }
}

// errOtherServer rejects an answer that is meant for another server.
var errOtherServer = errors.New(
	"this answer (requestState) belongs to a question of another MCP server; make the call again")

// Concerns records what the client's request is about, before any question is asked: the tool to
// call, if any, and the source that provides the result.
func (c *Client) Concerns(tool *registry.Tool, source string) error {
	w := c.call
	if w == nil {
		return nil
	}
	w.tool = tool
	if server, ok := registry.ServerOf(source); ok {
		w.server = server
	}
	if g := w.given; g != nil && g.stage.Server != nil && g.stage.Server.Name != w.server {
		return errOtherServer
	}
	return nil
}

// Elicit asks the client's user a question. For stage, see [Client.ask].
func (c *Client) Elicit(ctx context.Context, key string,
	q *mcp.ElicitParams, stage *callStage) (*mcp.ElicitResult, error) {
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
// 2026-07-28, by one request after the other. stage is what another process would need to continue
// the call; nil if only this process can.
func (c *Client) ask(ctx context.Context, questions mcp.InputRequestMap,
	stage *callStage) (mcp.InputResponseMap, error) {
	ctx, stop := timing.Until(ctx, c.closed, errInputEnded)
	defer stop()
	switch {
	case c.call != nil:
		return c.call.ask(ctx, questions, stage)
	case c.Modern: // such as a completion, whose result cannot carry questions
		return nil, errors.New("the client cannot be asked during this request")
	}
	out := mcp.InputResponseMap{}
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		answer, err := c.Send(ctx, questions[key])
		if err != nil && errors.Is(context.Cause(ctx), errInputEnded) {
			err = errInputEnded // the SDK does not return the cause
		}
		if err != nil {
			return nil, err
		}
		out[key] = answer
	}
	return out, nil
}

// Send asks the client a question by a request, until the context until is done.
func (c *Client) Send(until context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	if c.remote != nil {
		return c.remote(until, q)
	}
	ctx, cancel := context.WithCancelCause(c.Request) // over HTTP it is sent in the response to that request
	defer cancel(nil)
	defer context.AfterFunc(until, func() { cancel(context.Cause(until)) })()
	switch q := q.(type) {
	case *mcp.ElicitParams:
		return c.Session.Elicit(ctx, q)
	case *mcp.CreateMessageWithToolsParams:
		return c.Session.CreateMessageWithTools(ctx, q)
	case *mcp.ListRootsParams:
		return c.Session.ListRoots(ctx, q)
	}
	return nil, fmt.Errorf("unexpected question %T", q)
}

// maxInputs limits how many questions a server can ask at once.
const maxInputs = 20

// TakesInput implements [caller.Peer]. People at the console are asked one question at a time.
func (c *Client) TakesInput() bool { return !c.console || c.can.Elicitation != nil }

// Input implements [caller.Peer]: it passes a server's questions on under the server's keys.
func (c *Client) Input(ctx context.Context, server string, result json.RawMessage) (json.RawMessage, error) {
	requests, err := readRequests(jsonx.Get(result, "inputRequests"))
	if err != nil {
		return nil, &ask.InputError{Reason: "its request for input is malformed: " + err.Error()}
	}
	if len(requests) > maxInputs {
		return nil, &ask.InputError{Reason: fmt.Sprintf("it asks for more than %d inputs at once", maxInputs)}
	}
	for key, q := range requests {
		if !c.answers(q) {
			return nil, &ask.InputError{
				Reason: fmt.Sprintf("the client cannot answer its request for input %s", text.Quote(key)),
			}
		}
		if e, ok := q.(*mcp.ElicitParams); ok {
			sent := jsonx.Get(jsonx.Get(jsonx.Get(result, "inputRequests"), key), "params")
			read, err := ask.Read(server, sent)
			if err != nil {
				return nil, &ask.InputError{Reason: "its request for input was not passed on: " + err.Error()}
			}
			e.Message = messageOf(server, read.Message)
			if read.Form != nil {
				e.RequestedSchema = read.Schema
			}
		}
	}
	state := jsonx.Get(result, "requestState")
	answers := mcp.InputResponseMap{}
	if len(requests) > 0 {
		defer c.opens()()
		if answers, err = c.ask(ctx, requests, c.call.atServer(server, requests, state)); err != nil {
			return nil, &ask.InputError{Reason: "its request for input was not answered: " + err.Error()}
		}
	}
	return inputMembers(answers, state)
}

// readRequests decodes a server's questions. The SDK cannot read any without params, and panics at
// null.
func readRequests(raw json.RawMessage) (out mcp.InputRequestMap, err error) {
	var questions map[string]map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &questions) != nil {
		return nil, errors.New("its questions are not objects")
	}
	for key, q := range questions {
		if jsonx.IsNull(q["params"]) {
			questions[key] = map[string]json.RawMessage{"method": q["method"], "params": json.RawMessage("{}")}
		}
	}
	full, err := json.Marshal(questions)
	if err == nil {
		err = json.Unmarshal(full, &out)
	}
	return out, err
}

// Answered implements [caller.Peer].
func (c *Client) Answered(server string) (members json.RawMessage, rounds int, err error) {
	if c.call == nil || c.call.given == nil || c.call.given.stage.Server == nil || c.call.server != server {
		return nil, 0, nil
	}
	asked := c.call.given.stage.Server
	c.call.given.stage.Server = nil // once
	answers := mcp.InputResponseMap{}
	for _, key := range asked.Keys {
		if a := c.call.given.answers[key]; a != nil {
			answers[key] = a
		}
	}
	c.call.rounds = asked.Round
	members, err = inputMembers(answers, asked.State)
	return members, asked.Round, err
}

// Continues implements [caller.Peer].
func (c *Client) Continues(failed error) {
	if c.call == nil || !c.KnowsTasks() {
		return
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](failed); ok {
		c.call.failed.Store(refused)
	}
	c.call.becomes.Do(func() { close(c.call.task) })
}

// Readable returns content with descriptions in place of what the client's revision does not have,
// never nil. Clients refuse a whole result for one part of an unknown type.
func (c *Client) Readable(content []registry.Content) []registry.Content {
	out := append([]registry.Content{}, content...)
	for i, part := range out {
		if part.Type == registry.ContentAudio && c.Revision < "2025-03-26" ||
			part.Type == registry.ContentResourceLink && c.Revision < "2025-06-18" {
			out[i] = registry.TextContent(part.Note())
		}
	}
	return out
}

// Left implements [caller.Peer].
func (c *Client) Left() bool { return !c.Modern && transport.Left(c.Request) }

// Roots implements [caller.Peer].
func (c *Client) Roots(ctx context.Context) (json.RawMessage, error) {
	if c.can.RootsV2 == nil {
		return nil, nil
	}
	answers, err := c.ask(ctx, mcp.InputRequestMap{questionKey: &mcp.ListRootsParams{}}, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answers[questionKey])
}

// messageOf prefixes a server's question with the name of the server.
func messageOf(server, message string) string {
	return fmt.Sprintf("MCP server %q asks: %s", server, message)
}

// KnowsTasks reports whether the client declared the extension for tasks.
func (c *Client) KnowsTasks() bool {
	_, ok := c.can.Extensions[wire.TasksExtension]
	return ok && c.Modern
}

// KnowsLegacyTasks reports whether the client's revision is 2025-11-25, which has tasks of its own.
func (c *Client) KnowsLegacyTasks() bool { return c.Revision == wire.LastLegacy }

// WantedTask returns the member task of a call's params, which the SDK does not read (revision
// 2025-11-25, tasks, "Creating Tasks"). It returns nil if there is none, or the client does not
// support tasks.
func (c *Client) WantedTask(req mcp.Request) (task json.RawMessage) {
	if !c.KnowsLegacyTasks() {
		return nil
	}
	if task = jsonx.Get(transport.ParamsOf(req), "task"); jsonx.IsNull(task) {
		return nil
	}
	return task
}

// Flush sends what the client must receive before the answer to its request.
func (c *Client) Flush() { c.outbox.close() }
