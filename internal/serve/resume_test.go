package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

// If each request of a client reaches another replica, the client is asked the same
// questions as by one server: for approval, by a stateless server, and by a server that
// sends a state. Each call runs once.
func TestAnyReplicaContinues(t *testing.T) {
	replicas := newReplicas(t, 3, stateKey, map[string]string{"m": "--dialogs;modern asks", "n": ";modern asks"}, false)
	front := httptest.NewServer(&inTurn{replicas: replicas})
	t.Cleanup(front.Close)
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		c := newClient(t, front.URL, aliceToken, fmt.Sprint("client-", i), "")
		wg.Go(func() {
			marker := filepath.Join(dir, c.name)
			for _, call := range []struct {
				tool  string
				args  map[string]any
				want  string
				asked int
			}{
				{"n__slow", map[string]any{"seconds": 0, "started": marker}, "slept", 1},
				{"form", map[string]any{"message": "m", "schema": json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}}}`)}, `"who":"` + c.name, 2},
				{"rounds", map[string]any{"count": 3}, "asked 3 times", 4},
			} {
				before := c.asked
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.args})
				if err != nil || r.IsError || !strings.Contains(textOf(r), call.want) || c.asked-before != call.asked {
					t.Errorf("%s: %q, %v; asked %d times, want %d", call.tool, textOf(r), err, c.asked-before, call.asked)
				}
			}
			if runs, err := os.ReadFile(marker); err != nil || string(runs) != "started\n" {
				t.Errorf("the call ran: %q, %v", runs, err)
			}
		})
	}
	wg.Wait()
}

// A state is accepted once, and only with its own request.
func TestStateBelongsToItsCall(t *testing.T) {
	replicas := newReplicas(t, 2, stateKey, map[string]string{"m": "--dialogs;modern", "n": ";modern asks"}, true)
	form := sent{tool: "form", args: `{"message":"m"}`}
	slow := sent{tool: "n__slow", args: `{"seconds":0}`}
	for _, test := range []struct {
		name   string
		again  func(s sent, to *httptest.Server) *reply
		reason string
	}{
		{"another token", func(s sent, to *httptest.Server) *reply { s.token = bobToken; return send(t, to, s) }, "another token"},
		{"other params", func(s sent, to *httptest.Server) *reply { s.args = `{"seconds":0.1}`; return send(t, to, s) }, "another request"},
		{"another tool", func(s sent, to *httptest.Server) *reply { s.tool = "n__crash"; return send(t, to, s) }, "another request"},
		{"altered", func(s sent, to *httptest.Server) *reply { s.state += "AAAA"; return send(t, to, s) }, "altered"},
		{"made up", func(s sent, to *httptest.Server) *reply { s.state = "x"; return send(t, to, s) }, "altered"},
		{"a second time", func(s sent, to *httptest.Server) *reply { send(t, to, s); return send(t, to, s) }, "already answered"},
		{"a second time, elsewhere first", func(s sent, to *httptest.Server) *reply {
			send(t, replicas[1], s)
			return send(t, replicas[0], s)
		}, "already answered"},
		{"a second time, elsewhere last", func(s sent, to *httptest.Server) *reply {
			send(t, replicas[0], s)
			return send(t, replicas[1], s)
		}, "already answered"},
	} {
		for _, call := range []sent{form, slow} {
			for i, to := range replicas {
				s := call
				s.answers = map[string]string{"form": filledIn, "n__slow": allowOnce}[s.tool]
				s.state = send(t, replicas[0], call).state(t)
				if r := test.again(s, to); r.code != jsonrpc.CodeInvalidParams || !strings.Contains(r.message, test.reason) {
					t.Errorf("%s: %s at replica %d: error %d %q", test.name, s.tool, i, r.code, r.message)
				}
			}
		}
	}
	other := newReplicas(t, 1, "", map[string]string{"m": "--dialogs;modern", "n": ";modern asks"}, false)[0]
	slow.answers, slow.state = allowOnce, send(t, replicas[0], slow).state(t)
	if r := send(t, other, slow); r.code != jsonrpc.CodeInvalidParams || !strings.Contains(r.message, "serve.stateKey") {
		t.Errorf("another key: error %d %q", r.code, r.message)
	}
	slow.args = `{ "seconds": 0 }` // as another program would write it
	if r := send(t, replicas[1], slow); !strings.Contains(r.stream, "slept") {
		t.Errorf("the call itself: %s", r.stream)
	}
}

// If the same answer is sent many times at once, to any replica, the call runs only once.
func TestConcurrentAnswersRunCallOnce(t *testing.T) {
	replicas := newReplicas(t, 2, stateKey, map[string]string{"n": ";modern asks"}, true)
	for i := range 8 {
		marker := filepath.Join(t.TempDir(), "runs")
		s := sent{tool: "slow", args: fmt.Sprintf(`{"seconds":0,"started":%q}`, marker)}
		s.state, s.answers = send(t, replicas[0], s).state(t), allowOnce
		var served atomic.Int64
		var wg sync.WaitGroup
		for n := range 10 {
			wg.Go(func() {
				switch r := send(t, replicas[n%(i%2+1)], s); {
				case strings.Contains(r.stream, "slept"):
					served.Add(1)
				case r.code != jsonrpc.CodeInvalidParams:
					t.Errorf("refused with %s", r.stream)
				}
			})
		}
		wg.Wait()
		if runs, err := os.ReadFile(marker); err != nil || string(runs) != "started\n" || served.Load() != 1 {
			t.Errorf("ran %q, %v; served %d", runs, err, served.Load())
		}
	}
}

// A call that has begun to run, here with a question of an older server, waits in its
// process. The answer is still accepted there.
func TestOlderServersQuestionWaitsInItsProcess(t *testing.T) {
	replicas := newReplicas(t, 2, stateKey, map[string]string{"l": "--dialogs;legacy"}, true)
	call := sent{tool: "form", args: `{"message":"m","schema":{"type":"object","properties":{}}}`}
	call.state = send(t, replicas[0], call).state(t)
	call.answers = `{"toolreg.question":{"action":"accept","content":{}}}`
	if r := send(t, replicas[1], call); string(r.result["isError"]) != "true" || !strings.Contains(r.stream, "waits in another process") {
		t.Errorf("elsewhere: %s", r.stream)
	}
	if r := send(t, replicas[0], call); !strings.Contains(r.stream, "accept {}") {
		t.Errorf("in its process: %s", r.stream)
	}
	if r := send(t, replicas[0], call); r.code != jsonrpc.CodeInvalidParams {
		t.Errorf("again: %s", r.stream)
	}
}

// An answer is valid only for its question: if the same call would have another effect,
// the user is asked again.
func TestAnswerIsForItsQuestion(t *testing.T) {
	replicas := newReplicas(t, 2, stateKey, nil, true)
	write := sent{tool: "write_file", args: `{"file_path":"a.txt","content":"new"}`}
	there := sessionOf(replicas[1]).Settings.ProjectRoot
	if err := os.WriteFile(filepath.Join(there, "a.txt"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	write.state = send(t, replicas[0], write).state(t)
	write.answers = allowOnce
	r := send(t, replicas[1], write)
	if !strings.Contains(r.stream, "precious") || string(r.result["resultType"]) != `"input_required"` {
		t.Errorf("where the file differs: %s", r.stream)
	}
	write.state = r.state(t)
	if r := send(t, replicas[0], write); string(r.result["resultType"]) != `"input_required"` {
		t.Errorf("back where it does not exist: %s", r.stream)
	}
	write.state = send(t, replicas[1], sent{tool: write.tool, args: write.args}).state(t)
	if r := send(t, replicas[1], write); string(r.result["resultType"]) != `"complete"` {
		t.Errorf("answered where it was asked: %s", r.stream)
	}
	refused := sent{tool: write.tool, args: `{"file_path":"b.txt","content":"new"}`}
	refused.state, refused.answers = send(t, replicas[0], refused).state(t), refuse
	if r := send(t, replicas[1], refused); !strings.Contains(r.stream, "said no") {
		t.Errorf("a no: %s", r.stream)
	}
	if _, err := os.Stat(filepath.Join(there, "b.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("written although the user said no: %v", err)
	}
}

func sessionOf(replica *httptest.Server) *engine.Session {
	v, done := replica.Config.Handler.(*HTTP).server.offers.Use(context.Background())
	defer done()
	return v.Session
}

// Progress and log messages belong to the request that continues the call, in any
// replica. Progress has the token of that request, not of the first.
func TestProgressFollowsTheAnswer(t *testing.T) {
	replicas := newReplicas(t, 2, stateKey, map[string]string{"m": "--dialogs;modern asks"}, false)
	for _, first := range []string{"", "first"} {
		for i, to := range replicas {
			work := sent{tool: "work", args: `{"steps":3,"pause":1,"message":"at it"}`, progress: first}
			asked := send(t, replicas[0], work)
			if strings.Contains(asked.stream, "notifications/progress") {
				t.Errorf("progress before the answer: %s", asked.stream)
			}
			work.state, work.answers, work.progress = asked.state(t), allowOnce, "second"
			if r := send(t, to, work); strings.Count(r.stream, `"progressToken":"second"`) != 3 || strings.Contains(r.stream, "first") {
				t.Errorf("first token %q, replica %d: %s", first, i, r.stream)
			}
			log := sent{tool: "log", args: `{"text":"said by the server","count":2}`}
			log.state, log.answers = send(t, replicas[0], log).state(t), allowOnce
			if r := send(t, to, log); strings.Count(r.stream, "said by the server") != 2 {
				t.Errorf("log at replica %d: %s", i, r.stream)
			}
		}
	}
	c := newClient(t, replicas[0].URL, aliceToken, "sdk", "")
	params := &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 3, "pause": 1, "message": "at it"}}
	params.SetProgressToken("sdk")
	if r, err := c.CallTool(t.Context(), params); err != nil || r.IsError {
		t.Errorf("%q, %v", textOf(r), err)
	}
	waitFor(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.received) == 4 // the question and three steps
	})
}

// If too many calls wait, the oldest that any process can continue is dropped.
func TestWaitingCallsMakeRoom(t *testing.T) {
	replica := newReplicas(t, 1, stateKey, map[string]string{"m": "--dialogs;modern asks", "l": "--dialogs;legacy"}, true)[0]
	s := replica.Config.Handler.(*HTTP).server.states
	older := sent{tool: "l__form", args: `{"message":"m","schema":{"type":"object","properties":{}}}`}
	older.state = send(t, replica, older).state(t)
	var first sent
	for i := range 501 {
		call := sent{tool: "m__work", args: `{"steps":1,"message":"` + fmt.Sprint(i) + `"}`}
		if call.state = send(t, replica, call).state(t); i == 0 {
			first = call
		}
	}
	if id := s.QuestionOf(first.state, auth.Identity{Name: "alice"}.Account()); id == "" || s.WaitsHere(id) {
		t.Errorf("the oldest waits: %q", id)
	}
	first.answers = allowOnce
	if r := send(t, replica, first); string(r.result["resultType"]) != `"complete"` {
		t.Errorf("the oldest: %s", r.stream)
	}
	older.answers = `{"toolreg.question":{"action":"accept","content":{}}}`
	if r := send(t, replica, older); !strings.Contains(r.stream, "accept {}") {
		t.Errorf("one that can only wait: %s", r.stream)
	}
}
