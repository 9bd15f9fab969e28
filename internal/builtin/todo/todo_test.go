package todo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

const twoTodos = `{"todos":[
	{"id":"1","content":"Write the test","status":"in_progress","priority":"high"},
	{"id":"2","content":"Make it pass","status":"pending"}]}`

func TestTodos(t *testing.T) {
	opts, _ := place(t, nil)
	if r := run(t, opts, "todo_read", `{}`); r.IsError || r.Text() != "No todos.\n" || r.Display.Todos == nil {
		t.Errorf("an empty list: %+v", r)
	}
	want := []registry.Todo{
		{ID: "1", Content: "Write the test", Status: "in_progress", Priority: "high"},
		{ID: "2", Content: "Make it pass", Status: "pending", Priority: "medium"},
	}
	const text = "2 todos: 1 in progress, 1 pending, 0 completed.\n[~] 1 (high): Write the test\n[ ] 2 (medium): Make it pass\n"
	written := run(t, opts, "todo_write", twoTodos)
	read := run(t, opts, "todo_read", ``)
	for name, r := range map[string]registry.Result{"Saved. ": written, "": read} {
		if diff := cmp.Diff(want, r.Display.Todos); diff != "" || r.Text() != name+text {
			t.Errorf("%q: %s %s", name, r.Text(), diff)
		}
	}
	r := run(t, opts, "todo_write", `{"todos":[{"id":"1","content":"Write the test","status":"completed"}]}`)
	if want := "No longer in the list: [ ] 2 (medium): Make it pass\n"; !strings.HasSuffix(r.Text(), want) {
		t.Errorf("%q does not list the removed entries", r.Text())
	}
	if r := run(t, opts, "todo_write", `{"todos":[]}`); r.Text() != "Saved. No todos.\n" {
		t.Errorf("cleared: %q", r.Text())
	}
}

func TestListsAreSeparate(t *testing.T) {
	opts, _ := place(t, nil)
	run(t, opts, "todo_write", twoTodos)
	session, elsewhere := opts, opts
	session.Session = "another"
	elsewhere.Workspace = t.TempDir()
	for name, o := range map[string]setup{"session": session, "workspace": elsewhere} {
		if r := run(t, o, "todo_read", `{}`); r.Text() != "No todos.\n" {
			t.Errorf("another %s sees %q", name, r.Text())
		}
	}
	bob := caller.With(t.Context(), &caller.Caller{Name: "bob", Token: "bob"})
	read, write := find(t, opts, "todo_read"), find(t, opts, "todo_write")
	r, err := read.Run(bob, tooltest.Call("{}"))
	if err != nil || r.Text() != "No todos.\n" {
		t.Errorf("another token sees %q, %v", r.Text(), err)
	}
	if p, err := write.Preview(bob, tooltest.Call(`{"todos":[]}`)); err != nil || strings.Contains(p.Prompt, "Write the test") {
		t.Errorf("another token is shown %q, %v", p.Prompt, err)
	}
}

func TestTodoWriteChecksParams(t *testing.T) {
	opts, _ := place(t, nil)
	for p, want := range map[string]string{
		`{"todos":[{"id":"1","content":"a","status":"pending"},{"id":"1","content":"b","status":"pending"}]}`: `/todos/1/id: "1" is already the id of entry 0`,
		`{"todos":[{"id":" ","content":"a","status":"pending"}]}`:                                             "/todos/0/id: is empty",
		`{"todos":[{"id":"1","content":"","status":"pending"}]}`:                                              "/todos/0/content: is empty",
		`{"items":[]}`: `unknown field "items"`,
	} {
		err := find(t, opts, "todo_write").Check(t.Context(), tooltest.Call(p))
		if _, ok := errors.AsType[*registry.ArgsError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", p, err, want)
		}
	}
	if err := find(t, opts, "todo_read").Check(t.Context(), tooltest.Call(`{"x":1}`)); err == nil {
		t.Error("todo_read accepts params")
	}
}

// Fifty concurrent writers that started before any of them wrote each add an
// entry to the current list, and try again while their write is refused. No entry
// is lost.
func TestConcurrentTodoWriters(t *testing.T) {
	opts, _ := place(t, nil)
	opts.Began = time.Now()
	const n = 50
	var wg sync.WaitGroup
	for i := range n {
		tool := find(t, opts, "todo_write")
		wg.Go(func() {
			mine := registry.Todo{ID: fmt.Sprint(i), Content: fmt.Sprint("by ", i), Status: "pending"}
			list := []registry.Todo{mine}
			for {
				r, err := tool.Run(t.Context(), tooltest.Call(tooltest.JSON(t, writeParams{list})))
				if err != nil || !r.IsError {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if !strings.HasPrefix(r.Text(), "Not saved: another writer changed the list") {
					t.Error(r.Text())
					return
				}
				list = append(r.Display.Todos, mine)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, todo := range run(t, opts, "todo_read", `{}`).Display.Todos {
		seen[todo.ID] = todo.Content == "by "+todo.ID
	}
	for i := range n {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("the entry of writer %d is lost", i)
		}
	}
}

// A caller that has not seen the current list cannot replace it; the list is shown
// to it instead.
func TestUnseenListIsNotReplaced(t *testing.T) {
	const (
		one   = `{"todos":[{"id":"3","content":"New","status":"pending"}]}`
		empty = `{"todos":[]}`
		read  = ""
	)
	type step struct {
		agent   string // "" is a run that started with the test, "now" one that starts now
		todos   string // read, or the params of a write
		refused bool
	}
	tests := map[string][]step{
		"an agent replaces its own list":            {{"a", twoTodos, false}, {"a", one, false}, {"a", empty, false}},
		"another agent has not seen it":             {{"a", twoTodos, false}, {"b", one, true}},
		"the refused agent was shown the list":      {{"a", twoTodos, false}, {"b", one, true}, {"b", one, false}, {"a", empty, true}},
		"another agent has read it":                 {{"a", twoTodos, false}, {"b", read, false}, {"b", one, false}},
		"another agent has not read a later list":   {{"a", twoTodos, false}, {"b", read, false}, {"a", one, false}, {"b", empty, true}},
		"two agents change the same list":           {{"a", one, false}, {"b", read, false}, {"a", twoTodos, false}, {"b", twoTodos, true}},
		"an empty list is seen by all":              {{"a", twoTodos, false}, {"a", empty, false}, {"b", one, false}},
		"a later run has seen it":                   {{"a", twoTodos, false}, {"now", one, false}},
		"an earlier run has not seen it":            {{"a", twoTodos, false}, {"", one, true}},
		"a run has seen what it was shown":          {{"a", twoTodos, false}, {"", one, true}, {"", one, false}, {"", empty, false}},
		"a run has not seen what a later one wrote": {{"", twoTodos, false}, {"now", one, false}, {"", empty, true}, {"", read, false}, {"", empty, false}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			opts, _ := place(t, nil)
			opts.Began = time.Now()
			w := tooltest.Open(t, workspace.New(workspace.Options{Dir: opts.Workspace}))
			first := setupTools(opts.Options, w)
			var last string
			for i, s := range steps {
				tools := first
				if s.agent != "" {
					own := Options{StateDir: opts.StateDir}
					if s.agent != "now" {
						own.Agent = s.agent
					}
					tools = setupTools(own, w)
				}
				if s.todos == read {
					tooltest.Run(t, tools["todo_read"], `{}`)
					continue
				}
				r := tooltest.Run(t, tools["todo_write"], s.todos)
				if r.IsError != s.refused || r.IsError && r.ErrorCategory != registry.ErrorValidation {
					t.Fatalf("step %d: %s", i, r.Text())
				}
				if now := tooltest.JSON(t, r.Display.Todos); !s.refused {
					last = now
				} else if now != last {
					t.Errorf("step %d shows %s, want %s", i, now, last)
				}
			}
		})
	}
}

func setupTools(opts Options, w *workspace.Dir) map[string]registry.Tool {
	read, write := New(opts, w)
	return map[string]registry.Tool{"todo_read": read, "todo_write": write}
}

// Each client of a process has seen only the lists that were shown to it.
func TestClientsOfOneProcess(t *testing.T) {
	opts, _ := place(t, nil)
	tool := find(t, opts, "todo_write")
	write := func(owner, params string) registry.Result {
		r, err := tool.Run(caller.With(t.Context(), &caller.Caller{Owner: owner}), tooltest.Call(params))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := write("anna", twoTodos); r.IsError {
		t.Error(r.Text())
	}
	if r := write("ben", `{"todos":[]}`); !r.IsError || len(r.Display.Todos) != 2 {
		t.Errorf("not refused: %s", r.Text())
	}
	if r := write("ben", `{"todos":[]}`); r.IsError {
		t.Error(r.Text())
	}
}

// Lists with a revision in the future can be replaced, because the clock was
// set back.
func TestTodosFromTheFuture(t *testing.T) {
	opts, _ := place(t, nil)
	run(t, opts, "todo_write", twoTodos)
	files, _ := filepath.Glob(filepath.Join(opts.StateDir, folder, "*.json"))
	f, err := decodeList([]byte(tooltest.TextIn(t, files[0])))
	if err != nil {
		t.Fatal(err)
	}
	f.Revision = time.Now().Add(24 * time.Hour).UnixMicro()
	tooltest.Put(t, files[0], tooltest.JSON(t, f))
	if r := run(t, opts, "todo_write", `{"todos":[]}`); r.IsError {
		t.Error(r.Text())
	}
}

func TestDamagedTodosAreSetAside(t *testing.T) {
	for _, damaged := range []string{"", "{\"todos\":[{", "null garbage"} {
		for _, tool := range []string{"todo_read", "todo_write"} {
			opts, _ := place(t, nil)
			run(t, opts, "todo_write", twoTodos)
			files, err := filepath.Glob(filepath.Join(opts.StateDir, folder, "*.json"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			tooltest.Put(t, files[0], damaged)
			r := run(t, opts, tool, map[string]string{"todo_read": `{}`, "todo_write": twoTodos}[tool])
			if r.IsError || !strings.Contains(r.Text(), "its file is kept as "+files[0]+".bad") {
				t.Errorf("%s over %q: %q", tool, damaged, r.Text())
			}
			kept, _ := filepath.Glob(files[0] + ".bad-*")
			if len(kept) != 1 || tooltest.TextIn(t, kept[0]) != damaged {
				t.Errorf("set aside: %q", kept)
			}
		}
	}
}

func TestTodosWithoutState(t *testing.T) {
	opts, dir := place(t, map[string]string{"file": ""})
	for _, state := range []string{"", filepath.Join(dir, "file")} {
		opts.StateDir = state
		for tool, p := range map[string]string{"todo_read": `{}`, "todo_write": twoTodos} {
			if r := run(t, opts, tool, p); !r.IsError || !strings.Contains(r.Text(), "state cannot be used") {
				t.Errorf("%s with state %q: %q", tool, state, r.Text())
			}
		}
	}
}

func TestTodoPreview(t *testing.T) {
	opts, _ := place(t, nil)
	run(t, opts, "todo_write", twoTodos)
	if p, err := find(t, opts, "todo_write").Preview(t.Context(), tooltest.Call(twoTodos)); err != nil || !p.Unchanged {
		t.Errorf("writing the same list is asked about: %v", err)
	}
	p, err := find(t, opts, "todo_write").Preview(t.Context(), tooltest.Call(`{"todos":[{"id":"3","content":"Rest","status":"pending"}]}`))
	if p.Unchanged {
		t.Error("a change is not asked about")
	}
	for _, want := range []string{"[ ] 3 (medium): Rest", "No longer in the list: [~] 1", "No longer in the list: [ ] 2"} {
		if err != nil || !strings.Contains(p.Prompt, want) {
			t.Errorf("%q, %v does not show %q", p.Prompt, err, want)
		}
	}
}

func TestTodoFileIsPrivate(t *testing.T) {
	opts, _ := place(t, nil)
	run(t, opts, "todo_write", twoTodos)
	files, _ := filepath.Glob(filepath.Join(opts.StateDir, folder, "*.json"))
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if !json.Valid([]byte(tooltest.TextIn(t, files[0]))) {
		t.Error("the file is not valid JSON")
	}
}
