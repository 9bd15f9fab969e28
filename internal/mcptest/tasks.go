package mcptest

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// taskServer is a server of tasks (extension io.modelcontextprotocol/tasks of revision
// 2026-07-28, or revision 2025-11-25), which the SDK does not know. Its tools are those that the
// public conformance suite wants.
type taskServer struct {
	legacy     bool
	undeclared bool   // it does not declare tasks, and refuses to make one
	marker     string // file that gets a line for each canceled task
	mu         sync.Mutex
	tasks      map[string]*serverTask
}

type serverTask struct {
	status  string
	created time.Time
	wants   map[string]any            // input requests
	got     map[string]map[string]any // and the answers
	resumed chan struct{}             // closed when all are there
	repeats bool                      // questions stay after their answers, whose keys are in updates
	updates []string
	gets    int // since the first answer
	over    chan struct{}
	once    sync.Once
	result  map[string]any
	failed  *rpcError
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type rpcMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Name      string                    `json:"name"`
		Arguments map[string]any            `json:"arguments"`
		Task      any                       `json:"task"`
		TaskID    string                    `json:"taskId"`
		Answers   map[string]map[string]any `json:"inputResponses"`
	} `json:"params"`
}

var taskTools = []struct{ name, support string }{
	{"greet", "forbidden"}, {"slow_compute", "optional"}, {"failing_job", "required"},
	{"protocol_error_job", "optional"}, {"confirm_delete", "optional"},
	{"multi_input", "optional"}, {"test_tool_with_task", "required"}, {"endless", "required"}, {"liar", "optional"},
	{"done", "required"}, {"unsaid", "required"}, {"nested", "required"}, {"stateless", "required"},
	{"repeats", "required"}, {"long_id", "required"}, {"report", "required"},
}

func textResult(text string) map[string]any {
	return map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": text}}}
}

func asksFor(field, message string) map[string]any {
	return map[string]any{"method": "elicitation/create", "params": map[string]any{"mode": "form", "message": message,
		"requestedSchema": map[string]any{"type": "object",
			"properties": map[string]any{field: map[string]any{"type": "string"}}}}}
}

// handle answers a message; nil means it is a notification.
func (s *taskServer) handle(data []byte) any {
	var m rpcMessage
	if err := json.Unmarshal(data, &m); err != nil || m.ID == nil {
		return nil
	}
	result, failed := s.answer(&m)
	if failed != nil {
		return map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": failed}
	}
	return map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
}

func (s *taskServer) answer(m *rpcMessage) (any, *rpcError) {
	info := map[string]any{"name": "tasks", "version": "1"}
	switch {
	case m.Method == "initialize" && s.undeclared:
		return map[string]any{"protocolVersion": "2025-11-25", "serverInfo": info,
			"capabilities": map[string]any{"tools": struct{}{}}}, nil
	case m.Method == "initialize" && s.legacy:
		return map[string]any{"protocolVersion": "2025-11-25", "serverInfo": info,
			"capabilities": map[string]any{"tools": struct{}{},
				"tasks": map[string]any{"cancel": struct{}{},
					"requests": map[string]any{"tools": map[string]any{"call": struct{}{}}}}}}, nil
	case m.Method == "server/discover" && !s.legacy:
		return map[string]any{"resultType": "complete", "supportedVersions": []string{firstModern},
			"ttlMs": 0, "cacheScope": "private", "serverInfo": info,
			"capabilities": map[string]any{"tools": struct{}{},
				"extensions": map[string]any{"io.modelcontextprotocol/tasks": struct{}{}}}}, nil
	case m.Method == "tools/list":
		var list []any
		for _, t := range taskTools {
			tool := map[string]any{
				"name": t.name, "description": "Runs as a task: " + t.support + ".",
				"inputSchema": map[string]any{"type": "object"},
				"execution":   map[string]any{"taskSupport": t.support},
			}
			if t.name == "report" {
				tool["outputSchema"] = map[string]any{"type": "object",
					"properties": map[string]any{"n": map[string]any{"type": "integer"}}}
			}
			list = append(list, tool)
		}
		return map[string]any{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": list}, nil
	case m.Method == "tools/call":
		return s.call(m)
	}
	s.mu.Lock()
	t := s.tasks[m.Params.TaskID]
	s.mu.Unlock()
	switch {
	case t == nil && (m.Method == "tasks/get" || m.Method == "tasks/result" ||
		m.Method == "tasks/update" || m.Method == "tasks/cancel"):
		return nil, &rpcError{-32602, "no such task"}
	case m.Method == "tasks/get":
		return s.describe(m.Params.TaskID, t), nil
	case m.Method == "tasks/result" && s.legacy:
		<-t.over
		if t.failed != nil {
			return nil, t.failed
		}
		return t.result, nil
	case m.Method == "tasks/update" && !s.legacy:
		s.update(t, m.Params.Answers)
		return map[string]any{"resultType": "complete"}, nil
	case m.Method == "tasks/cancel":
		if s.marker != "" {
			_ = appendLine(s.marker, "tasks/cancel")
		}
		t.end(s, "cancelled", nil, nil)
		if s.legacy {
			return s.describe(m.Params.TaskID, t), nil
		}
		return map[string]any{"resultType": "complete"}, nil
	}
	return nil, &rpcError{-32601, "method not found"}
}

func (s *taskServer) call(m *rpcMessage) (any, *rpcError) {
	args := m.Params.Arguments
	seconds, _ := args["seconds"].(float64)
	wait := time.Duration(seconds * float64(time.Second))
	if s.undeclared && m.Params.Task != nil {
		return nil, &rpcError{-32602, "unknown param task"}
	}
	if s.legacy && m.Params.Task == nil { // the client decides
		if m.Params.Name == "failing_job" {
			return nil, &rpcError{-32601, "it must be a task"}
		}
		time.Sleep(wait)
		return textResult("done without a task"), nil
	}
	switch m.Params.Name {
	case "greet":
		return textResult(fmt.Sprintf("Hello, %v!", args["name"])), nil
	case "slow_compute":
		if file, ok := args["started"].(string); ok {
			_ = appendLine(file, "started")
		}
		if wait == 0 {
			return textResult("at once"), nil
		}
		return s.start(nil, func(t *serverTask) { t.after(s, wait, textResult("computed"), nil) }), nil
	case "failing_job":
		failed := textResult("it has failed")
		failed["isError"] = true
		return s.start(nil, func(t *serverTask) { t.after(s, 200*time.Millisecond, failed, nil) }), nil
	case "protocol_error_job":
		return s.start(nil, func(t *serverTask) {
			t.after(s, 200*time.Millisecond, nil, &rpcError{-32603, "panic"})
		}), nil
	case "confirm_delete":
		return s.start(map[string]any{"confirm": asksFor("confirm", "Delete it?")}, func(t *serverTask) {
			<-t.resumed
			t.end(s, "completed", textResult(fmt.Sprintf("%v", t.got["confirm"]["action"])), nil)
		}), nil
	case "multi_input":
		return s.start(map[string]any{"one": asksFor("name", "One?"),
			"two": asksFor("name", "Two?")}, func(t *serverTask) {
			<-t.resumed
			t.end(s, "completed", textResult("both"), nil)
		}), nil
	case "repeats":
		t := &serverTask{
			status: "input_required", created: time.Now(),
			wants: map[string]any{"one": asksFor("name", "One?")}, repeats: true, over: make(chan struct{}),
		}
		out := s.add(t)
		out["inputRequests"] = t.wants // not yet
		return out, nil
	case "test_tool_with_task":
		answer, ok := m.Params.Answers["user_name"]
		if !ok {
			return map[string]any{
				"resultType": "input_required", "requestState": "x",
				"inputRequests": map[string]any{"user_name": asksFor("name", "Who?")},
			}, nil
		}
		content, _ := answer["content"].(map[string]any)
		return s.start(nil, func(t *serverTask) {
			t.after(s, 200*time.Millisecond, textResult(fmt.Sprintf("Hello, %v", content["name"])), nil)
		}), nil
	case "endless":
		return s.start(nil, func(t *serverTask) { <-t.over }), nil
	case "done": // before the answer that creates it
		return s.ended("completed", textResult("done")), nil
	case "report":
		length, _ := args["length"].(float64)
		result := textResult(strings.Repeat("x", int(length)))
		result["structuredContent"] = map[string]any{"n": args["n"]}
		return s.ended("completed", result), nil
	case "unsaid": // the reason is in the status message alone
		return s.ended("failed", map[string]any{}), nil
	case "nested":
		return s.ended("completed", map[string]any{"resultType": "task", "taskId": "x", "status": "working"}), nil
	case "stateless":
		return s.ended("odd", nil), nil
	case "long_id":
		return map[string]any{"resultType": "task", "taskId": strings.Repeat("x", 2000), "status": "working"}, nil
	case "liar":
		return map[string]any{"resultType": "task", "taskId": "", "status": "working"}, nil
	}
	return nil, &rpcError{-32602, "no such tool"}
}

// start starts a task and returns the answer to its call.
func (s *taskServer) start(wants map[string]any, run func(*serverTask)) map[string]any {
	t := &serverTask{
		status: "working", created: time.Now(), wants: wants, got: map[string]map[string]any{},
		resumed: make(chan struct{}), over: make(chan struct{}),
	}
	if len(wants) > 0 {
		t.status = "input_required"
	}
	go run(t)
	return s.add(t)
}

// ended is start for a task that is over.
func (s *taskServer) ended(status string, result map[string]any) map[string]any {
	t := &serverTask{created: time.Now(), over: make(chan struct{})}
	t.end(s, status, result, nil)
	return s.add(t)
}

func (s *taskServer) add(t *serverTask) map[string]any {
	id := rand.Text()
	s.mu.Lock()
	if s.tasks == nil {
		s.tasks = map[string]*serverTask{}
	}
	s.tasks[id] = t
	s.mu.Unlock()
	out := s.describe(id, t)
	if s.legacy {
		return map[string]any{"task": out}
	}
	out["resultType"] = "task"
	delete(out, "inputRequests")
	delete(out, "result")
	return out
}

func (s *taskServer) describe(id string, t *serverTask) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(t.updates) > 0 {
		t.gets++
		switch t.gets {
		case 3:
			t.wants = map[string]any{"one": asksFor("name", "One?"), "two": asksFor("name", "Two?")}
		case 6:
			t.status, t.wants, t.result = "completed", nil, textResult("answered "+strings.Join(t.updates, ", then "))
		}
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	out := map[string]any{
		"taskId": id, "status": t.status, "statusMessage": "it is " + t.status,
		"createdAt": t.created.UTC().Format(time.RFC3339Nano), "lastUpdatedAt": now,
	}
	if s.legacy {
		out["ttl"], out["pollInterval"] = 60000, 100
		return out
	}
	out["resultType"], out["ttlMs"], out["pollIntervalMs"] = "complete", 60000, 100
	if len(t.wants) > 0 {
		out["inputRequests"] = t.wants
	}
	if t.result != nil {
		out["result"] = t.result
	}
	if t.failed != nil {
		out["error"] = t.failed
	}
	return out
}

func (s *taskServer) update(t *serverTask, answers map[string]map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.repeats {
		t.updates = append(t.updates, strings.Join(slices.Sorted(maps.Keys(answers)), " and "))
		return
	}
	rest := map[string]any{}
	for key, want := range t.wants {
		if answer, ok := answers[key]; ok {
			t.got[key] = answer
		} else {
			rest[key] = want
		}
	}
	if waited := len(t.wants) > 0; waited && len(rest) == 0 {
		t.status = "working"
		close(t.resumed)
	}
	t.wants = rest
}

func (t *serverTask) after(s *taskServer, wait time.Duration, result map[string]any, failed *rpcError) {
	select {
	case <-t.over:
	case <-time.After(wait):
		status := "completed"
		if failed != nil {
			status = "failed"
		}
		t.end(s, status, result, failed)
	}
}

func (t *serverTask) end(s *taskServer, status string, result map[string]any, failed *rpcError) {
	t.once.Do(func() {
		s.mu.Lock()
		t.status, t.result, t.failed, t.wants = status, result, failed, nil
		s.mu.Unlock()
		close(t.over)
	})
}

func (s *taskServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	answer := s.handle(data)
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// serve answers lines until stdin ends.
func (s *taskServer) serve(stdin io.Reader, stdout io.Writer) (int, error) {
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, 16<<20)
	var mu sync.Mutex
	for lines.Scan() {
		line := append([]byte{}, lines.Bytes()...)
		go func() {
			if answer := s.handle(line); answer != nil {
				mu.Lock()
				defer mu.Unlock()
				_ = json.NewEncoder(stdout).Encode(answer)
			}
		}()
	}
	return 0, lines.Err()
}
