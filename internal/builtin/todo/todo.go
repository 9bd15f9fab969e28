// Package todo holds the built-in tools todo_read and todo_write: a list for
// each workspace and session, in a state file, safe for concurrent writers.
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
)

//go:embed todo_read.md
var readDescription string

//go:embed todo_write.md
var writeDescription string

const (
	readName  = "todo_read"
	writeName = "todo_write"
	folder    = "todos"
	maxTodos  = 1000
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

// Options say whose list it is.
type Options struct {
	// StateDir holds the lists; "" means that there are none.
	StateDir string
	// Session distinguishes lists of one workspace; "" is a session too.
	Session string
	// Caller names the agent that makes the calls, to distinguish several that share
	// a list; "" means the process that started this one.
	Caller string
	// Began is when this run was started; the zero value means unknown. The caller
	// cannot know what other runs have written since.
	Began time.Time
}

type readParams struct{}

type writeParams struct {
	Todos []registry.Todo `json:"todos"`
}

// NewRead returns the tool todo_read.
func NewRead(opts Options, w *workspace.Dir) registry.Tool {
	l := &store{opts: &opts, workspace: w}
	return tool.New(registry.Definition{
		Name:        readName,
		Description: readDescription,
		Category:    registry.CategoryRead,
		Tags:        []string{"todo"},
		Icon:        "lightBulb",
		InputSchema: json.RawMessage(readSchema),
	}, tool.Handlers[readParams]{Prepare: func(call registry.Call) (readParams, error) {
		return tool.Decode[readParams](readName, call)
	}, Run: l.read})
}

// NewWrite returns the tool todo_write.
func NewWrite(opts Options, w *workspace.Dir) registry.Tool {
	l := &store{opts: &opts, workspace: w}
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
	}, tool.Handlers[[]registry.Todo]{Prepare: prepareWrite, Run: l.write, Preview: l.preview})
}

// prepareWrite reads and checks a list: the schema has been checked, but not
// that the ids differ.
func prepareWrite(call registry.Call) ([]registry.Todo, error) {
	p, err := tool.Decode[writeParams](writeName, call)
	switch {
	case err != nil:
		return nil, err
	case p.Todos == nil:
		return nil, registry.Invalid(writeName, "/todos", "is required")
	case len(p.Todos) > maxTodos:
		return nil, registry.Invalid(writeName, "/todos", "has %d entries; the maximum is %d", len(p.Todos), maxTodos)
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
			return nil, registry.Invalid(writeName, at+"/id", "%q is already the id of entry %d; ids must be unique", t.ID, before)
		case strings.TrimSpace(t.Content) == "":
			return nil, registry.Invalid(writeName, at+"/content", "is empty")
		case !slices.Contains([]string{"pending", "in_progress", "completed"}, t.Status):
			return nil, registry.Invalid(writeName, at+"/status", "is not one of pending, in_progress, completed")
		case !slices.Contains([]string{"high", "medium", "low"}, t.Priority):
			return nil, registry.Invalid(writeName, at+"/priority", "is not one of high, medium, low")
		}
		first[t.ID] = i
	}
	return p.Todos, nil
}

func (l *store) read(ctx context.Context, _ registry.Call, _ readParams) (registry.Result, error) {
	f, aside, err := l.load(ctx)
	if err != nil {
		return tool.Failed(err.Error()), nil
	}
	return resultOf("", f.todos(), asideNote(aside)), nil
}

func (l *store) write(ctx context.Context, _ registry.Call, todos []registry.Todo) (registry.Result, error) {
	m, aside, err := l.replace(ctx, todos)
	switch {
	case errors.Is(err, state.ErrUnavailable), errors.Is(err, errTooMany):
		return tool.Failed("the todo list could not be saved: " + err.Error()), nil
	case err != nil:
		return registry.Result{}, fmt.Errorf("saving the todo list: %w", err)
	}
	return resultOf("Saved. ", m.after.todos(), asideNote(aside)+m.note()), nil
}

func (l *store) preview(_ registry.Call, todos []registry.Todo) (registry.Preview, error) {
	text := listText(todos)
	if m, err := l.foresee(todos); err == nil {
		text = listText(m.after.todos()) + m.note()
	}
	return registry.Preview{Kind: registry.PreviewInfo, Title: "Write the todo list", Prompt: "Replace the todo list with:\n" + text}, nil
}
