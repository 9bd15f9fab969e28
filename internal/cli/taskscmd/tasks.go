// Package taskscmd implements the command tasks, which shows calls that their servers continue
// (call --detach).
package taskscmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

type options struct{ wait bool }

// New returns the command tasks.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "tasks [ID]",
		Short: "Show calls that servers are still working on",
		Long: `Show the tasks that "toolreg call --detach" started. With an id, or the beginning of
one, show the state of that task or, if it is done, print the result as
"toolreg call" does. --wait waits for the result. If a task asks a question, you
are asked as during a call.

In a pipe each task is one line: id, tool and time, separated by tabs. A task is
forgotten after 30 days; its server may forget it earlier.

Exit codes: 0, 2, 3 (no such task), 7 (the tool reported an error), 8 (its server
failed), 124 (time limit).`,
		Example: `  toolreg tasks
  toolreg tasks 3f9a
  toolreg tasks 3f9a --wait
  toolreg tasks cancel 3f9a`,
		Args:              cli.ArgsBetween(0, 1, "the id of a task"),
		ValidArgsFunction: complete.Args(completeIDs(e)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if len(argv) > 0 {
				return showTask(cmd.Context(), e, argv[0], o.wait)
			}
			if o.wait {
				return cli.Usage("--wait needs the id of a task", "toolreg tasks lists them")
			}
			return listTasks(e)
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the task is done")
	cmd.AddCommand(&cobra.Command{
		Use: "cancel ID", Short: "Ask the server to cancel a task",
		Args: cli.ArgsBetween(1, 1, "the id of a task"), ValidArgsFunction: complete.Args(completeIDs(e)),
		Long: `Ask the server of a task to cancel it. Whether it stops the work is up to the server.
A task that has ended is not canceled: "toolreg tasks ID" prints its result.

Exit codes: 0 (also if the task had ended), 2, 3 (no such task), 5 (inside a tool's
run), 7, 8 (its server failed).`,
		Example: "  toolreg tasks cancel 3f9a",
		RunE:    func(cmd *cobra.Command, argv []string) error { return cancelTask(cmd.Context(), e, argv[0]) },
	})
	return cmd
}

// kept is a task as JSON.
type kept struct {
	ID      string    `json:"id"`
	Tool    string    `json:"tool"`    // server__tool
	Created time.Time `json:"created"` // when it was left to its server
}

// running is a task that has not ended, as JSON.
type running struct {
	kept
	State   string `json:"state"`             // working or input_required
	Message string `json:"message,omitempty"` // what the server says of it
}

// canceled is the JSON of tasks cancel.
type canceled struct {
	kept
	Canceled bool `json:"canceled"` // false if the task had already ended
}

func listTasks(e *cli.Env) error {
	all, err := engine.ListTasks(e.Config.Folders)
	if err != nil {
		return err
	}
	documents := []kept{}
	t := ui.Table{Header: []string{"ID", "TOOL", "CREATED"}, Whole: []string{"ID", "TOOL"}}
	for _, task := range all {
		documents = append(documents, kept{task.ID, task.Tool, task.Created})
		t.Add(task.ID, task.Tool, task.Created.Local().Format(time.DateTime))
	}
	return e.IO.PrintResult(map[string][]kept{"tasks": documents}, &t, "task")
}

func completeIDs(e *cli.Env) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, _ := engine.ListTasks(e.Config.Folders)
		return complete.List(all, func(t engine.Task) (string, string) { return t.ID, t.Tool }),
			cobra.ShellCompDirectiveNoFileComp
	}
}

func findTask(ctx context.Context, e *cli.Env, id string) (*engine.Session, engine.Task, *mcpclient.Source, error) {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return nil, engine.Task{}, nil, err
	}
	task, server, err := s.Tasks.Find(id)
	return s, task, server, err
}

func showTask(ctx context.Context, e *cli.Env, id string, wait bool) error {
	s, task, server, err := findTask(ctx, e, id)
	if err != nil {
		return err
	}
	state, message, err := server.TaskState(ctx, task.RemoteTask)
	if err != nil {
		return forgotten(ctx, s, task, err)
	}
	if mcpclient.TaskEnded(state) || wait {
		if limit := s.Settings.Globals.Timeout; s.Settings.Globals.TimeoutSet && limit > 0 {
			within, stop := context.WithTimeoutCause(ctx, limit, &registry.Failure{Kind: exec.ErrTimeout,
				Text: fmt.Sprintf("task %s has not finished within the time limit of %s, and continues", task.ID, limit),
				Help: fmt.Sprintf("toolreg tasks %s shows it later, toolreg tasks cancel %s ends it", task.ID, task.ID)})
			defer stop()
			ctx = within
		}
		progress, hide := e.IO.Screen.Progress(task.Tool, registry.MCPPrefix+task.Server)
		t, result, err := s.Tasks.Await(ctx, task, server, progress)
		hide()
		return callcmd.Print(ctx, e, t, result, err)
	}
	t := ui.Table{Header: []string{"ID", "TOOL", "STATE", "CREATED", "MESSAGE"},
		Whole: []string{"ID", "STATE"}, Spare: []string{"MESSAGE"}}
	t.Add(task.ID, task.Tool, state, task.Created.Local().Format(time.DateTime), message)
	return e.IO.PrintResult(running{kept{task.ID, task.Tool, task.Created}, state, message}, &t, "")
}

// forgotten returns the error of a request about a task. If the server no longer knows the task or
// has exited, it forgets the task.
func forgotten(ctx context.Context, s *engine.Session, task engine.Task, err error) error {
	refused, ok := errors.AsType[*mcpclient.RefusedError](err)
	ended := errors.Is(err, mcpclient.ErrServerEnded)
	if !ended && (!ok || !refused.Unknown()) {
		return err
	}
	if err := s.Tasks.Forget(ctx, task); err != nil {
		return err
	}
	if ended {
		return engine.NoTask("server %q has ended since the call, and the task with it, so it was forgotten (a kept server ends when it has been idle for the time in mcpServers.%s.keep)",
			task.Server, task.Server)
	}
	return engine.NoTask("server %q no longer knows the task, so it was forgotten", task.Server)
}

func cancelTask(ctx context.Context, e *cli.Env, id string) error {
	if err := e.Config.RefuseInside("canceling tasks"); err != nil {
		return err
	}
	s, task, server, err := findTask(ctx, e, id)
	if err != nil {
		return err
	}
	state, _, err := server.TaskState(ctx, task.RemoteTask)
	ended := mcpclient.TaskEnded(state)
	if err == nil && !ended {
		err = server.CancelTask(ctx, task.RemoteTask)
	}
	switch {
	case err != nil:
		return forgotten(ctx, s, task, err)
	case ended:
		e.IO.Notef("task %s of %s has ended already; toolreg tasks %s prints its result", task.ID, task.Tool, task.ID)
	default:
		e.IO.Notef("task %s of %s was canceled", task.ID, task.Tool)
	}
	return e.IO.Report(canceled{kept{task.ID, task.Tool, task.Created}, !ended})
}
