package replica

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/timing"
)

// A request about a task is answered by the replica that has the task, wherever the client's
// session is. That replica answers the other with events: what the task asks the client, and
// finally the result. The client's answers are sent in a request of their own.

const (
	tasksPath   = "/tasks"
	answersPath = "/answers/" // and the id of the question
)

type taskRequest struct {
	Method   string                     `json:"method"`
	Revision string                     `json:"revision"` // of the client
	ID       string                     `json:"taskId"`
	Answers  map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// taskEvent is an event in the answer to a [taskRequest]. An event with neither result nor error
// has the question that is open now; if it has no question, none is.
type taskEvent struct {
	Questions mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
	Error     *jsonrpc.Error      `json:"error,omitempty"`
}

// AskAboutTask asks the other replica that has a task for the answer to a request about it. It
// returns nil if none has it; see [task.Options].
func (r *Replica) AskAboutTask(ctx context.Context, c *question.Client, method string,
	p *task.Params) (mcp.Result, error) {
	id := task.Holder(p.ID)
	for deadline := time.Now().Add(2 * cluster.Alive); id != r.ID; {
		to, err := r.Find(ctx, id)
		if err != nil || to == (cluster.Peer{}) {
			return nil, err
		}
		result, err := r.askPeer(ctx, c, to, taskRequest{method, c.Revision, p.ID, p.Answers})
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, cluster.ErrRefused):
			return nil, nil
		case !errors.Is(err, cluster.ErrNotThere) || time.Now().After(deadline):
			return result, err
		}
		if err := timing.Pause(ctx, lookAgain); err != nil { // it answers again, or ends
			return nil, err
		}
	}
	return nil, nil
}

// askPeer sends a request about a task to the replica that has it, and asks the client what that
// replica wants to know.
func (r *Replica) askPeer(ctx context.Context, c *question.Client, to cluster.Peer,
	about taskRequest) (mcp.Result, error) {
	answer, err := r.post(ctx, to, tasksPath, c.From, about)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var asking sync.WaitGroup
	defer asking.Wait()
	settle := func() {} // withdraws the client's question
	defer func() { settle() }()
	for events := json.NewDecoder(answer.Body); ; {
		var event taskEvent
		switch err := events.Decode(&event); {
		case err != nil:
			return nil, errInterrupted
		case event.Error != nil:
			return nil, event.Error
		case event.Result != nil:
			result := &task.Raw{}
			return result, json.Unmarshal(event.Result, result)
		}
		settle()
		until, cancel := context.WithCancel(c.Request)
		settle = cancel
		for id, q := range event.Questions {
			asking.Go(func() {
				given := mcp.InputResponseMap{}
				if a, err := c.Send(until, q); err == nil {
					given[id] = a
				}
				if until.Err() != nil {
					return
				}
				if got, err := r.post(until, to, answersPath+id, c.From, given); err == nil {
					_ = got.Body.Close() // after an error, the task keeps waiting
				}
			})
		}
	}
}

// post sends a client's request to another replica.
func (r *Replica) post(ctx context.Context, to cluster.Peer, path string, from auth.Identity,
	body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	tellSender(req.Header, from)
	answer, err := r.Send(req, to)
	if err == nil && answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, errInterrupted
	}
	return answer, err
}

// aboutTask answers a request about a task that arrived at another replica. If the sender has no
// such task here, it does nothing and returns false.
func (r *Replica) aboutTask(in *transport.Inbound) bool {
	var is taskRequest
	if err := json.Unmarshal(in.Body, &is); err != nil {
		http.Error(in.W, err.Error(), http.StatusBadRequest)
		return true
	}
	done, err := r.opts.Begin(in)
	if err != nil {
		return false
	}
	defer done()
	events := &taskEvents{to: json.NewEncoder(in.W), flush: http.NewResponseController(in.W).Flush, asked: &r.asked}
	ctx := question.WithRemote(in.R.Context(), in.From, is.Revision, events.ask)
	answer := r.opts.Tasks.Here(question.From(ctx), is.Method, &task.Params{ID: is.ID, Answers: is.Answers})
	if answer == nil {
		return false
	}
	events.write(taskEvent{}) // the headers
	var last taskEvent
	result, err := answer(ctx)
	if err == nil {
		last.Result, err = json.Marshal(result)
	}
	if err != nil {
		last.Error = task.ProtocolError(err)
	}
	events.write(last)
	return true
}

// taskEvents writes the answer to a request about a task that arrived at another replica.
type taskEvents struct {
	asked *sync.Map // as in [Replica]

	mu    sync.Mutex
	to    *json.Encoder
	flush func() error
}

// write sends an event. An error also ends the request.
func (t *taskEvents) write(e taskEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.to.Encode(e)
	_ = t.flush()
}

// ask asks the client of the request a question, through its replica.
func (t *taskEvents) ask(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	id, answer := rand.Text(), make(chan mcp.InputResponse, 1)
	t.asked.Store(id, answer)
	defer t.asked.Delete(id)
	t.write(taskEvent{Questions: mcp.InputRequestMap{id: q}})
	select {
	case a := <-answer:
		if a == nil {
			return nil, errors.New("the client did not answer")
		}
		return a, nil
	case <-ctx.Done():
		t.write(taskEvent{})
		return nil, context.Cause(ctx)
	}
}

// passAnswer passes the answer of another replica's client to the request that waits for it. It
// returns false if none does.
func (r *Replica) passAnswer(id string, body json.RawMessage) bool {
	waits, ok := r.asked.LoadAndDelete(id)
	if ok {
		var answers mcp.InputResponseMap
		_ = json.Unmarshal(body, &answers)            // invalid JSON counts as no answer
		waits.(chan mcp.InputResponse) <- answers[id] // it has room for one
	}
	return ok
}
