package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
)

// A new task takes the place of the oldest that has ended; one that runs is not forgotten.
func TestTasksMakeRoom(t *testing.T) {
	all := &tasks{}
	alice, bob := auth.Identity{Name: "alice"}, auth.Identity{Name: "bob"}
	over := make(chan struct{})
	add := func(from auth.Identity, ended bool) (*taskRun, error) {
		until := over
		if ended {
			until = make(chan struct{})
			close(until)
		}
		call := question.NewCalls(question.Options{}, "").Start(question.WithRemote(t.Context(), from, wire.FirstModern, nil), question.Turn{}, nil, func(context.Context) (any, error) { <-until; return nil, nil })
		run, err := all.add(t.Context(), from, call, func(any, error) (*mcp.CallToolResult, error) { return &mcp.CallToolResult{}, nil }, func() {})
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
	if n := all.running(); n != maxTasks+1 {
		t.Errorf("%d run", n)
	}
	close(over)
}

// A session is of the revision that was agreed on, whatever its client began with.
func TestSessionsOfUnknownRevisions(t *testing.T) {
	replica := newReplicas(t, 1, stateKey, map[string]string{"s": "--tasks", "d": "--dialogs;legacy"}, false)[0]
	for _, begun := range []string{"2025-11-25", "2026-07-28", "2027-01-01", "1.0"} {
		c := &rawSession{token: aliceToken}
		if got := c.post(t, replica, "initialize", `"protocolVersion":"`+begun+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}`); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
			t.Errorf("%s: %s", begun, got)
		}
		if got := c.post(t, replica, "tools/call", `"name":"slow_compute","arguments":{"seconds":0},"task":{}`); !strings.Contains(got, `"task":{"taskId":`) {
			t.Errorf("%s: a task: %s", begun, got)
		}
		if got := c.post(t, replica, "tools/call", `"name":"slow","arguments":{"seconds":0}`); !strings.Contains(got, "slept") || strings.Contains(got, "resultType") {
			t.Errorf("%s: %s", begun, got)
		}
		c.do(t.Context(), t, replica, http.MethodDelete, "")
	}
}

// A client on stdin gets a task where its call asks for one.
func TestStdioTasks(t *testing.T) {
	c := newStdioClient(t.Context(), t, newServer(t, map[string]string{"s": "--tasks"}))
	for task, want := range map[string]string{`,"task":{}`: `"result":{"task":{"taskId":`, `,"task":null`: `"result":{"content":`, `,"_meta":{"toolreg/task":true}`: `"result":{"content":`, `,"task":1`: "task must be an object"} {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow_compute","arguments":{"seconds":0}` + task + `}}`)
		c.expect(want)
	}
}

// The task of a message is the one that its header is compared with.
func TestNamesOfMembersAreExact(t *testing.T) {
	var p taskParams
	const params = `{"taskId":"a","TASKID":"b","TaskId":"c"}`
	if err := json.Unmarshal([]byte(params), &p); err != nil || p.ID != "a" || !sameTask("a", json.RawMessage(`{"method":"tasks/get","params":`+params+`}`)) {
		t.Errorf("the task %q, %v", p.ID, err)
	}
}
