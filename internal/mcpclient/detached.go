package mcpclient

import (
	"context"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// TaskEnded reports whether a task in a state has ended.
func TaskEnded(state string) bool {
	return state == taskCompleted || state == taskFailed || state == taskCancelled
}

// ErrServerEnded reports that the process of the server that had a task has ended.
var ErrServerEnded = errors.New("its server has ended")

// TaskState returns the state of a task, such as working, and what the server says of it.
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
