package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
)

// A request about a task is answered by the replica that has the task, wherever the client's
// session is. It is relayed with the method of the request, which no request over HTTP can have,
// in place of that of HTTP. The answer is a stream of events: what the task asks the client, and
// in the end the result.

// taskEvent is an event of the answer to a request about a task. One with neither result nor error
// says what the client is asked now; without a question, nothing any more.
type taskEvent struct {
	Questions mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
	Error     *jsonrpc.Error      `json:"error,omitempty"`
}

// askAboutTask has a request about a task answered by the replica that has it; nil: none has.
func (r *replica) askAboutTask(ctx context.Context, c *client, method string, p *taskParams) (mcp.Result, error) {
	_, to, _ := strings.Cut(p.ID, taskSeparator)
	body, err := json.Marshal(taskRequest{method, &taskParams{ID: p.ID, Answers: p.Answers}})
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(2 * alive); to != r.id; {
		if is, err := r.lives(ctx, to); err != nil || !is {
			return nil, err
		}
		answer := &taskAnswer{header: http.Header{}, replica: r, to: to, client: c}
		err := r.relay(ctx, answer, method, http.Header{"Mcp-Protocol-Version": {c.revision}}, c.from, to, body)
		answer.settle()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errElsewhereNow):
			return nil, nil
		case errors.Is(err, errNotThere) && time.Now().Before(deadline): // it connects again, or ends
		case err != nil:
			return nil, err
		case answer.last.Error != nil:
			return nil, answer.last.Error
		case answer.last.Result == nil:
			return nil, errLost
		default:
			result := &answeredElsewhere{}
			return result, json.Unmarshal(answer.last.Result, &result.members)
		}
		if err := pause(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// answeredElsewhere is the result of another replica.
type answeredElsewhere struct {
	mcp.ResultBase
	members map[string]json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (a *answeredElsewhere) MarshalJSON() ([]byte, error) {
	all := maps.Clone(a.members)
	if len(a.Meta) > 0 {
		meta, err := json.Marshal(a.Meta)
		if err != nil {
			return nil, err
		}
		all["_meta"] = meta
	}
	return json.Marshal(all)
}

// taskAnswer receives the answer of another replica, and asks the client what it asks. It
// implements http.ResponseWriter.
type taskAnswer struct {
	replica *replica
	to      string
	client  *client
	header  http.Header
	rest    []byte // of an event that has not arrived in full
	last    taskEvent
	asking  context.CancelFunc // withdraws what the client is asked; nil: it is asked nothing
}

// Header implements http.ResponseWriter.
func (a *taskAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *taskAnswer) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (a *taskAnswer) Write(p []byte) (int, error) {
	a.rest = append(a.rest, p...)
	for {
		line, rest, whole := bytes.Cut(a.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		a.rest = rest
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if err := a.event(data); err != nil {
				return 0, err
			}
		}
	}
}

func (a *taskAnswer) event(data []byte) error {
	a.last = taskEvent{}
	if err := json.Unmarshal(data, &a.last); err != nil {
		return err
	}
	a.settle()
	until, cancel := context.WithCancel(a.client.request)
	a.asking = cancel
	for id, q := range a.last.Questions {
		go func() {
			answers := mcp.InputResponseMap{}
			if answer, err := a.client.send(until, q); err == nil {
				answers[id] = answer
			}
			if body, err := json.Marshal(answers); err == nil && until.Err() == nil {
				_ = a.replica.send(until, a.to, &relayMessage{Kind: relayAnswer, ID: id, body: body}) // without it, the task waits on
			}
		}()
	}
	return nil
}

// settle withdraws what the client is asked.
func (a *taskAnswer) settle() {
	if a.asking != nil {
		a.asking()
	}
}

// answered passes the answer of another replica's client on to the request that waits for it.
func (r *replica) answered(m *relayMessage) {
	var answers mcp.InputResponseMap
	if json.Unmarshal(m.body, &answers) != nil {
		answers = nil
	}
	if waits, ok := r.asked.LoadAndDelete(m.ID); ok {
		waits.(chan mcp.InputResponse) <- answers[m.ID] // it has room for one
	}
}

// relayedAboutTask answers a request about a task that arrived at another replica. It reports
// false, and does nothing, if the sender has no such task here.
func (h *HTTP) relayedAboutTask(w *relayWriter, m *relayMessage, from identity) bool {
	var is taskRequest
	if json.Unmarshal(m.body, &is) != nil || is.Method != m.Method || is.Params == nil {
		return false
	}
	run := h.server.tasks.find(is.Params.ID, from)
	revision := m.Header.Get("Mcp-Protocol-Version")
	c := &client{from: from, revision: revision, modern: revision >= firstModern, elsewhere: w}
	if run == nil || taskMethodOf(m.Method).of(c) == nil {
		return false
	}
	h.calls.Add(1)
	defer h.calls.Add(-1)
	ctx, done := h.requests.add(w.ctx, from)
	defer done()
	w.header.Set("Content-Type", "text/event-stream")
	var last taskEvent
	result, err := taskMethodOf(m.Method).of(c)(caller.With(ctx, &caller.Caller{Peer: c}), run, is.Params)
	if err == nil {
		last.Result, err = json.Marshal(result)
	}
	if err != nil {
		last.Error = asProtocolError(err)
	}
	w.event(last)
	return true
}

// ask asks the client of the request a question at its replica.
func (w *relayWriter) ask(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	id, answer := rand.Text(), make(chan mcp.InputResponse, 1)
	w.replica.asked.Store(id, answer)
	defer w.replica.asked.Delete(id)
	w.event(taskEvent{Questions: mcp.InputRequestMap{id: q}})
	select {
	case a := <-answer:
		if a == nil {
			return nil, errors.New("the client did not answer")
		}
		return a, nil
	case <-ctx.Done():
		w.event(taskEvent{})
		return nil, context.Cause(ctx)
	}
}

// event sends an event. If that fails, the request is canceled.
func (w *relayWriter) event(e taskEvent) {
	if data, err := json.Marshal(e); err == nil {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
}
