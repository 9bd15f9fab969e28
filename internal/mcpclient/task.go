package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// The states of a task (revision 2025-11-25, tasks; extension io.modelcontextprotocol/tasks of
// 2026-07-28).
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

const (
	// pollEvery is how often a task is polled if its server does not say. What the server says is
	// limited to the range from pollMin to pollMax.
	pollEvery = time.Second
	pollMin   = 100 * time.Millisecond
	pollMax   = 30 * time.Second
	// cancelWithin is how long a server may take to cancel a task.
	cancelWithin = 2 * time.Second
	// maxTaskRounds is how often a task may ask for more input.
	maxTaskRounds = 50
	// maxTaskID is the longest id of a task in bytes, since ids are stored.
	maxTaskID = 1 << 10
)

// task is a call that continues after its request was answered.
type task struct {
	id, status, message string
	poll                time.Duration
	legacy              bool            // of revision 2025-11-25
	raw                 json.RawMessage // with its result, its error or its questions
}

// taskOf reads an answer of tools/call. It returns nil if the answer is not a task.
func taskOf(raw json.RawMessage) (*task, error) {
	if kind, _ := jsonx.Text(jsonx.Get(raw, "resultType")); kind == "task" {
		return readTask(raw, false)
	}
	if nested := jsonx.Get(raw, "task"); jsonx.KindOf(nested) == jsonx.Object && jsonx.Get(raw, "content") == nil {
		return readTask(nested, true)
	}
	return nil, nil
}

func readTask(raw json.RawMessage, legacy bool) (*task, error) {
	t := &task{legacy: legacy, raw: raw, poll: pollEvery}
	t.id, _ = jsonx.Text(jsonx.Get(raw, "taskId"))
	t.status, _ = jsonx.Text(jsonx.Get(raw, "status"))
	t.message, _ = jsonx.Text(jsonx.Get(raw, "statusMessage"))
	name := "pollIntervalMs"
	if legacy {
		name = "pollInterval"
	}
	var ms float64
	if json.Unmarshal(jsonx.Get(raw, name), &ms) == nil && ms > 0 {
		t.poll = min(max(time.Duration(min(ms, 1e9))*time.Millisecond, pollMin), pollMax)
	}
	switch {
	case t.id == "":
		return nil, &ask.InputError{Reason: "the server answered with a task that has no id"}
	case len(t.id) > maxTaskID:
		return nil, &ask.InputError{
			Reason: fmt.Sprintf("the server answered with a task whose id is longer than %d bytes", maxTaskID)}
	}
	return t, nil
}

// The values of [TaskSupport].
const (
	TaskOptional = "optional"
	TaskRequired = "required"
)

// TaskSupport returns whether a tool can or must be called as a task; "" if it cannot (revision
// 2025-11-25, tasks, "Tool-Level Negotiation").
func TaskSupport(d *registry.Definition) string {
	if support, _ := jsonx.Text(jsonx.Get(d.MCP.Execution, "taskSupport")); support == TaskOptional ||
		support == TaskRequired {
		return support
	}
	return ""
}

// await waits for the end of a task and returns the result of its call. Meanwhile it answers the
// task's questions. If ctx ends first, it asks the server to cancel the task.
func (q *requester) await(ctx context.Context, sess *session, r *request, t *task) (json.RawMessage, error) {
	if r.detach != nil {
		remote := registry.RemoteTask{ID: t.id, Legacy: t.legacy}
		if sess.kept != nil {
			remote.Started, remote.Socket = sess.kept.Since, sess.kept.Socket
		}
		if err := r.detach(remote); err != nil {
			return nil, err
		}
		r.detached = true
		return json.RawMessage(`{"content":[]}`), nil
	}
	peer := r.asked.Peer()
	peer.Continues(nil)
	if t.status != taskWorking { // details of other states come only with tasks/get
		t.status, t.poll = taskWorking, 0
	}
	raw, err := q.follow(ctx, sess, r, t)
	_, gaveUp := errors.AsType[*ask.InputError](err)
	if gaveUp || ctx.Err() != nil {
		within, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
		defer stop()
		_, _ = sess.task(within, "tasks/cancel", t, nil, nil) // the call is over, whatever the answer
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		peer.Continues(refused)
	}
	return raw, err
}

func (q *requester) follow(ctx context.Context, sess *session, r *request, t *task) (json.RawMessage, error) {
	id, legacy, round, shown, answered := t.id, t.legacy, 0, "", map[string]bool{}
	for {
		asks := unanswered(t, answered)
		if r.progress != nil && t.message != shown {
			shown = t.message
			r.progress(registry.Progress{Message: text.Valid(text.Head(shown, maxMessage))})
		}
		switch {
		case t.status == taskCompleted && !legacy:
			return resultOf(jsonx.Get(t.raw, "result"))
		case legacy && (t.status == taskCompleted || t.status == taskFailed || t.status == taskInput):
			raw, err := sess.task(ctx, "tasks/result", t, nil, r.asked) // the server asks by requests meanwhile
			if err == nil {
				raw, err = resultOf(raw)
			}
			if err == nil && t.status == taskFailed {
				raw = t.failure(raw)
			}
			return raw, err
		case t.status == taskFailed:
			failed := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: t.reason("the task failed")}
			_ = json.Unmarshal(jsonx.Get(t.raw, "error"), failed)
			return nil, failed
		case t.status == taskCancelled:
			return nil, &ask.InputError{Reason: t.reason("the server cancelled the task")}
		case t.status == taskWorking || t.status == taskInput && asks == nil:
			_ = timing.Pause(ctx, t.poll)
		case t.status == taskInput && round >= maxTaskRounds:
			return nil, &ask.InputError{
				Reason: fmt.Sprintf("its task asked for input more than %d times", maxTaskRounds),
			}
		case t.status == taskInput:
			answers, err := q.inputs(ctx, r, asks, round)
			if err != nil {
				return nil, err
			}
			round++
			if _, err := sess.task(ctx, "tasks/update", t, answers, r.asked); err != nil {
				return nil, err
			}
		default:
			return nil, &ask.InputError{
				Reason: "its task is in an unknown state: " + text.Quote(text.Head(t.status, 40)),
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		raw, err := sess.task(ctx, "tasks/get", t, nil, r.asked)
		if err != nil {
			return nil, err
		}
		if t, err = readTask(raw, legacy); err != nil {
			return nil, err
		}
		if t.id != id {
			return nil, &ask.InputError{Reason: "the server answered with a task other than the one it was asked for"}
		}
	}
}

// reason describes what happened to a task, including the server's message.
func (t *task) reason(what string) string {
	if t.message == "" {
		return what
	}
	return what + ": " + text.Head(t.message, maxMessage)
}

// failure returns the result of a task that failed. Servers of the Python SDK have an empty one if the tool raised
// an error, which they give as the task's message, and others do not mark it as an error.
func (t *task) failure(raw json.RawMessage) json.RawMessage {
	if content.Result("", raw).IsError {
		return raw
	}
	result, err := jsonx.Parse(raw, jsonx.Options{})
	if err != nil { // cannot happen: it was received as JSON
		return raw
	}
	result.Set("isError", jsonx.NewBool(true))
	if blocks := result.Get("content"); !blocks.Is(jsonx.Array) || len(blocks.Items) == 0 {
		result.Set("content", jsonx.NewArray(jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("text")),
			jsonx.NewMember("text", jsonx.NewString(t.reason("the task failed"))))))
	}
	return result.JSON()
}

// unanswered returns the questions of a modern task in state input_required whose keys are not in
// answered, and adds their keys; nil if there are none. A key identifies one question for the life
// of a task, and a server may keep showing it for a while after the answer.
func unanswered(t *task, answered map[string]bool) json.RawMessage {
	requests := jsonx.Get(t.raw, "inputRequests")
	switch {
	case t.status != taskInput:
		return nil
	case !jsonx.IsNull(requests) && jsonx.KindOf(requests) != jsonx.Object:
		return t.raw // inputs reports it
	}
	var open []byte
	for key, request := range jsonx.Members(requests) {
		if !answered[key] {
			answered[key] = true
			open = append(append(append(append(open, ','), jsonx.Quote(key)...), ':'), request...)
		}
	}
	if open == nil {
		return nil
	}
	return slices.Concat([]byte(`{"inputRequests":{`), open[1:], []byte(`}}`))
}

// resultOf returns the result of a task, which must not be another task.
func resultOf(raw json.RawMessage) (json.RawMessage, error) {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil, &ask.InputError{Reason: "its task ended without a result"}
	}
	if t, err := taskOf(raw); t != nil || err != nil {
		return nil, &ask.InputError{Reason: "its task ended with another task"}
	}
	return raw, nil
}

// task makes a request about a task; members are added to its params.
func (c *session) task(ctx context.Context, method string, t *task,
	members json.RawMessage, asked *ask.Request) (json.RawMessage, error) {
	params := json.RawMessage(`{"taskId":` + jsonx.Quote(t.id) + `}`)
	return c.wire.Do(ctx, &wire.Request{Method: method, Params: withMembers(params, members), Name: t.id, Asked: asked})
}

// TaskEnded reports whether a task in a state has ended.
func TaskEnded(state string) bool {
	return state == taskCompleted || state == taskFailed || state == taskCancelled
}

// ErrServerEnded reports that the process of the server that had a task has ended.
var ErrServerEnded = errors.New("its server has ended")

// TaskState returns the state of a task, such as working, and the server's message about it.
func (s *Source) TaskState(ctx context.Context, of registry.RemoteTask) (state, message string, err error) {
	err = s.withTask(ctx, of, func(ctx context.Context, sess *session, t *task) error {
		raw, err := sess.task(ctx, "tasks/get", t, nil, nil)
		if err := s.requests.answerError(ctx, sess, "tasks/get", raw, err); err != nil {
			return err
		}
		if t, err = readTask(raw, of.Legacy); err != nil {
			return s.opts.errorf("tasks/get", nil, err.Error())
		}
		state, message = t.status, text.Valid(text.Head(t.message, maxMessage))
		return nil
	})
	return state, message, err
}

// CancelTask asks the server to cancel a task.
func (s *Source) CancelTask(ctx context.Context, of registry.RemoteTask) error {
	return s.withTask(ctx, of, func(ctx context.Context, sess *session, t *task) error {
		raw, err := sess.task(ctx, "tasks/cancel", t, nil, nil)
		return s.requests.answerError(ctx, sess, "tasks/cancel", raw, err)
	})
}

// AwaitTask waits for the result of a task of a tool, as a call does, but does not cancel the
// task if ctx ends first. At a time limit the error is the cause of ctx.
func (s *Source) AwaitTask(ctx context.Context, of registry.RemoteTask, tool *registry.Definition,
	progress func(registry.Progress)) (r registry.Result, err error) {
	start, name := time.Now(), tool.ServerTool
	err = s.withTask(ctx, of, func(ctx context.Context, sess *session, t *task) error {
		request := &request{method: "tools/call", name: name, progress: progress,
			asked: ask.NewRequest(ctx, "tool "+text.Quote(name))}
		raw, err := s.requests.follow(ctx, sess, request, t)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return context.Cause(ctx)
		case err != nil:
			r, err = s.requests.callFailed(ctx, sess, name, start, err)
			return err
		}
		r = registry.NewOutputValidator(tool.OutputSchema).CheckResult(ctx, content.Result(name, raw))
		return nil
	})
	return r, err
}

// withTask calls f for a task in a session with its server. The error may be [ErrServerEnded].
func (s *Source) withTask(ctx context.Context, of registry.RemoteTask,
	f func(context.Context, *session, *task) error) error {
	if !of.Started.IsZero() {
		runs, err := keep.Runs(ctx, of.Socket, of.Started)
		switch {
		case err != nil:
			return s.opts.errorf("tasks/get", err,
				"looking for the process of the server that has the task: "+text.Escape(err.Error()))
		case !runs:
			return ErrServerEnded
		}
	}
	sess, err := s.pool.live(ctx)
	if err != nil {
		return err
	}
	switch { // another process may have given its id to another task
	case of.Started.IsZero():
	case sess.kept == nil:
		return s.opts.errorf("tasks/get", nil,
			"the task is in the process of the server that is kept, and this run has started its own")
	case !sess.kept.Since.Equal(of.Started):
		return s.opts.errorf("tasks/get", nil,
			"the task is in a kept process of the server that was started with other environment variables or settings, or in another project; look at the task from there")
	}
	ctx, done, err := sess.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return f(ctx, sess, &task{id: of.ID, legacy: of.Legacy, status: taskWorking})
}
