package todo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// someTodos makes a list of "id=content" words; "id" alone has its id as content.
func someTodos(words ...string) []registry.Todo {
	out := make([]registry.Todo, len(words))
	for i, w := range words {
		id, content, ok := strings.Cut(w, "=")
		if !ok {
			content = id
		}
		out[i] = registry.Todo{ID: id, Content: content, Status: "pending", Priority: "medium"}
	}
	return out
}

// TestTodoMerge plays writes of several callers, one after the other. Each
// names the revision that its caller saw by the number of the write.
func TestTodoMerge(t *testing.T) {
	type write struct {
		todos string // words
		seen  int    // the write that the caller saw last, from 1
		began int    // the write that it began before; 0 = behind all
	}
	tests := []struct {
		name, want, kept, stood string
		writes                  []write
	}{
		{"one caller replaces", "c", "", "", []write{{"a b", 0, 0}, {"c", 1, 0}}},
		{"one caller clears", "", "", "", []write{{"a b", 0, 0}, {"", 1, 0}}},
		{"one caller changes there and back", "a", "", "", []write{{"a", 0, 0}, {"a=x", 1, 0}, {"a", 2, 0}}},
		{"two began with the same list", "1 b a", "a", "", []write{{"1", 0, 0}, {"1 a", 1, 0}, {"1 b", 1, 0}}},
		{"what was seen goes, what was not stays", "b a", "a", "", []write{{"1 2", 0, 0}, {"1 2 a", 1, 0}, {"b", 1, 0}}},
		{"told once, a caller may drop it", "b", "", "", []write{{"1", 0, 0}, {"1 a", 1, 0}, {"1 b", 1, 0}, {"b", 3, 0}}},
		{"an untouched entry keeps the other's form", "1=done 2=mine", "", "1", []write{{"1 2", 0, 0}, {"1=done 2", 1, 0}, {"1 2=mine", 1, 0}}},
		{"through several forms", "1=done b", "", "1", []write{{"1", 0, 0}, {"1=begun", 1, 0}, {"1=done", 2, 0}, {"1 b", 1, 0}}},
		{"both touched it: the last counts", "1=mine", "", "", []write{{"1", 0, 0}, {"1=done", 1, 0}, {"1=mine", 1, 0}}},
		{"dropped here, changed there: it stays", "1=done", "1", "", []write{{"1", 0, 0}, {"1=done", 1, 0}, {"", 1, 0}}},
		{"dropped there, listed here: it stays", "1 b", "", "", []write{{"1", 0, 0}, {"", 1, 0}, {"1 b", 1, 0}}},
		{"one caller, two at once", "b a", "a", "", []write{{"1", 0, 0}, {"a", 1, 0}, {"b", 2, 2}}},
		{"at once with the first", "b a", "a", "", []write{{"a", 0, 0}, {"b", 1, 1}}},
		{"a burst goes on", "d c b a", "c b a", "", []write{{"a", 0, 0}, {"b", 1, 1}, {"c", 2, 2}, {"d", 3, 0}}},
	}
	for _, tt := range tests {
		const second = 1_000_000
		f, revisions := &list{}, []int64{0}
		var m *merged
		for i, w := range tt.writes {
			c := replacement{todos: someTodos(strings.Fields(w.todos)...), caller: "agent:a", now: int64(i+1) * second}
			f.Seen = map[string]int64{"agent:a": revisions[w.seen]}
			c.began = c.now - 10
			if w.began > 0 {
				c.began = revisions[w.began] - 10
			}
			var err error
			if m, err = f.merge(c); err != nil {
				t.Fatal(err)
			}
			f = &m.after
			revisions = append(revisions, f.Revision)
		}
		if diff := cmp.Diff(someTodos(strings.Fields(tt.want)...), f.todos()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		if kept, stood := strings.Join(m.kept, " "), strings.Join(m.stood, " "); kept != tt.kept || stood != tt.stood {
			t.Errorf("%s: kept %q, left as it was %q", tt.name, kept, stood)
		}
	}
}

func TestTodoMergeLimits(t *testing.T) {
	var words []string
	for i := range maxTodos {
		words = append(words, fmt.Sprint("x", i))
	}
	m, err := (&list{}).merge(replacement{todos: someTodos(words...), caller: "agent:a", now: 10})
	if err != nil {
		t.Fatal(err)
	}
	full := m.after
	if _, err := full.merge(replacement{todos: someTodos("y"), caller: "agent:b", began: 20, now: 21}); !errors.Is(err, errTooMany) {
		t.Errorf("a list of %d and one more: %v", maxTodos, err)
	}
	// A clock that was put back by a day makes no burst of all that follows.
	if m, err = full.merge(replacement{todos: someTodos("y"), caller: "agent:a", began: 1, now: 2}); err != nil || len(m.after.Todos) != 1 {
		t.Errorf("after the clock was put back: %v, %v", m, err)
	}
	if m.after.Revision <= full.Revision {
		t.Errorf("revision %d behind %d", m.after.Revision, full.Revision)
	}
}

// An agent that starts each call through a shell of its own is a new process
// each time; what its shells have seen before counts as seen by it. A process
// that lives is another agent.
func TestTodoCallersThatEnded(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skip(err)
	}
	dead := processCaller + strconv.Itoa(ended.Process.Pid)
	alive := processCaller + strconv.Itoa(os.Getpid())
	c := callers{Seen: map[string]int64{alive: 7, dead: 5, "agent:a": 9}}
	want := map[string]int64{alive: 7, processCaller + "1": 5, "agent:a": 9, "agent:new": 0}
	for caller, seen := range want {
		if got := c.by(caller); got != seen {
			t.Errorf("%s has seen %d, want %d", caller, got, seen)
		}
	}
	c.mark("agent:b", 3)
	if _, ok := c.Seen[dead]; ok || c.Ended != 5 || c.by("agent:b") != 3 {
		t.Errorf("marked: %+v", c)
	}
	for i := range 2 * maxCallers {
		c.mark(fmt.Sprint("agent:", i), int64(i+10))
	}
	if len(c.Seen) != maxCallers || c.by(fmt.Sprint("agent:", 2*maxCallers-1)) == 0 || c.by("agent:0") != 0 {
		t.Errorf("%d callers remain", len(c.Seen))
	}
}

// Whoever has not seen a list takes nothing from it, and is told.
func TestTodosOfAnotherCaller(t *testing.T) {
	opts, _ := place(t, nil)
	opts.Caller = "a"
	run(t, opts, "todo_write", twoTodos)
	opts.Caller = "b"
	if r := run(t, opts, "todo_write", `{"todos":[]}`); len(r.Display.Todos) != 2 || !strings.Contains(r.Text(), "to drop them, write the list again without them): 1, 2") {
		t.Errorf("unseen: %s", r.Text())
	}
	if r := run(t, opts, "todo_write", `{"todos":[]}`); len(r.Display.Todos) != 0 {
		t.Errorf("told of, and yet %s", r.Text())
	}
}

// Reading is seeing: what was read may be dropped, what came since may not.
func TestTodosThatWereRead(t *testing.T) {
	opts, _ := place(t, nil)
	other := opts
	opts.Caller, other.Caller = "a", "b"
	run(t, opts, "todo_write", twoTodos)
	run(t, other, "todo_read", `{}`)
	run(t, opts, "todo_write", `{"todos":[{"id":"1","content":"Write the test","status":"in_progress","priority":"high"},{"id":"3","content":"New","status":"pending"}]}`)
	r := run(t, other, "todo_write", `{"todos":[]}`)
	if len(r.Display.Todos) != 1 || r.Display.Todos[0].ID != "3" {
		t.Errorf("after another's write: %s", r.Text())
	}
}
