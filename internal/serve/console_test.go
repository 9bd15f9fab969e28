package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/serve/question"
)

// desk is a console with one person, who is the test.
type desk struct{ questions chan *deskQuestion }

type deskQuestion struct {
	first  func() bool
	answer chan exec.Answer
	gone   <-chan struct{}
}

func newDesk() *desk { return &desk{make(chan *deskQuestion, 100)} }

func (d *desk) Confirm(ctx context.Context, _ exec.Question, first func() bool) (exec.Answer, error) {
	q := &deskQuestion{first, make(chan exec.Answer, 1), ctx.Done()}
	d.questions <- q
	select {
	case a := <-q.answer:
		return a, nil
	case <-ctx.Done():
		return exec.Answer{}, context.Cause(ctx)
	}
}

func (d *desk) Elicit(context.Context, ask.Elicitation, func() bool) (ask.Answer, error) {
	return ask.Answer{Action: "decline"}, nil
}

// say answers a question and reports whether the answer counts.
func (q *deskQuestion) say(c exec.Choice) bool {
	counts := q.first()
	if counts {
		q.answer <- exec.Answer{Choice: c}
	}
	return counts
}

// runs returns how often a call of the tool slow has run.
func runs(marker string) int {
	data, _ := os.ReadFile(marker) // absent: never
	return strings.Count(string(data), "started\n")
}

// A question that is answered at the console is answered for a client of the newest revision:
// whatever it answers, it gets the result of the call, which has run once, and from its process
// alone.
func TestConsoleAnswersForModernClient(t *testing.T) {
	d := newDesk()
	replicas := newReplicasAsking(t, question.Asker{Console: d}, 2, stateKey, map[string]string{"n": ";modern asks"}, true)
	marker := filepath.Join(t.TempDir(), "runs")
	call := sent{tool: "slow", args: fmt.Sprintf(`{"seconds":0,"started":%q}`, marker)}
	call.state = send(t, replicas[0], call).state(t)
	if !await(t, d.questions).say(exec.Yes) {
		t.Fatal("the first answer does not count")
	}
	waitFor(t, func() bool { return runs(marker) == 1 })
	call.answers = allowOnce
	if r := send(t, replicas[1], call); r.code != jsonrpc.CodeInvalidParams {
		t.Errorf("another process accepted the answer too: %s", r.stream)
	}
	call.answers = refuse
	if r := send(t, replicas[0], call); !strings.Contains(r.stream, "slept") {
		t.Errorf("the client got %s", r.stream)
	}
	if r := send(t, replicas[0], call); r.code != jsonrpc.CodeInvalidParams || runs(marker) != 1 {
		t.Errorf("the client got the result again: %s; the call ran %d times", r.stream, runs(marker))
	}

	call.state, call.answers = "", ""
	call.state = send(t, replicas[0], call).state(t)
	q := await(t, d.questions)
	q.say(exec.No)
	call.answers = allowOnce
	if r := send(t, replicas[0], call); !strings.Contains(r.stream, "not run") || runs(marker) != 1 {
		t.Errorf("the console said no, the client got %s; the call ran %d times", r.stream, runs(marker))
	}
}

// A client that answers first, in the same process or another, withdraws the question from the
// console.
func TestClientAnswersBeforeConsole(t *testing.T) {
	d := newDesk()
	replicas := newReplicasAsking(t, question.Asker{Console: d}, 2, stateKey, map[string]string{"n": ";modern asks"}, true)
	for _, replica := range replicas {
		marker := filepath.Join(t.TempDir(), "runs")
		call := sent{tool: "slow", args: fmt.Sprintf(`{"seconds":0,"started":%q}`, marker)}
		call.state = send(t, replicas[0], call).state(t)
		q := await(t, d.questions)
		call.answers = allowOnce
		if r := send(t, replica, call); !strings.Contains(r.stream, "slept") {
			t.Errorf("the client got %s", r.stream)
		}
		if q.say(exec.Yes) || runs(marker) != 1 {
			t.Errorf("the console's answer counts too; the call ran %d times", runs(marker))
		}
	}
}

// If both places answer at the same time, the call runs once.
func TestBothAnswerAtOnce(t *testing.T) {
	d := newDesk()
	replicas := newReplicasAsking(t, question.Asker{Console: d}, 2, stateKey, map[string]string{"n": ";modern asks"}, true)
	for i := range 20 {
		marker := filepath.Join(t.TempDir(), "runs")
		call := sent{tool: "slow", args: fmt.Sprintf(`{"seconds":0,"started":%q}`, marker)}
		call.state, call.answers = send(t, replicas[0], call).state(t), allowOnce
		q := await(t, d.questions)
		var wg sync.WaitGroup
		wg.Go(func() { q.say(exec.Yes) })
		wg.Go(func() { send(t, replicas[i%2], call) })
		wg.Wait()
		waitFor(t, func() bool { return runs(marker) == 1 })
		for len(d.questions) > 0 { // of a run in the other process
			<-d.questions
		}
	}
}

// A call of a client that cannot ask waits for the console, but not longer than it shows a
// question.
func TestConsoleAnswersForClientThatCannotAsk(t *testing.T) {
	d := newDesk()
	for _, patience := range []time.Duration{0, time.Millisecond} {
		s := newSessionAsking(t, question.Asker{Console: d, Patience: patience}, map[string]string{"n": "; asks"})
		t.Cleanup(s.Close)
		h := listen(t, serverOf(t, s), nil)
		c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp", DisableStandaloneSSE: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		answered := make(chan *mcp.CallToolResult, 1)
		go func() {
			r, _ := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 2}})
			answered <- r
		}()
		q := await(t, d.questions)
		want := "nobody can be asked"
		if patience == 0 {
			q.say(exec.Yes)
			want = "3"
		} else {
			await(t, q.gone)
		}
		if r := await(t, answered); !strings.Contains(textOf(r), want) {
			t.Errorf("patience %v: %q lacks %q", patience, textOf(r), want)
		}
	}
}

// Where an older client is asked too, the first answer counts, and its user sees the question
// gone if that is the console's.
func TestOlderClientAndConsole(t *testing.T) {
	d := newDesk()
	s := newSessionAsking(t, question.Asker{Console: d}, map[string]string{"n": "; asks"})
	t.Cleanup(s.Close)
	h := listen(t, serverOf(t, s), nil)
	asked, answer, gone := make(chan struct{}, 1), make(chan *mcp.ElicitResult), make(chan struct{}, 1)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- struct{}{}
		select {
		case r := <-answer:
			return r, nil
		case <-ctx.Done():
			gone <- struct{}{}
			return &mcp.ElicitResult{Action: "cancel"}, nil
		}
	}}).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp", DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, atClient := range []bool{false, true} {
		results := make(chan *mcp.CallToolResult, 1)
		go func() {
			r, _ := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 2}})
			results <- r
		}()
		await(t, asked)
		q := await(t, d.questions)
		if atClient {
			answer <- &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": exec.WordYes}}
			await(t, q.gone)
			if q.say(exec.No) {
				t.Error("the console's answer counts after the client's")
			}
		} else {
			q.say(exec.Yes)
			await(t, gone)
		}
		if r := await(t, results); !strings.Contains(textOf(r), "3") {
			t.Errorf("the result is %q", textOf(r))
		}
	}
}
