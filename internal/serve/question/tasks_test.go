package question

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A call that has become a task asks and ends as a task, also if its question or its end is there as early.
func TestTasksAsk(t *testing.T) {
	s := NewCalls(Options{}, "")
	for range 50 {
		w := &Call{questions: make(chan Question, 1), done: make(chan Outcome, 1), task: make(chan struct{})}
		w.questions <- Question{Requests: mcp.InputRequestMap{"one": nil}}
		close(w.task)
		v, asked, err := s.next(t.Context(), w)
		if v != w || asked != nil || err != nil {
			t.Fatalf("%v, %v, %v", v, asked, err)
		}
		if q, _ := w.Next(); q == nil || len(q.Requests) != 1 {
			t.Fatalf("the task asks %v", q)
		}
		w.done <- Outcome{Value: "end"}
		if v, asked, err = s.next(t.Context(), w); v != w || asked != nil || err != nil {
			t.Fatalf("at its end: %v, %v, %v", v, asked, err)
		}
		if _, o := w.Next(); o == nil || o.Value != "end" {
			t.Fatalf("the task ends with %v", o)
		}
	}
}
