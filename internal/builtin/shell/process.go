package shell

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

//go:embed process.md
var processDescription string

const (
	processName = "process"
	// pollInterval is how often the state of a process is checked: it is not a child
	// of this process, so it cannot be waited for.
	pollInterval = 20 * time.Millisecond
	logTail      = 64 << 10 // bytes of a log that are shown
)

const processSchema = `{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "log", "wait", "kill"], "description": "What to do."},
    "id": {"type": "string", "minLength": 1, "description": "The id that run_shell_command returned. Required for all but list."},
    "timeout": {"type": "integer", "minimum": 1, "description": "Seconds to wait. Default: 120."}
  },
  "required": ["action"],
  "additionalProperties": false
}`

type processParams struct {
	Action  string        `json:"action"`
	ID      string        `json:"id"`
	Timeout *tool.Integer `json:"timeout"`
}

// NewProcess returns the process tool, which manages the background commands of
// run_shell_command.
func NewProcess(opts Options, w *workspace.Dir) registry.Tool {
	p := &processTool{opts: &opts, workspace: w}
	return tool.New(registry.Definition{
		Name:        processName,
		Description: processDescription,
		Category:    registry.CategoryCommand,
		Tags:        []string{"shell"},
		Icon:        "terminal",
		Permissions: []string{"shell"},
		InputSchema: json.RawMessage(processSchema),
		Examples: []registry.Example{
			{Description: "List the background commands", Params: json.RawMessage(`{"action":"list"}`)},
			{Description: "Wait up to a minute", Params: json.RawMessage(`{"action":"wait","id":"k3v9x2ab","timeout":60}`)},
		},
	}, tool.Handlers[*processCall]{Prepare: p.prepare, Run: p.run, Preview: p.preview})
}

type processTool struct {
	opts      *Options
	workspace *workspace.Dir
}

type processCall struct {
	processParams
	timeout time.Duration
}

func (p *processTool) prepare(call registry.Call) (*processCall, error) {
	params, err := tool.Decode[processParams](processName, call)
	if err != nil {
		return nil, err
	}
	c := &processCall{processParams: params}
	if params.ID == "" && params.Action != "list" {
		return nil, registry.Invalid(processName, "/id",
			"is required for %s; action list shows the ids", params.Action)
	}
	c.timeout, err = timeLimit(processName, params.Timeout, p.opts)
	return c, err
}

func (p *processTool) preview(ctx context.Context, _ registry.Call, c *processCall) (registry.Preview, error) {
	preview := registry.Preview{Kind: registry.PreviewInfo,
		Title: "Background processes", Prompt: "List the background processes"}
	if c.Action == "list" {
		return preview, nil
	}
	verb := map[string]string{"log": "Show the output of", "wait": "Wait for the end of", "kill": "Stop"}[c.Action]
	preview.Prompt = fmt.Sprintf("%s the background process %s", verb, text.Quote(c.ID))
	_, r, failed := p.findProcess(ctx, c)
	if failed != nil {
		return preview, failed
	}
	preview.Prompt += ": " + r.Command
	return preview, nil
}

// findProcess returns the store and the record of the process of this workspace and caller that a call is
// about, or why the call can only fail.
func (p *processTool) findProcess(ctx context.Context,
	c *processCall) (*backgroundStore, *backgroundRecord, *registry.FailedError) {
	var r *backgroundRecord
	dir, err := p.workspace.Path()
	store, unavailable := newBackgroundStore(p.opts)
	if err = cmp.Or(err, unavailable); err == nil {
		r, err = store.load(c.ID, scopeOf(ctx, dir))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &registry.FailedError{Result: tool.Mismatch(fmt.Sprintf(
			"there is no background process %s; action list shows the ids", text.Quote(c.ID)))}
	case err == nil && c.Action == "kill":
		err = store.ended(r)
	}
	if err != nil {
		return nil, nil, &registry.FailedError{Result: tool.Failed(err.Error())}
	}
	return store, r, nil
}

func (p *processTool) run(ctx context.Context, _ registry.Call, c *processCall) (registry.Result, error) {
	if c.Action == "list" {
		return p.listProcesses(ctx)
	}
	store, r, failed := p.findProcess(ctx, c)
	if failed != nil {
		return failed.Result, nil
	}
	switch c.Action {
	case "wait":
		if err := store.wait(ctx, r, c.timeout); err != nil {
			return registry.Result{}, err
		}
	case "kill":
		if err := store.end(r, func(d time.Duration) { _ = timing.Pause(ctx, d) }); err != nil {
			return tool.Failed(err.Error()), nil
		}
	}
	return store.report(r, c)
}

// wait returns when the process has ended or the limit is reached. The error
// wraps the cause of ctx.
func (b *backgroundStore) wait(ctx context.Context, r *backgroundRecord, limit time.Duration) error {
	over := time.After(limit)
	poll := time.Tick(pollInterval)
	for b.state(r).running {
		select {
		case <-poll:
		case <-over:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", text.Quote(r.ID), context.Cause(ctx))
		}
	}
	return nil
}

func (p *processTool) listProcesses(ctx context.Context) (registry.Result, error) {
	store, err := newBackgroundStore(p.opts)
	if err != nil {
		return tool.Failed(err.Error()), nil
	}
	dir, err := p.workspace.Path()
	if err != nil {
		return registry.Result{}, err
	}
	records, err := store.list(scopeOf(ctx, dir))
	if err != nil {
		return registry.Result{}, err
	}
	if len(records) == 0 {
		r := registry.TextResult("No background processes.")
		r.Summary = "no background processes"
		return r, nil
	}
	var b strings.Builder
	running := 0
	for _, r := range records {
		state := store.state(r)
		if state.running {
			running++
		}
		fmt.Fprintf(&b, "%s  %s  started %s  in %s: %s\n",
			r.ID, state, r.Started.Format(time.RFC3339), r.Directory, firstLineOf(r.Command))
	}
	res := registry.TextResult(b.String())
	res.Summary = fmt.Sprintf("%s, %d running", text.Count(len(records), "background process"), running)
	return res, nil
}

func firstLineOf(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if more {
		line += " …"
	}
	return line
}

// report describes the state of a process with the end of its output.
func (b *backgroundStore) report(r *backgroundRecord, c *processCall) (registry.Result, error) {
	state := b.state(r)
	text, size, err := b.tail(r.ID, logTail)
	if err != nil {
		return registry.Result{}, err
	}
	head := fmt.Sprintf("%s: %s\nCommand: %s\n", r.ID, state, r.Command)
	switch {
	case size == 0:
		head += "Output: (empty)\n"
	case int64(len(text)) < size:
		head += fmt.Sprintf("Output, the last %s of %s:\n", tool.Size(int64(len(text))), tool.Size(size))
	default:
		head += "Output:\n"
	}
	res := registry.TextResult(head + text)
	res.Summary = r.ID + " " + state.String()
	res.Truncated = int64(len(text)) < size
	switch {
	case c.Action == "wait" && state.running:
		res.Summary = fmt.Sprintf("%s is still running after %s", r.ID, c.timeout)
	case c.Action == "wait" && (!state.known || state.code != 0):
		res.IsError, res.ErrorCategory = true, registry.ErrorExecution
	case c.Action == "kill" && state.running:
		res.IsError, res.ErrorCategory = true, registry.ErrorExecution
	}
	return res, nil
}
