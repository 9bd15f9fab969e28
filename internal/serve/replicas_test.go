//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/state"
)

const (
	stateKey   = "0123456789abcdef0123456789abcdef"
	aliceToken = "0123456789abcdef"
	bobToken   = "fedcba9876543210"
)

// newReplicas starts n servers with the same settings and the same key; "" is a random
// key for each. If shared is set, they share the folder in which they record which
// questions were answered.
func newReplicas(t *testing.T, n int, key string, servers map[string]string, shared bool) []*httptest.Server {
	t.Helper()
	return newReplicasAsking(t, question.Asker{}, n, key, servers, shared)
}

func newReplicasAsking(t *testing.T, asker question.Asker, n int, key string, servers map[string]string, shared bool) []*httptest.Server {
	t.Helper()
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken, "bob": bobToken})
	dir := filepath.Join(t.TempDir(), "answered")
	out := make([]*httptest.Server, n)
	for i := range out {
		from := newSessionAsking(t, asker, servers)
		t.Cleanup(from.Close)
		q := question.Options{Key: key, Warn: func(err error) { t.Error(err) }}
		if shared {
			folder, err := state.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			q.Answered = folder
		}
		out[i] = listen(t, serverWith(t, from, q), tokens)
	}
	return out
}

// sent is one request of a client without the SDK, so that tests decide how questions are
// answered.
type sent struct {
	tool, args, state, answers string
	progress                   string // its token
	token                      string // "" = alice's
}

// reply is the response. code is that of a protocol error.
type reply struct {
	result  map[string]json.RawMessage
	code    int
	message string
	stream  string
}

func (r *reply) state(t *testing.T) string {
	t.Helper()
	var state string
	if err := json.Unmarshal(r.result["requestState"], &state); err != nil {
		t.Fatalf("no state in %s", r.stream)
	}
	return state
}

const (
	allowOnce = `{"toolreg.approval":{"action":"accept","content":{"decision":"yes"}}}`
	refuse    = `{"toolreg.approval":{"action":"accept","content":{"decision":"no"}}}`
	filledIn  = `{"it":{"action":"accept","content":{}}}`
)

// send sends a request to a replica.
func send(t *testing.T, to *httptest.Server, s sent) *reply {
	t.Helper()
	params := map[string]any{"name": s.tool, "arguments": json.RawMessage(s.args)}
	meta := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "x", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}, mcp.MetaKeyLogLevel: "debug"}
	if s.progress != "" {
		meta["progressToken"] = s.progress
	}
	params["_meta"] = meta
	if s.state != "" {
		params["requestState"] = s.state
	}
	if s.answers != "" {
		params["inputResponses"] = json.RawMessage(s.answers)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.URL+"/mcp", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if s.token == "" {
		s.token = aliceToken
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": s.tool} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return readReply(t, resp)
}

func readReply(t *testing.T, resp *http.Response) *reply {
	t.Helper()
	defer resp.Body.Close()
	var stream bytes.Buffer
	if _, err := stream.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	r := &reply{stream: stream.String()}
	for line := range strings.Lines(r.stream) {
		var message struct {
			Result map[string]json.RawMessage `json:"result"`
			Error  *jsonrpc.Error             `json:"error"`
		}
		if i := strings.Index(line, `{"jsonrpc"`); i < 0 || json.Unmarshal([]byte(line[i:]), &message) != nil {
			continue
		}
		if r.result = message.Result; message.Error != nil {
			r.code, r.message = int(message.Error.Code), message.Error.Message
		}
	}
	return r
}

// rawSession is a session of a client of 2025-11-25 without the SDK.
type rawSession struct{ id, token string }

// send sends a message to a replica.
func (c *rawSession) send(t *testing.T, to *httptest.Server, body string) *http.Response {
	t.Helper()
	return c.do(t.Context(), t, to, http.MethodPost, body)
}

func (c *rawSession) do(ctx context.Context, t *testing.T, to *httptest.Server, method, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, to.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + c.token}}
	if c.id != "" {
		req.Header.Set("Mcp-Session-Id", c.id)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	c.id = cmp.Or(resp.Header.Get("Mcp-Session-Id"), c.id)
	return resp
}

// post sends a request to a replica and returns the answer.
func (c *rawSession) post(t *testing.T, to *httptest.Server, method, params string) string {
	t.Helper()
	answer, err := io.ReadAll(c.send(t, to, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// newRawSession begins a session at a replica.
func newRawSession(t *testing.T, to *httptest.Server, token string) *rawSession {
	t.Helper()
	c := &rawSession{token: token}
	c.post(t, to, "initialize", `"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}`)
	t.Cleanup(func() { c.do(context.WithoutCancel(t.Context()), t, to, http.MethodDelete, "") })
	return c
}

// inTurn sends each request to the next replica.
type inTurn struct {
	replicas []*httptest.Server
	n        atomic.Int64
}

func (i *inTurn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.replicas[int(i.n.Add(1))%len(i.replicas)].Config.Handler.ServeHTTP(w, r)
}
