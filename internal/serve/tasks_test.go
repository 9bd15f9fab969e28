package serve

import (
	"net/http"
	"strings"
	"testing"
)

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
