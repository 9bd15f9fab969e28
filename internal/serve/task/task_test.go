package task

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
)

// A new task takes the place of the oldest that has ended; one that runs is not forgotten.
func TestTasksMakeRoom(t *testing.T) {
	all := New(Options{})
	alice, bob := auth.Identity{Name: "alice"}, auth.Identity{Name: "bob"}
	over := make(chan struct{})
	add := func(from auth.Identity, ended bool) (*Run, error) {
		until := over
		if ended {
			until = make(chan struct{})
			close(until)
		}
		call := question.NewCalls(question.Options{}, "").Start(question.WithRemote(t.Context(), from, wire.FirstModern, nil), question.Turn{}, nil, func(context.Context) (any, error) { <-until; return nil, nil })
		run, err := all.Add(t.Context(), from, call, func(any, error) (mcp.Result, error) { return &acknowledged{}, nil }, func() {})
		if err == nil && ended {
			<-run.over
		}
		return run, err
	}
	first, _ := add(alice, true)
	second, _ := add(alice, true)
	for range maxTasks - 1 {
		if _, err := add(alice, false); err != nil {
			t.Fatal(err)
		}
	}
	if all.find(first.id, alice) != nil || all.find(second.id, alice) == nil {
		t.Error("the oldest that has ended is known, or the other one is not")
	}
	last, err := add(alice, false)
	if err != nil || all.find(second.id, alice) != nil || all.find(last.id, alice) == nil {
		t.Errorf("there is no room for one more: %v", err)
	}
	if _, err := add(alice, false); err == nil || !strings.Contains(err.Error(), "100 tasks of this token are running") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := add(bob, false); err != nil {
		t.Errorf("another token: %v", err)
	}
	if n := all.Running(); n != maxTasks+1 {
		t.Errorf("%d run", n)
	}
	close(over)
}

// The task of a message is the one that its header is compared with.
func TestNamesOfMembersAreExact(t *testing.T) {
	var p Params
	const params = `{"taskId":"a","TASKID":"b","TaskId":"c"}`
	if err := json.Unmarshal([]byte(params), &p); err != nil || p.ID != "a" || !Same("a", json.RawMessage(`{"method":"tasks/get","params":`+params+`}`)) {
		t.Errorf("the task %q, %v", p.ID, err)
	}
}
