package question

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/store"
)

// maxServerState limits the size in bytes of a server's requestState that is included in
// ours. If it is larger, the call can only continue in this process.
const maxServerState = 256 << 10

// earlierAnswers holds a client's answers to questions of a call in another process. The call runs
// again here from its beginning without repeating these questions.
type earlierAnswers struct {
	stage   callStage
	answers mcp.InputResponseMap // to the last question
}

var (
	// errOtherProcess rejects an answer to a call that has begun to run in another process.
	errOtherProcess = errors.New("this answer (requestState) belongs to a call that waits in another process of " +
		"this server, or ended with it, and may have run in part; make the call again if that is safe")
	// errOtherServer rejects an answer that is meant for another server.
	errOtherServer = errors.New(
		"this answer (requestState) belongs to a question of another MCP server; make the call again")
)

func refusedState(reason string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: "requestState: " + reason + ". Send the request again without it"}
}

// resume passes a client's answers to the call that waits for them. If the call does not
// wait in this process and has not had any effect yet, it runs again. If answers are
// missing, resume returns the questions to ask again.
func (s *Calls) resume(ctx context.Context, t Turn, run func(context.Context) (any, error)) (*Call, *Asked, error) {
	c := From(ctx)
	state, err := s.keys.Open(t.State)
	switch {
	case err != nil:
		return nil, nil, refusedState(err.Error())
	case state.Owner != c.From.Account():
		return nil, nil, refusedState("it belongs to a client with another token or profile")
	case !state.Request.Equal(t.digest()):
		return nil, nil, refusedState("it belongs to another request; method, name and params must be the same")
	}
	if w := s.settled(state.ID); w != nil {
		w.carrier.Store(c)
		return w, nil, nil
	}
	asked, waits := s.waitsFor(state.ID)
	switch {
	case waits && slices.ContainsFunc(slices.Collect(maps.Keys(asked)),
		func(key string) bool { return t.Answers[key] == nil }):
		return nil, askFor(asked, t.State), nil
	case !waits && state.Stage == nil && !s.answered.Has(ctx, state.ID):
		return nil, nil, errOtherProcess
	}
	if err := s.answered.Claim(c.From.Account(), state.ID); err != nil {
		return nil, nil, refusedState(err.Error())
	}
	if s.keys.Shared() {
		err = s.answered.Record(ctx, state.ID)
	}
	if _, away := errors.AsType[*store.UnavailableError](err); away { // the call waits on
		s.answered.Release(c.From.Account(), state.ID)
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "requestState: " + err.Error()}
	}
	w := s.unpark(state.ID)
	if err != nil {
		if w != nil {
			w.Cancel(caller.ErrTaken)
		}
		return nil, nil, refusedState(err.Error())
	}
	switch {
	case w != nil:
		w.carrier.Store(c)
		w.asked.answer <- t.Answers
		return w, nil, nil
	case state.Stage == nil: // it expired just now
		return nil, nil, refusedState(errExpired.Error())
	}
	return s.Start(ctx, t, &earlierAnswers{*state.Stage, t.Answers}, run), nil, nil
}

// Concerns records what the client's request is about, before any question is asked: the
// tool that is called, if any, and the source that provides the result.
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

// approve asks the client's user whether to allow a call.
func (c *Client) approve(ctx context.Context, tool *registry.Tool, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	w := c.call
	if w == nil || w.tool != tool { // a step of a composite, other steps of which may have run
		return c.Elicit(ctx, approvalKey, q, nil)
	}
	w.approval = &callApproval{Question: digestOf(q.Message)}
	result := w.given.approval(w.approval.Question)
	if result == nil {
		var err error
		if result, err = c.Elicit(ctx, approvalKey, q, &callStage{Approval: w.approval}); err != nil {
			return nil, err
		}
	}
	decision, _ := result.Content["decision"].(string)
	w.approval = &callApproval{Question: w.approval.Question, Decision: decision}
	return result, nil
}

// approval returns the answer to a question about the call. It returns nil if there is none or it
// answers another question.
func (g *earlierAnswers) approval(question requestDigest) *mcp.ElicitResult {
	if g == nil || g.stage.Approval == nil || !g.stage.Approval.Question.Equal(question) {
		return nil
	}
	if decision := g.stage.Approval.Decision; decision != "" {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}
	}
	answer, _ := g.answers[approvalKey].(*mcp.ElicitResult)
	return answer
}

// atServer returns the stage of a call whose server asks for input; nil if the call can
// only continue in this process. What the server needs to continue is in its own state.
func (w *Call) atServer(name string, requests mcp.InputRequestMap, state json.RawMessage) *callStage {
	if w == nil || w.server != name || w.stays || len(state) > maxServerState {
		return nil
	}
	w.rounds++
	return &callStage{Approval: w.approval,
		Server: &serverStage{Name: name, State: state, Keys: slices.Sorted(maps.Keys(requests)), Round: w.rounds}}
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

// inputMembers returns the members of params with answers to a server's questions.
func inputMembers(answers mcp.InputResponseMap, state json.RawMessage) (json.RawMessage, error) {
	data, err := json.Marshal(answers)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`"inputResponses":`), data...)
	if len(state) > 0 {
		out = append(append(out, `,"requestState":`...), state...)
	}
	return out, nil
}
