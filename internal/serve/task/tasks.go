// Package task runs calls that outlast the requests of their clients: tasks of the extension of
// revision 2026-07-28, and tasks of revision 2025-11-25 (legacy.go). A task asks its client through
// package question. Other processes are reached only through [Options.Elsewhere], which asks them
// about a task that is not here.
package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// taskTime is how long a task is known, from its creation. One that runs longer is known for a sixth of
	// that after its end.
	taskTime = time.Hour
	// taskPoll is how often clients are told to ask.
	taskPoll = time.Second
	// maxTasks limits the known tasks of a token. A new one replaces the oldest that has ended.
	maxTasks = 100
)

// Tasks are calls in this process that continue after the requests of their clients were answered
// (extension io.modelcontextprotocol/tasks of revision 2026-07-28, and tasks of revision
// 2025-11-25). Create them with [New]. They are safe for concurrent use.
type Tasks struct {
	opts Options

	mu   sync.Mutex
	byID map[string]*Run
}

// Options configure [Tasks]. The zero value is for a single process.
type Options struct {
	// Holder is the id of this process, at the end of the ids of its tasks; see [Holder].
	Holder string
	// Store keeps ended tasks for other processes. It is nil if no other process serves the same
	// clients.
	Store *store.Store
	// Elsewhere asks other processes to answer a request about a task that is not in this one. It
	// returns nil if none has the task. A nil Elsewhere means that there are no other processes.
	Elsewhere func(ctx context.Context, c *question.Client, method string, p *Params) (mcp.Result, error)
}

// New returns an empty set of tasks.
func New(o Options) *Tasks { return &Tasks{opts: o, byID: map[string]*Run{}} }

// Holder returns the holder in the id of a task; "" if the id has none.
func Holder(id string) string {
	_, holder, _ := strings.Cut(id, taskSeparator)
	return holder
}

// taskSeparator is between the parts of the id of a task.
const taskSeparator = "-"

// Run is a call that continues as a task, because its server or that of one of its steps continues
// it, or because its client wants so.
type Run struct {
	is     kept
	id     string
	from   auth.Identity // the latest sender of a request about it; tasks.mu guards it
	call   *question.Call
	result func(any, error) (mcp.Result, error) // converts the outcome of the call
	over   chan struct{}                        // closed at its end

	mu       sync.Mutex // guards the following fields and, but for Account and Created, those of is
	updated  time.Time
	question *question.Question
	pending  mcp.InputRequestMap // unanswered questions
	answers  mcp.InputResponseMap
	// keys maps the keys of all questions so far to the keys that the server or serve gave them: no
	// key may occur twice in a task.
	keys map[string]string
	// asker is the request of a client of 2025-11-25 that carries the questions. If nil, the next
	// request about the task will.
	asker   *question.Client
	changed chan struct{} // closed and replaced when the questions or the asker change
	expiry  *time.Timer
}

// kept is what the store has of a task that has ended.
type kept struct {
	Account string          `json:"account"` // see [auth.Identity.Account]
	Created time.Time       `json:"created"`
	Ended   time.Time       `json:"ended"` // zero while it runs
	Status  string          `json:"status"`
	Value   json.RawMessage `json:"value,omitempty"`   // the result, if there is one
	IsError bool            `json:"isError,omitempty"` // of the result
	Failed  *jsonrpc.Error  `json:"failed,omitempty"`
}

const taskKind = "task"

// errTaskCancelled is the cause with which a client cancels the call of a task.
var errTaskCancelled = errors.New("the client canceled the task")

// Add adds a call of a client as a task. release is called at its end.
func (t *Tasks) Add(ctx context.Context, from auth.Identity, call *question.Call,
	result func(any, error) (mcp.Result, error), release func()) (*Run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	own := 0
	var oldest *Run // that has ended
	for id, other := range t.byID {
		if other.isOver(now) {
			delete(t.byID, id)
		} else if other.is.Account == from.Account() {
			own++
			if !other.runs() && (oldest == nil || other.is.Created.Before(oldest.is.Created)) {
				oldest = other
			}
		}
	}
	switch {
	case own < maxTasks:
	case oldest != nil:
		delete(t.byID, oldest.id)
	default:
		err := fmt.Errorf("%d tasks of this token are running; cancel some, or wait for one of them to end", maxTasks)
		return nil, err
	}
	id := rand.Text()
	if t.opts.Holder != "" {
		id += taskSeparator + t.opts.Holder
	}
	run := &Run{
		is: kept{Account: from.Account(), Created: now, Status: "working"},
		id: id, from: from, call: call, result: result, updated: now,
		over: make(chan struct{}), changed: make(chan struct{}), keys: map[string]string{},
	}
	t.byID[run.id] = run
	go func() {
		defer close(run.over)
		defer release()
		run.follow()
		t.keep(context.WithoutCancel(ctx), run)
	}()
	return run, nil
}

// keep stores a task that has ended until it expires. If that fails, only this process knows it.
func (t *Tasks) keep(ctx context.Context, run *Run) {
	if t.opts.Store == nil {
		return
	}
	run.mu.Lock()
	data, err := json.Marshal(run.is)
	left := run.lifetime() - time.Since(run.is.Created)
	run.mu.Unlock()
	if err == nil {
		_ = t.opts.Store.Put(ctx, taskKind, run.id, data, left)
	}
}

// ended returns an ended task of another process; nil if the sender of the request has no such
// task.
func (t *Tasks) ended(ctx context.Context, id string, from auth.Identity) (*Run, error) {
	if t.opts.Store == nil {
		return nil, nil
	}
	v, err := t.opts.Store.Get(ctx, taskKind, id)
	run := &Run{id: id, from: from, over: make(chan struct{}), changed: make(chan struct{})}
	if err != nil || !v.Exists() || json.Unmarshal(v.Data, &run.is) != nil || run.is.Account != from.Account() {
		return nil, err
	}
	run.updated = run.is.Ended
	close(run.over)
	return run, nil
}

// find returns the task with an id, if it belongs to the sender of a request; otherwise nil. The
// task then continues with the token of the request.
func (t *Tasks) find(id string, from auth.Identity) *Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.byID[id]
	if run == nil || run.is.Account != from.Account() || run.isOver(time.Now()) {
		return nil
	}
	run.from = from
	return run
}

// EndOf cancels and forgets tasks, such as those whose tokens are no longer valid. wait waits until
// they have ended.
func (t *Tasks) EndOf(over func(auth.Identity) bool, cause error) (wait func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended []*Run
	for id, run := range t.byID {
		if over(run.from) {
			delete(t.byID, id)
			run.call.Cancel(cause)
			ended = append(ended, run)
		}
	}
	return func() {
		for _, run := range ended {
			<-run.over
		}
	}
}

// Running returns how many tasks have not ended.
func (t *Tasks) Running() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, run := range t.byID {
		if run.runs() {
			n++
		}
	}
	return n
}

// runs reports whether the task has not ended.
func (r *Run) runs() bool {
	select {
	case <-r.over:
		return false
	default:
		return true
	}
}

// isOver reports whether the task has ended and expired.
func (r *Run) isOver(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.is.Ended.IsZero() && now.After(r.is.Created.Add(r.lifetime()))
}

// lifetime returns how long after its creation the task is known. r.mu is held.
func (r *Run) lifetime() time.Duration {
	until := r.is.Ended
	if until.IsZero() {
		until = time.Now()
	}
	return max(taskTime, until.Sub(r.is.Created)+taskTime/6).Truncate(time.Second)
}

// cancel cancels the call, unless it is over.
func (r *Run) cancel() {
	if r.call != nil {
		r.call.Cancel(errTaskCancelled)
	}
}

// follow updates the state of the task until the call ends.
func (r *Run) follow() {
	for {
		q, o := r.call.Next()
		if o != nil {
			r.end(o)
			return
		}
		r.ask(q)
	}
}

// ask adds a question and waits until the client has answered it.
func (r *Run) ask(q *question.Question) {
	take := func() bool { // at the console
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.question != q {
			return false
		}
		r.working()
		return true
	}
	r.mu.Lock()
	r.question, r.pending, r.answers = q, mcp.InputRequestMap{}, mcp.InputResponseMap{}
	for key, request := range q.Requests {
		unique, n := key, 1
		for _, used := r.keys[unique]; used; _, used = r.keys[unique] {
			n++
			unique = fmt.Sprintf("%s-%d", key, n)
		}
		r.keys[unique], r.pending[unique] = key, request
	}
	r.is.Status, r.updated = "input_required", time.Now()
	r.expiry = time.AfterFunc(question.AnswerTime, func() { r.call.Cancel(question.ErrNoAnswer) })
	r.change()
	r.mu.Unlock()
	if !q.Asked(take) {
		take()
	}
}

// working is called when no question is open any more. r.mu is held.
func (r *Run) working() {
	if r.expiry != nil {
		r.expiry.Stop()
	}
	r.question, r.pending = nil, nil
	r.is.Status, r.updated = "working", time.Now()
	r.change()
}

// change signals that the questions or the asker have changed. r.mu is held.
func (r *Run) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// update records answers, and passes them on once each question of the server has one. Answers to
// other questions are ignored.
func (r *Run) update(answers map[string]json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, raw := range answers {
		if r.pending[key] == nil {
			continue
		}
		one, err := jsonx.Marshal(map[string]json.RawMessage{key: raw})
		var answer mcp.InputResponseMap
		if err == nil {
			err = json.Unmarshal(one, &answer)
		}
		if err != nil || answer[key] == nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: fmt.Sprintf("the answer to %s is malformed", text.Quote(key))}
		}
		r.answer(key, answer[key])
	}
	r.goOn()
	return nil
}

// answer records the answer to a question. A nil answer means that there will be none. r.mu is
// held.
func (r *Run) answer(key string, answer mcp.InputResponse) {
	if answer != nil {
		r.answers[r.keys[key]] = answer
	}
	delete(r.pending, key)
	r.updated = time.Now()
}

// goOn passes the answers on if none is missing. r.mu is held.
func (r *Run) goOn() {
	if r.question != nil && len(r.pending) == 0 {
		r.question.Reply(r.answers)
		r.working()
	}
}

func (r *Run) end(o *question.Outcome) {
	var value []byte
	result, err := r.result(o.Value, o.Err)
	if err == nil {
		value, err = json.Marshal(result)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.working()
	r.is.Ended = r.updated
	failed := r.call.Refused()
	switch refused, isRefused := errors.AsType[*jsonrpc.Error](err); {
	case errors.Is(o.Err, errTaskCancelled):
		r.is.Status = "cancelled"
	case failed != nil:
		r.is.Status, r.is.Failed = "failed", failed
	case isRefused:
		r.is.Status, r.is.Failed = "failed", refused
	case err != nil:
		r.is.Status, r.is.Failed = "failed", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	default:
		r.is.Status, r.is.Value, r.is.IsError = "completed", value, string(jsonx.Get(value, "isError")) == "true"
	}
}

// taskState is the state of a task as clients get it.
type taskState struct {
	mcp.ResultBase
	Type     string              `json:"resultType"`
	ID       string              `json:"taskId"`
	Status   string              `json:"status"`
	Created  time.Time           `json:"createdAt"`
	Updated  time.Time           `json:"lastUpdatedAt"`
	TTL      int64               `json:"ttlMs"`
	Poll     int64               `json:"pollIntervalMs"`
	Requests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result   json.RawMessage     `json:"result,omitempty"`
	Error    *jsonrpc.Error      `json:"error,omitempty"`
	isError  bool                // of the result
}

// state returns the state, with what the task asks and its result.
func (r *Run) state() *taskState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &taskState{
		Type: "complete", ID: r.id, Status: r.is.Status, Created: r.is.Created.UTC(), Updated: r.updated.UTC(),
		TTL: r.lifetime().Milliseconds(), Poll: taskPoll.Milliseconds(),
		Requests: maps.Clone(r.pending), Result: r.is.Value, Error: r.is.Failed, isError: r.is.IsError,
	}
}

// Created is the answer to a call that continues as a task.
type Created struct {
	mcp.ResultBase
	task   *Run
	legacy bool // the client is one of 2025-11-25
}

// Created returns the answer to a call of a client that continues as the task.
func (r *Run) Created(c *question.Client) *Created {
	return &Created{task: r, legacy: c.KnowsLegacyTasks()}
}

// MarshalJSON implements json.Marshaler.
func (c *Created) MarshalJSON() ([]byte, error) {
	if c.legacy {
		return json.Marshal(map[string]any{"task": c.task.legacyState()})
	}
	state := c.task.state()
	state.Type, state.Requests, state.Result, state.Error = "task", nil, nil, nil
	return json.Marshal(state)
}

// Params are the params of requests about tasks.
type Params struct {
	mcp.ParamsBase
	ID      string                     `json:"taskId"`
	Answers map[string]json.RawMessage `json:"inputResponses,omitempty"`
	wrong   string                     // what is malformed in them; "" if nothing is
}

// UnmarshalJSON implements json.Unmarshaler. It leaves refusing malformed params to [Tasks.AddTo],
// because the SDK's error would name types of this package. Member names are case-sensitive here as
// well, because [Same] has compared the id with a header.
func (p *Params) UnmarshalJSON(data []byte) error {
	meta, id, answers := jsonx.Get(data, "_meta"), jsonx.Get(data, "taskId"), jsonx.Get(data, "inputResponses")
	*p = Params{}
	switch {
	case jsonx.KindOf(data) != jsonx.Object:
		p.wrong = "params must be an object"
	case meta != nil && json.Unmarshal(meta, &p.Meta) != nil:
		p.wrong = "_meta must be an object"
	case id != nil && json.Unmarshal(id, &p.ID) != nil:
		p.wrong = "taskId must be a string"
	case answers != nil && json.Unmarshal(answers, &p.Answers) != nil:
		p.wrong = "inputResponses must be an object"
	}
	return nil
}

// acknowledged is the empty answer to a request.
type acknowledged struct {
	mcp.ResultBase
	Type string `json:"resultType"`
}

// AddTo adds the methods of the extension, and those of revision 2025-11-25, to the SDK's
// server.
func (t *Tasks) AddTo(server *mcp.Server) {
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/result", listMethod} {
		_ = mcp.AddReceivingCustomMethod(server, method,
			func(ctx context.Context, _ *mcp.ServerSession, p *Params) (mcp.Result, error) {
				c := question.From(ctx)
				lists := method == listMethod && c != nil && !c.Modern && c.From.Name != caller.Local
				switch {
				case c == nil || !c.Modern && !c.KnowsLegacyTasks() || !lists && answerOf(method, c.Modern) == nil:
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
				case c.Modern && !c.KnowsTasks():
					return nil, NeedsExtension()
				case p.wrong != "":
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: p.wrong}
				case lists:
					return t.listLegacy(c), nil
				}
				return t.about(ctx, c, method, p)
			}) // only names of the protocol are errors
	}
}

// listMethod is the request of clients of 2025-11-25 that lists their tasks.
const listMethod = "tasks/list"

// answerOf returns the function that answers a request about a task, for clients of 2026-07-28 if
// modern is set, else of 2025-11-25. It returns nil if the revision has no such request.
func answerOf(method string, modern bool) func(context.Context, *Run, *Params) (mcp.Result, error) {
	switch {
	case method == "tasks/get" && modern:
		return func(_ context.Context, run *Run, _ *Params) (mcp.Result, error) { return run.state(), nil }
	case method == "tasks/get":
		return func(_ context.Context, run *Run, _ *Params) (mcp.Result, error) { return run.legacyState(), nil }
	case method == "tasks/update" && modern:
		return func(_ context.Context, run *Run, p *Params) (mcp.Result, error) {
			return &acknowledged{Type: "complete"}, run.update(p.Answers)
		}
	case method == "tasks/cancel" && modern:
		return func(_ context.Context, run *Run, _ *Params) (mcp.Result, error) {
			run.cancel()
			return &acknowledged{Type: "complete"}, nil
		}
	case method == "tasks/cancel":
		return cancelLegacy
	case method == "tasks/result" && !modern:
		return awaitLegacy
	}
	return nil
}

// about answers a request about a task, which may have ended or be in another process.
func (t *Tasks) about(ctx context.Context, c *question.Client,
	method string, p *Params) (result mcp.Result, err error) {
	if answer := t.Here(c, method, p); answer != nil {
		return answer(ctx)
	}
	run, err := t.ended(ctx, p.ID, c.From)
	if run != nil {
		return answerOf(method, c.Modern)(ctx, run, p)
	}
	if err == nil && t.opts.Elsewhere != nil {
		result, err = t.opts.Elsewhere(ctx, c, method, p)
	}
	switch {
	case err != nil:
		return nil, ProtocolError(err)
	case result == nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "there is no such task; it may have ended long ago, or with its process"}
	}
	return result, nil
}

// Here returns the function that answers a request about a task in this process. It returns nil if
// the client has no such task here, or there is no such request.
func (t *Tasks) Here(c *question.Client, method string, p *Params) func(context.Context) (mcp.Result, error) {
	answer, run := answerOf(method, c.Modern), t.find(p.ID, c.From)
	if answer == nil || run == nil {
		return nil
	}
	return func(ctx context.Context) (mcp.Result, error) { return answer(ctx, run, p) }
}

// ProtocolError converts an error to one of the protocol.
func ProtocolError(err error) *jsonrpc.Error {
	if is, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return is
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// NeedsExtension is the error for a client that has to declare the extension.
func NeedsExtension() error {
	// Marshal cannot fail here.
	data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": wire.Extensions()}})
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "the request needs a client with the extension " + wire.TasksExtension, Data: data,
	}
}

// Same reports whether a message about a task and the header of its HTTP request name the same
// task.
func Same(header string, body json.RawMessage) bool {
	method, _ := jsonx.Text(jsonx.Get(body, "method"))
	id, _ := jsonx.Text(jsonx.Get(jsonx.Get(body, "params"), "taskId"))
	return header == id || answerOf(method, true) == nil
}
