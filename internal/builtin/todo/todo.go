// Package todo has the built-in tools todo_read and todo_write: a list for each
// workspace and session, in a state file that is safe for concurrent writers.
package todo

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed todo_read.md
var readDescription string

//go:embed todo_write.md
var writeDescription string

const (
	readName  = "todo_read"
	writeName = "todo_write"
	folder    = "todos"
)

const readSchema = `{
  "type": "object",
  "properties": {},
  "additionalProperties": false
}`

const writeSchema = `{
  "type": "object",
  "properties": {
    "todos": {
      "type": "array",
      "maxItems": 1000,
      "description": "The whole list, in the order to show it. Empty: clear the list.",
      "items": {
        "type": "object",
        "properties": {
          "id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "A unique name of the entry."},
          "content": {"type": "string", "minLength": 1, "maxLength": 10000, "description": "What to do."},
          "status": {"type": "string", "enum": ["pending", "in_progress", "completed"], "description": "Its progress."},
          "priority": {"type": "string", "enum": ["high", "medium", "low"], "description": "How important it is. Default: medium."}
        },
        "required": ["id", "content", "status"],
        "additionalProperties": false
      }
    }
  },
  "required": ["todos"],
  "additionalProperties": false
}`

// Options determine which list the tools use.
type Options struct {
	// StateDir holds the lists; "" disables them.
	StateDir string
	// Session distinguishes lists of one workspace; "" is a session too. So does the
	// token of the caller.
	Session string
	// Agent names the calling agent, to tell apart the agents that share a list. If
	// it is "", each run is told apart instead, and within a run each client of
	// serve.
	Agent string
	// Began is when this run was started; the zero value means now. A caller without
	// an agent name cannot have seen what other runs have written since.
	Began time.Time
}

type readParams struct{}

type writeParams struct {
	Todos []registry.Todo `json:"todos"`
}

// New returns the tools todo_read and todo_write.
func New(opts Options, w *workspace.Dir) (read, write registry.Tool) {
	if opts.Began.IsZero() {
		opts.Began = time.Now()
	}
	l := &store{opts: opts, workspace: w, seen: map[any]int64{}}
	return l.readTool(), l.writeTool()
}

func (l *store) readTool() registry.Tool {
	return tool.New(registry.Definition{
		Name:        readName,
		Description: readDescription,
		Category:    registry.CategoryRead,
		Tags:        []string{"todo"},
		Icon:        "lightBulb",
		InputSchema: json.RawMessage(readSchema),
	}, tool.Handlers[readParams]{Prepare: func(call registry.Call) (readParams, error) {
		return tool.Decode[readParams](readName, call)
	}, Run: l.readTodos})
}

func (l *store) writeTool() registry.Tool {
	return tool.New(registry.Definition{
		Name:        writeName,
		Description: writeDescription,
		Category:    registry.CategoryWrite,
		Tags:        []string{"todo"},
		Icon:        "lightBulb",
		InputSchema: json.RawMessage(writeSchema),
		Examples: []registry.Example{{
			Description: "Two steps, the first in progress",
			Params:      json.RawMessage(`{"todos":[{"id":"1","content":"Write the test","status":"in_progress","priority":"high"},{"id":"2","content":"Make it pass","status":"pending"}]}`),
		}},
	}, tool.Handlers[[]registry.Todo]{Prepare: prepareWrite, Run: l.writeTodos, Preview: l.preview})
}

// prepareWrite decodes and checks a list. The schema does not say that ids are unique
// and that neither they nor contents are blank.
func prepareWrite(call registry.Call) ([]registry.Todo, error) {
	p, err := tool.Decode[writeParams](writeName, call)
	if err != nil {
		return nil, err
	}
	first := map[string]int{}
	for i := range p.Todos {
		t := &p.Todos[i]
		at := fmt.Sprintf("/todos/%d", i)
		t.Priority = cmp.Or(t.Priority, "medium")
		switch before, taken := first[t.ID]; {
		case strings.TrimSpace(t.ID) == "":
			return nil, registry.Invalid(writeName, at+"/id", "is empty")
		case taken:
			return nil, registry.Invalid(writeName, at+"/id",
				"%q is already the id of entry %d; ids must be unique", t.ID, before)
		case strings.TrimSpace(t.Content) == "":
			return nil, registry.Invalid(writeName, at+"/content", "is empty")
		}
		first[t.ID] = i
	}
	return p.Todos, nil
}

func (l *store) readTodos(ctx context.Context, _ registry.Call, _ readParams) (registry.Result, error) {
	f, aside, err := l.load(ctx)
	if err != nil {
		return tool.Failed(err.Error()), nil
	}
	return resultOf("", f.Todos, asideNote(aside)), nil
}

func (l *store) writeTodos(ctx context.Context, _ registry.Call, todos []registry.Todo) (registry.Result, error) {
	w, err := l.replace(ctx, todos)
	switch {
	case errors.Is(err, state.ErrUnavailable):
		return tool.Failed("the todo list could not be saved: " + err.Error()), nil
	case err != nil:
		return registry.Result{}, fmt.Errorf("saving the todo list: %w", err)
	case w.refused:
		r := resultOf("Not saved: another writer changed the list since you saw it. Write the whole list again, with your changes to this one:\n",
			w.after.Todos, "")
		// Repeating the call would overwrite the other writer's list.
		r.IsError, r.ErrorCategory = true, registry.ErrorValidation
		return r, nil
	}
	return resultOf("Saved. ", w.after.Todos, asideNote(w.aside)+droppedTodos(w.before.Todos, todos)), nil
}

func (l *store) preview(ctx context.Context, _ registry.Call, todos []registry.Todo) (registry.Preview, error) {
	preview := registry.Preview{Kind: registry.PreviewInfo, Title: "Write the todo list",
		Prompt: "Replace the todo list with:\n" + listText(todos)}
	if p, err := l.place(ctx); err == nil {
		if before, err := p.peek(); err == nil {
			preview.Prompt += droppedTodos(before.Todos, todos)
			preview.Unchanged = slices.Equal(before.Todos, todos)
		}
	}
	return preview, nil
}

// resultOf returns a result that shows a list, with head before it and note
// after it.
func resultOf(head string, todos []registry.Todo, note string) registry.Result {
	counts := map[string]int{}
	for _, t := range todos {
		counts[t.Status]++
	}
	summary := "no todos"
	if len(todos) > 0 {
		summary = fmt.Sprintf("%s: %d in progress, %d pending, %d completed",
			text.Count(len(todos), "todo"), counts["in_progress"], counts["pending"], counts["completed"])
	}
	title := strings.ToUpper(summary[:1]) + summary[1:] + ".\n"
	r := registry.TextResult(head + title + listText(todos) + note)
	r.Summary = summary
	r.Display.Todos = slices.Clone(todos)
	if r.Display.Todos == nil {
		r.Display.Todos = []registry.Todo{}
	}
	return r
}

func listText(todos []registry.Todo) string {
	var b strings.Builder
	for _, t := range todos {
		b.WriteString(lineOf(t) + "\n")
	}
	return b.String()
}

// lineOf formats one entry as a line.
func lineOf(t registry.Todo) string {
	mark := map[string]string{"completed": "[x]", "in_progress": "[~]"}[t.Status]
	return fmt.Sprintf("%s %s (%s): %s",
		cmp.Or(mark, "[ ]"), t.ID, t.Priority, strings.ReplaceAll(t.Content, "\n", "\n    "))
}

func asideNote(aside string) string {
	if aside == "" {
		return ""
	}
	return fmt.Sprintf("The previous list was damaged; its file is kept as %s.\n", aside)
}

// droppedTodos lists the unfinished entries of before that are missing in after.
func droppedTodos(before, after []registry.Todo) string {
	var b strings.Builder
	for _, t := range before {
		kept := slices.ContainsFunc(after, func(other registry.Todo) bool { return other.ID == t.ID })
		if !kept && t.Status != "completed" {
			fmt.Fprintf(&b, "No longer in the list: %s\n", lineOf(t))
		}
	}
	return b.String()
}
