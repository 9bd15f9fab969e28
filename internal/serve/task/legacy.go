package task

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/timing"
)

// Related is the member of _meta that names the task that something belongs to.
const Related = "io.modelcontextprotocol/related-task"

// initialized is the answer to initialize, with capabilities that the SDK does not declare.
type initialized struct {
	*mcp.InitializeResult
	tasks map[string]any // the declared capability, if the client can have tasks
}

// Declare declares tasks to a client that may know them. Without tokens, tasks cannot be listed,
// because those of different clients cannot be told apart.
func Declare(result *mcp.InitializeResult, who auth.Identity) initialized {
	if result.ProtocolVersion != wire.LastLegacy {
		return initialized{result, nil}
	}
	tasks := map[string]any{"cancel": struct{}{},
		"requests": map[string]any{"tools": map[string]any{"call": struct{}{}}}}
	if who.Name != caller.Local {
		tasks["list"] = struct{}{}
	}
	return initialized{result, tasks}
}

func (i initialized) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(i.InitializeResult)
	if err != nil || i.tasks == nil {
		return data, err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if capabilities, ok := all["capabilities"].(map[string]any); ok {
		capabilities["tasks"] = i.tasks
	}
	return json.Marshal(all)
}

// legacyTask is the state of a task in the form of revision 2025-11-25.
type legacyTask struct {
	mcp.ResultBase
	ID      string    `json:"taskId"`
	Status  string    `json:"status"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"lastUpdatedAt"`
	TTL     int64     `json:"ttl"`          // in ms
	Poll    int64     `json:"pollInterval"` // in ms
}

// legacyState returns the state of the task. If the result of the call is an error, the task has
// failed.
func (r *Run) legacyState() *legacyTask {
	s := r.state()
	if s.isError {
		s.Status = "failed"
	}
	return &legacyTask{ID: s.ID, Status: s.Status, Created: s.Created, Updated: s.Updated, TTL: s.TTL, Poll: s.Poll}
}

type legacyTasks struct {
	mcp.ResultBase
	Tasks []*legacyTask `json:"tasks"`
}

// listLegacy returns the tasks of a client, oldest first.
func (t *Tasks) listLegacy(c *question.Client) *legacyTasks {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := &legacyTasks{Tasks: []*legacyTask{}}
	for _, run := range t.byID {
		if run.is.Account == c.From.Account() && !run.isOver(time.Now()) {
			out.Tasks = append(out.Tasks, run.legacyState())
		}
	}
	slices.SortFunc(out.Tasks, func(a, b *legacyTask) int { return a.Created.Compare(b.Created) })
	return out
}

// cancelLegacy cancels a task and waits until it has ended.
func cancelLegacy(ctx context.Context, run *Run, _ *Params) (mcp.Result, error) {
	run.cancel()
	select {
	case <-run.over:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	state := run.legacyState()
	if state.Status != "cancelled" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("the task has ended already (%s)", state.Status)}
	}
	return state, nil
}

// awaitLegacy waits for the end of a task and returns the result of the call. Meanwhile it asks the
// client the task's questions (revision 2025-11-25, tasks, "Input Required Status"), unless a later
// request does: the client may have lost the connection of this one.
func awaitLegacy(ctx context.Context, run *Run, _ *Params) (mcp.Result, error) {
	c := question.From(ctx)
	run.askBy(nil, c)
	defer run.askBy(c, nil)
	for {
		questions, changed := run.take(c)
		if len(questions) > 0 {
			until, stop := timing.Until(ctx, changed, nil)
			run.askLegacy(until, c, questions)
			stop()
		}
		select {
		case <-run.over:
			return run.legacyResult()
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// askBy makes next the request that carries the task's questions, in place of before. A nil next
// means the next request about the task. A nil before means whichever request carries them now; any
// other before must be that request, or askBy does nothing.
func (r *Run) askBy(before, next *question.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before == nil || r.asker == before {
		r.asker = next
		r.change()
	}
}

// take returns the questions of the task, unless another request carries them, and the channel that
// is closed when that changes.
func (r *Run) take(c *question.Client) (mcp.InputRequestMap, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asker == nil {
		r.asker = c
	}
	if r.asker != c {
		return nil, r.changed
	}
	return maps.Clone(r.pending), r.changed
}

// askLegacy asks a client questions until ctx is done. A question that the client answers with an
// error stays unanswered.
func (r *Run) askLegacy(ctx context.Context, c *question.Client, questions mcp.InputRequestMap) {
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		q := questions[key]
		if params, ok := q.(mcp.Params); ok {
			params.SetMeta(r.related(params.GetMeta()))
		}
		answer, err := c.Send(ctx, q)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			answer = nil
		}
		r.mu.Lock()
		if r.pending[key] != nil {
			r.answer(key, answer)
			r.goOn()
		}
		r.mu.Unlock()
	}
}

// related adds the name of the task to metadata.
func (r *Run) related(meta mcp.Meta) mcp.Meta {
	out := mcp.Meta{}
	maps.Copy(out, meta)
	out[Related] = map[string]any{"taskId": r.id}
	return out
}

// legacyResult returns the result of the call once it is over. It names the task.
func (r *Run) legacyResult() (mcp.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.is.Value != nil:
		out := &Raw{}
		err := json.Unmarshal(r.is.Value, out)
		out.Meta = r.related(out.Meta)
		return out, err
	case r.is.Failed != nil:
		return nil, r.is.Failed
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the task was canceled"}
}

// Raw is a result as JSON. Only its metadata can be changed.
type Raw struct {
	mcp.ResultBase
	members map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Raw) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, &r.members)
	r.Meta = transport.MetaOf(r.members["_meta"])
	return err
}

// MarshalJSON implements json.Marshaler.
func (r *Raw) MarshalJSON() ([]byte, error) {
	all := map[string]json.RawMessage{}
	maps.Copy(all, r.members)
	if len(r.Meta) > 0 {
		meta, err := json.Marshal(r.Meta)
		if err != nil {
			return nil, err
		}
		all["_meta"] = meta
	}
	return json.Marshal(all)
}
