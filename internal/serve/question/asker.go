//lint:file-ignore SA1019 servers still use sampling, which a later revision deprecates

package question

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// Console is a place where people answer questions of all clients. Its methods show a question
// until it is answered or ctx is done. An answer counts only if first returns true; otherwise
// somebody else was faster, and the answer is dropped.
type Console interface {
	Confirm(ctx context.Context, q exec.Question, first func() bool) (exec.Answer, error)
	Elicit(ctx context.Context, e ask.Elicitation, first func() bool) (ask.Answer, error)
}

// Asker asks the user of the client that made the call, and the console. It implements
// [engine.Asker]; the zero value is ready to use.
type Asker struct {
	// Console is asked too. If it is nil, only clients are asked.
	Console Console
	// Patience is how long the console shows a question. Zero means no limit.
	Patience time.Duration
	// Log receives questions that wait. A nil Log discards them.
	Log *slog.Logger
}

// waits logs that a question is waiting. id is that of a kept question; "" if it is not kept. asked
// says that the client was asked, so that its user knows of the question.
func (a Asker) waits(ctx context.Context, about, id string, asked bool) {
	if a.Log == nil || a.Console == nil && !asked {
		return
	}
	level, who := slog.LevelWarn, caller.From(ctx)
	if asked {
		level = slog.LevelInfo
	}
	args := []any{"about", about, "caller", who.Name, "client", who.Client}
	if id != "" {
		args = append(args, "answer", "toolreg approvals answer "+id+" yes")
	}
	a.Log.Log(ctx, level, "a question waits for an answer", args...)
}

// Confirmer implements [engine.Asker].
func (a Asker) Confirmer() exec.Confirmer { return a }

// answerOnce is what earlier versions' forms had for [exec.WordYes]. Clients may still send it.
const answerOnce = "once"

// Turn implements exec.Confirmer. Questions need not take turns, because each client has
// its own user.
func (Asker) Turn() func() { return func() {} }

// Confirm implements exec.Confirmer. If nobody can be asked, the error says what would
// allow the call.
func (a Asker) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	c := From(ctx)
	again := len(q.Denied) > 0 // a modern client would repeat the call from its beginning after the answer
	asked := c != nil && c.canFill() && !again
	client := func(ctx context.Context) (answer exec.Answer, err error) {
		if again {
			return answer, nil
		}
		if asked {
			answer, err = c.confirm(ctx, q)
		}
		if !asked || errors.Is(err, errInputEnded) {
			err = &exec.NeedsConfirmation{Tool: q.Tool.Name,
				Verdict: q.Verdict, Hint: exec.LastingHint(q.Tool, q.Verdict)}
		}
		return answer, err
	}
	var console, kept answering[exec.Answer]
	if a.Console != nil {
		console = func(ctx context.Context, first func() bool) (exec.Answer, error) {
			return a.Console.Confirm(ctx, q, first)
		}
	}
	if q.Elsewhere != nil && !again && c != nil && c.asking == AskAll {
		kept = func(ctx context.Context, first func() bool) (exec.Answer, error) {
			return q.Elsewhere(ctx, func(id string) { a.waits(ctx, q.Tool.Name, id, asked) }, first)
		}
	}
	return firstAnswer(ctx, a.Patience, asked, client, console, kept)
}

// confirm asks the client's user whether a call may run.
func (c *Client) confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	q.Choices = slices.DeleteFunc(slices.Clone(q.Choices), func(one exec.Choice) bool {
		switch one {
		case exec.Yes, exec.No:
			return false
		case exec.Always, exec.AlwaysTool:
			return c.asking == AskOnce
		}
		return true
	})
	result, err := c.approve(ctx, q.Tool,
		&mcp.ElicitParams{Mode: "form", Message: asking.Text(&q), RequestedSchema: decisionForm(q.Words())})
	notUnderstood := exec.Answer{Choice: exec.No,
		Reason: `the client's answer was not understood: its "decision" is not one of the choices`}
	if err != nil && strings.HasPrefix(err.Error(), "elicitation result content does not match") {
		// The SDK checks those in sessions.
		return notUnderstood, nil
	}
	if err != nil {
		return exec.Answer{}, err
	}
	if result.Action != ask.Accept {
		return exec.Answer{Choice: exec.No, Reason: "the client's user did not agree (" + result.Action + ")"}, nil
	}
	var given exec.Reply
	if given.Choice, _ = result.Content["decision"].(string); given.Choice == answerOnce {
		given.Choice = exec.WordYes
	}
	answer, err := given.Answer(&q)
	if err != nil {
		return notUnderstood, nil
	}
	return answer, nil
}

// decisionForm returns a form with these answers.
func decisionForm(words []string) json.RawMessage {
	titles := map[string]string{exec.WordYes: "Allow once",
		exec.WordAlways: "Allow always", exec.WordNo: "Do not allow"}
	var enum, names []string
	for _, word := range words {
		enum, names = append(enum, jsonx.Quote(word)), append(names, jsonx.Quote(titles[word]))
	}
	return json.RawMessage(
		`{"type":"object","properties":{"decision":{"type":"string","title":"Allow this call?","enum":[` +
			strings.Join(enum, ",") + `],"enumNames":[` + strings.Join(names, ",") + `]}},"required":["decision"]}`)
}

// ReadOnce is the middleware that reads [answerOnce] as yes in sessions, whose answers the SDK checks
// against the form.
func ReadOnce(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		answer, ok := result.(*mcp.ElicitResult)
		if !ok || err != nil || answer.Content["decision"] != answerOnce {
			return result, err
		}
		if q, ok := req.GetParams().(*mcp.ElicitParams); ok {
			form, _ := json.Marshal(q.RequestedSchema)
			for _, own := range [][]string{{exec.WordYes, exec.WordAlways, exec.WordNo}, {exec.WordYes, exec.WordNo}} {
				if jsonx.Canonical(form) == jsonx.Canonical(decisionForm(own)) {
					answer.Content["decision"] = exec.WordYes
				}
			}
		}
		return result, nil
	}
}

// Elicit implements [engine.Asker]: it passes a server's question to the client's user.
func (a Asker) Elicit(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	c := From(ctx)
	if c == nil {
		return ask.Answer{}, &engine.NobodyError{Reason: "it does not belong to a client's call"}
	}
	asked := e.Mode == "form" && c.canFill() || e.Mode == "url" && c.CanOpen()
	client := func(ctx context.Context) (ask.Answer, error) {
		if !asked {
			return ask.Answer{}, &engine.NobodyError{Reason: "the client cannot ask its user"}
		}
		return c.pass(ctx, e)
	}
	var console answering[ask.Answer]
	if a.Console != nil {
		console = func(ctx context.Context, first func() bool) (ask.Answer, error) {
			return a.Console.Elicit(ctx, e, first)
		}
	}
	a.waits(ctx, "MCP server "+e.Server, "", asked)
	return firstAnswer(ctx, a.Patience, asked, client, console, nil)
}

// pass passes a server's question to the client's user.
func (c *Client) pass(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	q := &mcp.ElicitParams{Mode: e.Mode, Message: messageOf(e.Server, e.Message), URL: e.URL, ElicitationID: e.ID}
	if e.Mode == "form" {
		q.RequestedSchema = e.Schema
	}
	result, err := c.Elicit(ctx, questionKey, q, nil)
	if err != nil {
		return ask.Answer{Action: ask.Cancel}, err
	}
	answer := ask.Answer{Action: result.Action}
	if result.Action == ask.Accept && result.Content != nil {
		if answer.Content, err = json.Marshal(result.Content); err != nil {
			return ask.Answer{Action: ask.Cancel}, errors.New("the client's answer cannot be read")
		}
	}
	return answer, nil
}

// Sample implements [engine.Sampler]: it passes a server's sampling request to
// the client.
func (Asker) Sample(ctx context.Context, q ask.Sampling) (json.RawMessage, error) {
	var params mcp.CreateMessageWithToolsParams
	if err := json.Unmarshal(q.Params, &params); err != nil {
		return nil, errors.New("the sampling request is malformed")
	}
	c := From(ctx)
	if c == nil || !c.answers(&params) {
		return nil, errors.New("the client does not support sampling")
	}
	answers, err := c.ask(ctx, mcp.InputRequestMap{questionKey: &params}, nil)
	if err != nil {
		return nil, err
	}
	answer, ok := answers[questionKey].(*mcp.CreateMessageWithToolsResult)
	if !ok {
		return nil, errors.New("the client did not answer")
	}
	if len(answer.Content) != 1 {
		return json.Marshal(answer)
	}
	return json.Marshal(&mcp.CreateMessageResult{
		Meta: answer.Meta, Content: answer.Content[0], Model: answer.Model, Role: answer.Role,
		StopReason: answer.StopReason,
	})
}

// approve asks the client's user whether to allow a call.
func (c *Client) approve(ctx context.Context, tool *registry.Tool, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	w := c.call
	if w == nil || w.tool != tool { // a step of a composite, whose other steps may have run
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

// answering shows a question until ctx is done or it is answered. An answer counts only if first
// returns true.
type answering[T any] func(ctx context.Context, first func() bool) (T, error)

// firstAnswer returns the first answer: from the client, from the console, which shows the question
// for patience, or from where the question is kept. Console and kept may be nil. If asked is false,
// the client cannot be asked, and client says what happens without an answer.
func firstAnswer[T any](ctx context.Context, patience time.Duration, asked bool,
	client func(context.Context) (T, error), console, kept answering[T],
) (T, error) {
	if console == nil && !asked {
		return client(ctx)
	}
	defer From(ctx).opens()()
	s := &settlement{}
	both, cancel := context.WithCancelCause(context.WithValue(ctx, settlementKey{}, s))
	defer cancel(nil)
	patient, expire := timing.Limit(both, patience, nil)
	defer expire()
	type result struct {
		answer   T
		err      error
		Asked    bool // a person, at the client or the console
		atClient bool
	}
	results := make(chan result, 3)
	open, asking := 0, 0
	ask := func(f func() (T, error), asks, atClient bool) {
		open++
		if asks {
			asking++
		}
		go func() {
			answer, err := f()
			results <- result{answer, err, asks, atClient}
		}()
	}
	if console != nil {
		ask(func() (T, error) { return console(patient, s.Elsewhere) }, true, false)
	}
	if kept != nil {
		ask(func() (T, error) { return kept(both, s.Elsewhere) }, false, false)
	}
	if asked {
		ask(func() (T, error) {
			answer, err := client(both)
			if err == nil && !s.Client() {
				err = errSettled
			}
			return answer, err
		}, true, true)
	}
	var given, failed *result // the first answer, and why the last person asked gave none
	for ; open > 0; open-- {
		switch r := <-results; {
		case r.err == nil:
			given = &r
		case r.Asked:
			asking--
			if failed == nil || r.atClient {
				failed = &r
			}
		}
		if given != nil || asking == 0 {
			cancel(errSettled) // wait for the others, because they use the state of the call
		}
	}
	switch {
	case given != nil:
		if c := From(ctx); c != nil && c.call != nil && !given.atClient {
			c.call.stays = true
		}
		return given.answer, nil
	case !asked && ctx.Err() == nil:
		return client(ctx)
	}
	return failed.answer, failed.err
}

// settlement decides which answer counts if a question can be answered by a client and elsewhere,
// such as at the console: the first. The zero value is an open question.
type settlement struct {
	mu        sync.Mutex
	byClient  bool
	elsewhere atomic.Bool
	// claim takes back the question that a modern client was asked. It is nil until the client has
	// been asked.
	claim func() bool
}

// Elsewhere claims the question for an answer from elsewhere, and reports whether that was the
// first.
func (s *settlement) Elsewhere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byClient || s.elsewhere.Load() || s.claim != nil && !s.claim() {
		return false
	}
	s.elsewhere.Store(true)
	return true
}

// Client claims the question for the client's answer, and reports whether that was the first.
func (s *settlement) Client() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.elsewhere.Load() {
		return false
	}
	s.byClient = true
	return true
}

// asked records that a modern client gets the question in the result of its request. It returns
// false if the question was answered elsewhere before. claim takes the question back from the
// client.
func (s *settlement) asked(claim func() bool) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = claim
	return !s.elsewhere.Load()
}

// wasElsewhere reports whether the question was answered elsewhere.
func (s *settlement) wasElsewhere() bool { return s != nil && s.elsewhere.Load() }

type settlementKey struct{}

// errSettled is the cause with which a question is withdrawn where the answer came too late.
var errSettled = errors.New("the question was answered elsewhere")
