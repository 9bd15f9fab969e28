package question

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	// The keys under which toolreg asks its own questions in the result of a call: the question
	// about the call itself, and questions that a server sends as requests.
	approvalKey = "toolreg.approval"
	questionKey = "toolreg.question"
)

// Call is a call of a modern client. The client gets questions in the result of its request and
// repeats the request with the answers (revision 2026-07-28, multi round-trip requests). Meanwhile
// the call waits here.
type Call struct {
	owner     string // see [auth.Identity.Account]
	request   requestDigest
	questions chan Question
	done      chan Outcome
	Cancel    context.CancelCauseFunc
	asked     Question  // the question that the client was asked
	first     *Question // asked by a task before it was known to be one; may be nil
	since     time.Time
	expiry    *time.Timer
	carrier   atomic.Pointer[outbox] // of the request that carries the call now

	// The following fields are for the goroutine that runs the call.
	tool     *registry.Tool                // that is called, if the request is a call
	server   string                        // that provides the result; empty if it is not one server
	given    *earlierAnswers               // what the client answered to another process; may be nil
	approval *callApproval                 // of the call
	rounds   int                           // how often the server has asked
	task     chan struct{}                 // closed when the call continues as a task
	becomes  sync.Once                     // closes task
	failed   atomic.Pointer[jsonrpc.Error] // the error of a failed task
	// stays says that a question was answered at the console, so that only this process can
	// continue the call.
	stays bool
}

// Question is what a call asks its client.
type Question struct {
	Requests mcp.InputRequestMap
	stage    *callStage // nil if only this process can continue the call
	answer   chan<- mcp.InputResponseMap
	settled  *settlement // with the console; nil if only the client is asked
}

// Outcome is the result or the error of a call.
type Outcome struct {
	Value any
	Err   error
}

// ask waits for the client's answer.
func (w *Call) ask(ctx context.Context, requests mcp.InputRequestMap, stage *callStage) (mcp.InputResponseMap, error) {
	answer := make(chan mcp.InputResponseMap, 1)
	settled, _ := ctx.Value(settlementKey{}).(*settlement)
	select {
	case w.questions <- Question{requests, stage, answer, settled}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *Call) isTask() bool {
	select {
	case <-w.task:
		return true
	default:
		return false
	}
}

// Next waits for the next question of the call, or for its outcome. The other result is nil.
func (w *Call) Next() (*Question, *Outcome) {
	if q := w.first; q != nil {
		w.first = nil
		return q, nil
	}
	select {
	case q := <-w.questions:
		return &q, nil
	case o := <-w.done:
		return nil, &o
	}
}

// Stop cancels the call and waits until it has ended.
func (w *Call) Stop(cause error) {
	w.Cancel(cause)
	<-w.done
}

// Refused returns the server's error with which the call failed as a task; nil if there is none.
func (w *Call) Refused() *jsonrpc.Error { return w.failed.Load() }

// Reply passes answers to the call that asks.
func (q *Question) Reply(answers mcp.InputResponseMap) { q.answer <- answers } // it has room for one

// Asked records that the client gets the question. It returns false if the question was answered
// elsewhere before. claim takes the question back from the client.
func (q *Question) Asked(claim func() bool) bool { return q.settled.asked(claim) }

// maxServerState limits the size in bytes of a server's requestState that is included in ours. With
// a larger one, only this process can continue the call.
const maxServerState = 256 << 10

// earlierAnswers are a client's answers to questions that a call asked in another process. The call
// runs here again from its beginning, without repeating these questions.
type earlierAnswers struct {
	stage   callStage
	answers mcp.InputResponseMap // to the last question
}

// approval returns the answer to a question about the call; nil if there is none, or it answers
// another question.
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

// atServer returns the stage of a call whose server asks for input; nil if only this process can
// continue the call. What the server needs to continue is in the server's own state.
func (w *Call) atServer(name string, requests mcp.InputRequestMap, state json.RawMessage) *callStage {
	if w == nil || w.server != name || w.stays || len(state) > maxServerState {
		return nil
	}
	w.rounds++
	return &callStage{Approval: w.approval,
		Server: &serverStage{Name: name, State: state, Keys: slices.Sorted(maps.Keys(requests)), Round: w.rounds}}
}

// inputMembers returns params members with answers to a server's questions.
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
