package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// Task is a call that its server continues by itself, as it is kept in the state folder.
type Task struct {
	ID         string `json:"id"` // ours
	Tool       string `json:"tool"`
	Server     string `json:"server"`
	ServerTool string `json:"serverTool"`
	registry.RemoteTask
	Identity json.RawMessage `json:"identity"` // of the server
	Created  time.Time       `json:"created"`
}

const (
	taskPrefix, taskSuffix = "task-", ".json"
	// keptTasks is how long a task is known.
	keptTasks = 30 * 24 * time.Hour
)

// ErrNoTask reports an id that no task has.
var ErrNoTask = taskNotFound{}

type taskNotFound struct{}

func (taskNotFound) Error() string { return "no such task" }

// Hint says where the tasks are.
func (taskNotFound) Hint() string { return "toolreg tasks lists them" }

// Unwrap returns [registry.ErrNotFound].
func (taskNotFound) Unwrap() error { return registry.ErrNotFound }

// Tasks are the tasks that calls were left to (call --detach). It is safe for concurrent use.
type Tasks struct {
	finder  *finder
	servers *Servers
	gate    *gate
	kept    *keptServers
}

// Detach prepares a call to be left to its server, which must outlast the run. saved is called
// with the task, if the server makes one. The error is an *InputError.
func (t *Tasks) Detach(ctx context.Context, tool *registry.Tool, call *registry.Call, saved func(Task)) error {
	server, ok := t.servers.Of(tool.Qualified()).(*mcpclient.Source)
	if !ok || !tool.IsMCP() {
		return &InputError{Err: fmt.Errorf("calls of %s cannot be detached, because it is not a tool of an MCP server", tool.Name)}
	}
	if set := server.Settings(); set.Command != "" && t.kept.keepFor(set) <= 0 {
		return &InputError{Err: fmt.Errorf("server %q would end with this run, and its task with it", set.Name), Hint: "set mcpServers." + set.Name + ".keep: true"}
	}
	call.Last = false
	call.Detach = func(remote registry.RemoteTask) error {
		task := Task{ID: strings.ToLower(rand.Text()), Tool: tool.Qualified(), Server: tool.Server, ServerTool: tool.ServerTool, RemoteTask: remote, Identity: tool.Identity, Created: time.Now().UTC()}
		data, err := json.Marshal(task)
		if err != nil {
			return err
		}
		dir, err := t.kept.folders.State()
		if err == nil {
			t.sweep(ctx, dir)
			err = dir.Put(taskPrefix+task.ID+taskSuffix, data)
		}
		if err != nil {
			return fmt.Errorf("the task %q of server %q goes on, but could not be kept: %w", remote.ID, tool.Server, err)
		}
		saved(task)
		return nil
	}
	return nil
}

// sweep forgets tasks whose time is over. Those that it cannot forget stay until the next time.
func (t *Tasks) sweep(ctx context.Context, dir *state.Dir) {
	names, _ := dir.Names(taskPrefix, taskSuffix)
	for _, name := range names {
		var task Task
		if data, err := dir.Read(name); err == nil && json.Unmarshal(data, &task) == nil && time.Since(task.Created) >= keptTasks {
			_ = dir.Remove(ctx, name)
		}
	}
}

// ListTasks returns the tasks that are kept in the state folder, oldest first.
func ListTasks(folders *state.Folders) ([]Task, error) {
	dir, err := folders.State()
	if err != nil {
		return nil, err
	}
	names, err := dir.Names(taskPrefix, taskSuffix)
	if err != nil {
		return nil, err
	}
	var out []Task
	for _, name := range names {
		var task Task
		data, err := dir.Read(name)
		if err != nil || json.Unmarshal(data, &task) != nil || task.ID == "" {
			continue // another run has removed it
		}
		if time.Since(task.Created) < keptTasks {
			out = append(out, task)
		}
	}
	slices.SortFunc(out, func(a, b Task) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// Find returns the task whose id begins with prefix, and its server. The error may be
// [ErrNoTask].
func (t *Tasks) Find(prefix string) (Task, *mcpclient.Source, error) {
	all, err := ListTasks(t.kept.folders)
	if err != nil {
		return Task{}, nil, err
	}
	all = slices.DeleteFunc(all, func(task Task) bool { return prefix == "" || !strings.HasPrefix(task.ID, strings.ToLower(prefix)) })
	switch len(all) {
	case 0:
		return Task{}, nil, fmt.Errorf("%q: %w", prefix, ErrNoTask)
	case 1:
	default:
		return Task{}, nil, &InputError{Err: fmt.Errorf("%q is the beginning of the ids of %d tasks", prefix, len(all)), Hint: "give more of the id"}
	}
	task := all[0]
	on, _, err := t.servers.Named(task.Server)
	if err != nil {
		return task, nil, err
	}
	if len(on) != 1 || !bytes.Equal(on[0].Identity(), task.Identity) {
		return task, nil, &InputError{Err: fmt.Errorf("the server %q of the task is not the one in the settings any more", task.Server)}
	}
	return task, on[0], nil
}

// Await waits for the result of a task, which is checked, reduced, shortened and passed to the
// hooks as that of a call, but the hooks do not get its params. If its tool is not known any more,
// the result is as the server gave it. It returns the errors of [mcpclient.Source.AwaitTask], and
// of hooks.
func (t *Tasks) Await(ctx context.Context, task Task, server *mcpclient.Source, progress func(registry.Progress)) (*registry.Tool, registry.Result, error) {
	tool := registry.Tool{Definition: registry.Definition{Name: task.Tool, Server: task.Server, ServerTool: task.ServerTool, Source: registry.MCPPrefix + task.Server, OutputMarkdown: true}}
	if f, err := t.finder.Find(ctx, task.Tool, Query{Call: true}); err == nil && f.Tool.Server == task.Server && f.Tool.ServerTool == task.ServerTool {
		tool = *f.Tool
	}
	tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return server.AwaitTask(ctx, task.RemoteTask, tool.Upstream(), call.Progress)
	}
	screen, hooksErr := t.gate.programs.hooks(ctx)
	if hooksErr != nil {
		return &tool, registry.Result{}, hooksErr
	}
	result, err := t.gate.runs.LimitOutput(t.gate.runs.projectResults(tool)).Run(ctx, registry.Call{Progress: progress})
	if screen != nil && (err == nil || result.IsError) {
		after, hookErr := screen.After(ctx, &tool, registry.Call{Tool: task.Tool}, result)
		return &tool, after, cmp.Or(hookErr, err)
	}
	return &tool, result, err
}

// Forget forgets a task.
func (t *Tasks) Forget(ctx context.Context, task Task) error {
	dir, err := t.kept.folders.State()
	if err != nil {
		return err
	}
	return dir.Remove(ctx, taskPrefix+task.ID+taskSuffix)
}
