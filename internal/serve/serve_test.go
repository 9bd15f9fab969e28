//lint:file-ignore SA1019 clients still use features that a later revision deprecates

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// serverDir is the folder of mcp-testserver.
var serverDir string

func TestMain(m *testing.M) {
	var err error
	if serverDir, err = mcptest.Build(); err != nil {
		log.Fatal(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(serverDir)
		os.Exit(code)
	}), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		// On a busy machine a client may be gone before its session has begun, which then waits for a message
		// until it is unused for long. TestNothingIsLeft sees that none stays.
		goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

// newServer serves the tools of real servers. Each entry has the flags of mcptest's
// server, a URL or command:PROGRAM, and optionally a semicolon and further settings.
func newServer(t testing.TB, servers map[string]string) *Server {
	t.Helper()
	s := newSession(t, servers)
	t.Cleanup(s.Close)
	return serverOf(t, s)
}

func serverOf(t testing.TB, s *engine.Session) *Server { return serverWith(t, s, question.Options{}) }

func serverWith(t testing.TB, s *engine.Session, q question.Options) *Server {
	t.Helper()
	return serverFrom(t, s, Options{Questions: q})
}

// serverFrom serves all tools of a session.
func serverFrom(t testing.TB, s *engine.Session, opts Options) *Server {
	t.Helper()
	opts.Whole.Select = func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
		reg, err := s.Tools.All(ctx)
		return reg, engine.FoundIn(reg, reg.Tools()), err
	}
	server := New(opts)
	t.Cleanup(server.Wait)
	if err := server.Load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return server
}

// newSession makes the session of newServer, which the caller closes.
func newSession(t testing.TB, servers map[string]string) *engine.Session {
	t.Helper()
	return newSessionAsking(t, question.Asker{}, servers)
}

func newSessionAsking(t testing.TB, asker question.Asker, servers map[string]string) *engine.Session {
	t.Helper()
	return newSessionIn(t, t.TempDir(), asker, servers)
}

// newSessionIn is newSessionAsking with a project root, whose settings it replaces.
func newSessionIn(t testing.TB, dir string, asker question.Asker, servers map[string]string) *engine.Session {
	t.Helper()
	entries := map[string]any{}
	var options engine.Options
	ttl := "0"
	for name, spec := range servers {
		flags, protocol, _ := strings.Cut(spec, ";")
		entry := map[string]any{"command": filepath.Join(serverDir, "mcp-testserver"), "args": strings.Fields(flags), "trust": true}
		if strings.HasPrefix(flags, "http") {
			delete(entry, "command")
			entry["httpUrl"] = flags
		}
		if program, ok := strings.CutPrefix(flags, "command:"); ok {
			entry["command"], entry["args"] = program, []string{}
		}
		for word := range strings.FieldsSeq(protocol) {
			word, value, _ := strings.Cut(word, "=")
			switch word {
			case "perClient":
				entry["perClient"] = true
			case "login": // each client has its own
				entry["oauth"], options.ClientLogins, ttl = map[string]any{"per": "client", "redirectUri": value}, true, "1h"
			case "asks": // calls need approval
				entry["trust"] = false
			default:
				entry["protocol"] = word
			}
		}
		entries[name] = entry
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries, "cache": map[string]any{"discovery": ttl}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "s.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{file}, NoUser: true, Environ: environOf(dir)})
	if err != nil {
		t.Fatal(err)
	}
	return sessionWith(t, dir, asker, set, options)
}

func environOf(dir string) []string {
	return append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "XDG_CACHE_HOME="+dir+"/cache", "XDG_CONFIG_HOME="+dir+"/config")
}

func sessionWith(t testing.TB, dir string, asker question.Asker, set *settings.Settings, options engine.Options) *engine.Session {
	t.Helper()
	environ := environOf(dir)
	s, err := engine.New(t.Context(), set, engine.Deps{Dir: dir, Environ: environ, Folders: &state.Folders{Environ: environ}, Asker: asker, LogLevel: "debug", ServerLog: question.LogTo(func() func(mcpclient.LogMessage) { return func(mcpclient.LogMessage) {} }),
		Warn: func(registry.Diagnostic) {}, Outcome: func(context.Context, error) (string, int) { return "", 0 }}, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testClient is a client that answers every question with its name, and allows every
// call once.
type testClient struct {
	*mcp.ClientSession
	name string

	mu       sync.Mutex
	received []string // questions, progress and log messages
	asked    int      // questions among them
}

func (c *testClient) receive(text string, asked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, text)
	c.asked += asked
}

// newClient connects a client that uses a revision; "" is the newest.
func newClient(t testing.TB, url, token, name, revision string) *testClient {
	t.Helper()
	c := &testClient{name: name}
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.receive(r.Params.Message, 1)
			content := map[string]any{"who": c.name}
			if schema, err := json.Marshal(r.Params.RequestedSchema); err == nil && strings.Contains(string(schema), `"decision"`) {
				content = map[string]any{"decision": exec.WordYes}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			prompt, _ := r.Params.Messages[0].Content.(*mcp.TextContent)
			c.receive(prompt.Text, 1)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "model", Content: &mcp.TextContent{Text: c.name}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.receive(r.Params.Message, 0)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			c.receive(fmt.Sprint(r.Params.Data), 0)
		},
	})
	var err error
	c.ClientSession, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: withToken(token)}, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	if revision != "" {
		if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// withToken adds a token to requests.
type withToken string

func (b withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func listen(t testing.TB, s *Server, tokens *auth.Tokens) *httptest.Server {
	t.Helper()
	return serveHandler(t, s.HTTP(HTTPOptions{Tokens: tokens, Loopback: true}))
}

func serveHandler(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	return h
}

// serveUpstream starts a server for the settings that serves handler, and returns its
// URL. Its connections stay open until the end of the test.
func serveUpstream(t testing.TB, handler http.Handler) string {
	t.Helper()
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL
}

// Fifty clients of old and new revisions make calls during which a server sends
// questions, progress and log messages, each client with its own word. No client receives
// what belongs to another, whether the server has one process for all clients or one for
// each.
func TestClientsAreApart(t *testing.T) {
	s := newServer(t, map[string]string{"m": "--dialogs;modern", "own": "--dialogs;legacy perClient"})
	const owners = 4
	clients := make([]*testClient, 25)
	tokens := map[string]string{"nobody": "0123456789abcdef"}
	for i := range clients {
		name, token := clientWord(i), fmt.Sprintf("0123456789abcdef-%d", i)
		tokens[name] = token
	}
	h := listen(t, s, auth.NewTokens(tokens))
	var wg sync.WaitGroup
	for i := range clients {
		revision := ""
		if i%2 == 0 {
			revision = "2025-11-25"
		}
		c := newClient(t, h.URL, fmt.Sprintf("0123456789abcdef-%d", i), clientWord(i), revision)
		clients[i] = c
		wg.Go(func() {
			server := "m__"
			if i < owners {
				server = "own__"
			}
			for range 2 {
				for _, n := range rand.Perm(4) {
					c.useDialog(t, server, n)
				}
			}
		})
	}
	wg.Wait()
	for i, c := range clients {
		want := 4 + 6 // questions and progress
		if i < owners {
			want += 3 // log messages: the protocol does not say to which of several calls they belong, and those of the first call may come too early
		}
		count := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.received)
		}
		waitFor(t, func() bool { return count() >= want })
		c.mu.Lock() // more may arrive
		asked, received := c.asked, slices.Clone(c.received)
		c.mu.Unlock()
		if asked != 4 {
			t.Errorf("%s was asked %d times, want 4", c.name, asked)
		}
		for _, text := range received {
			if !strings.Contains(text, c.name) {
				t.Errorf("%s received %q", c.name, text)
			}
		}
	}
}

// clientWord returns a name that is not a prefix of another.
func clientWord(i int) string { return fmt.Sprintf("<client-%d>", i) }

// useDialog makes one of four calls during which a server sends questions, progress or
// log messages.
func (c *testClient) useDialog(t *testing.T, server string, n int) {
	dialog := []struct {
		tool string
		args map[string]any
		want string
	}{
		{"form", map[string]any{"message": "for " + c.name, "schema": json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}},"required":["who"]}`)}, `accept {"who":"` + c.name + `"}`},
		{"sample", map[string]any{"prompt": "from " + c.name}, "model says " + c.name},
		{"work", map[string]any{"steps": 3, "pause": 1, "message": c.name}, ""},
		{"log", map[string]any{"text": c.name, "count": 3}, "logged"},
	}[n]
	params := &mcp.CallToolParams{Meta: mcp.Meta{mcp.MetaKeyLogLevel: "debug"}, Name: server + dialog.tool, Arguments: dialog.args}
	params.SetProgressToken(c.name)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := c.CallTool(ctx, params)
	text := strings.NewReplacer("\\u003c", "<", "\\u003e", ">").Replace(textOf(r))
	if err != nil || r.IsError || !strings.Contains(text, dialog.want) {
		t.Errorf("%s: %s: %q, %v", c.name, params.Name, text, err)
	}
}

// While calls of two clients run, a request from a server of an older revision may
// concern either, so neither client is asked.
func TestSharedLegacyServerAsksNobody(t *testing.T) {
	s := newServer(t, map[string]string{"l": "--dialogs;legacy"})
	h := listen(t, s, nil)
	busy, asking := newClient(t, h.URL, "", "busy", ""), newClient(t, h.URL, "", "asking", "2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		defer close(started)
		params := &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 2, "pause": 60_000, "message": "begun"}}
		params.SetProgressToken("busy")
		_, _ = busy.CallTool(ctx, params)
	}()
	waitFor(t, func() bool { // the server has the call
		busy.mu.Lock()
		defer busy.mu.Unlock()
		return len(busy.received) > 0
	})
	r, err := asking.CallTool(t.Context(), &mcp.CallToolParams{Name: "form", Arguments: map[string]any{"message": "m"}})
	if err != nil || !strings.Contains(textOf(r), "decline") || !strings.Contains(textOf(r), "perClient: true") {
		t.Errorf("got %v, %v", textOf(r), err)
	}
	cancel()
	<-started
	waitFor(t, func() bool { return s.running() == 0 })
	r, err = asking.CallTool(t.Context(), &mcp.CallToolParams{Name: "form", Arguments: map[string]any{"message": "m", "schema": json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}}}`)}})
	if err != nil || !strings.Contains(textOf(r), "accept") {
		t.Errorf("alone: got %v, %v", textOf(r), err)
	}
	if busy.asked > 0 {
		t.Errorf("the other client was asked: %q", busy.received)
	}
}

// With perClient each client has a process of its own, which asks its client alone.
func TestPerClient(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "starts")
	s := newServer(t, map[string]string{"l": "--dialogs --marker " + marker + ";legacy perClient"})
	h := listen(t, s, nil)
	var wg sync.WaitGroup
	for i := range 5 {
		c := newClient(t, h.URL, "", fmt.Sprint("client-", i), "2025-11-25")
		wg.Go(func() {
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "form", Arguments: map[string]any{"message": "m", "schema": json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}}}`)}})
			if err != nil || !strings.Contains(textOf(r), c.name) {
				t.Errorf("%s: %v, %v", c.name, textOf(r), err)
			}
		})
	}
	wg.Wait()
	starts, err := os.ReadFile(marker)
	if n := strings.Count(string(starts), "\n"); err != nil || n != 6 { // including one to list the tools
		t.Errorf("%d starts, %v", n, err)
	}
}

// A hundred clients at once share one process of a server.
func TestOneProcessForAll(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "starts")
	s := newServer(t, map[string]string{"m": "--marker " + marker})
	h := listen(t, s, nil)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			c := newClient(t, h.URL, "", fmt.Sprint(i), []string{"", "2025-06-18"}[i%2])
			if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": fmt.Sprint("hello ", i)}}); err != nil || textOf(r) != fmt.Sprint("hello ", i) {
				t.Errorf("client %d: %v, %v", i, textOf(r), err)
			}
		})
	}
	wg.Wait()
	starts, err := os.ReadFile(marker)
	if n := strings.Count(string(starts), "\n"); err != nil || n != 1 {
		t.Errorf("%d starts, %v", n, err)
	}
}

// Canceling a request ends its call and leaves nothing running.
func TestCanceledCallsEnd(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	h := listen(t, s, nil)
	for _, revision := range []string{"", "2025-11-25"} {
		c := newClient(t, h.URL, "", "c", revision)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 60}})
			done <- err
		}()
		waitFor(t, func() bool { return s.running() == 1 })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", revision, err)
		}
		waitFor(t, func() bool { return s.running() == 0 })
	}
}

// A canceled call is not answered over HTTP either, whatever type its id has; others are.
func TestCanceledCallsAreNotAnswered(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	h := listen(t, s, nil)
	session := ""
	send := func(body string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		answer, header := answerTo(t, req)
		if session == "" { // only that of initialize, which no other request accompanies
			session = header.Get("Mcp-Session-Id")
		}
		return answer
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, tt := range []struct {
		id, cancels string
		answered    bool
	}{{"7", "7", false}, {`"7"`, `"7"`, false}, {`"a b"`, `"a b"`, false}, {"8", `"8"`, true}, {"9", "10", true}} {
		seconds := 60
		if tt.answered {
			seconds = 0
		}
		done := make(chan string, 1)
		go func() {
			done <- send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":%d}}}`, tt.id, seconds))
		}()
		if !tt.answered {
			waitFor(t, func() bool { return s.running() == 1 })
			send(`{"jsonrpc":"2.0","id":` + tt.id + `,"result":{}}`) // questions of the server have ids of their own
		}
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + tt.cancels + `}}`)
		if got := <-done; strings.Contains(got, `"id":`+tt.id) != tt.answered {
			t.Errorf("id %s, canceled %s: the answer is %q", tt.id, tt.cancels, got)
		}
		waitFor(t, func() bool { return s.running() == 0 }) // or the next call would be taken for this one
	}
	end, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.URL+"/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	end.Header.Set("Mcp-Session-Id", session)
	answerTo(t, end)
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if got := fmt.Sprint(s.calls.ended); got != "map[[local ok]:2]" {
		t.Errorf("the metrics count %s", got)
	}
}

// running returns how many calls are running.
func (s *Server) running() int {
	return sum(s.calls.running.Counts())
}

// sum returns the sum of what clients have.
func sum(counts map[string]int) (n int) {
	for _, of := range counts {
		n += of
	}
	return n
}

// waitFor waits until holds returns true.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the condition did not become true within 2 minutes")
		}
	}
}

func textOf(r *mcp.CallToolResult) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func BenchmarkEcho(b *testing.B) {
	s := newServer(b, map[string]string{"m": ""})
	h := listen(b, s, nil)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		b.Run(revision, func(b *testing.B) {
			c := newClient(b, h.URL, "", "bench", map[bool]string{true: "", false: revision}[revision == wire.FirstModern])
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// answerTo sends a request and returns the answer.
func answerTo(t *testing.T, req *http.Request) (string, http.Header) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer), resp.Header
}

// What the SDK does not take is answered over HTTP as on stdin: a request with a JSON-RPC error, which clients do not
// take for a failure of the connection. A notification that is not known is dropped.
func TestUnknownMethodsOverHTTP(t *testing.T) {
	to := listen(t, newServer(t, nil), nil)
	c := newRawSession(t, to, "")
	for message, want := range map[string]string{
		`"id":1,"method":"no/such"`:                   `200 {"error":{"code":-32601,"message":"method not found: \"no/such\""},"id":1,"jsonrpc":"2.0"}`,
		`"id":"a","method":"tools/call"`:              `200 {"error":{"code":-32600,"message":"invalid request: missing required \"params\""},"id":"a","jsonrpc":"2.0"}`,
		`"id":2,"method":"notifications/initialized"`: `200 {"error":{"code":-32600,"message":"invalid request: unexpected id for \"notifications/initialized\""},"id":2,"jsonrpc":"2.0"}`,
		`"method":"notifications/no/such"`:            `202 `,
		`"method":"tools/list"`:                       `400 invalid request: missing id for "tools/list"`,
	} {
		resp := c.send(t, to, `{"jsonrpc":"2.0",`+message+`}`)
		body, err := io.ReadAll(resp.Body)
		if got := fmt.Sprintf("%d %s", resp.StatusCode, bytes.TrimSpace(body)); err != nil || got != want {
			t.Errorf("%s: %s, %v", message, got, err)
		}
	}
}

// A form whose field is optional in the words of a library reaches clients in those of the protocol, which their SDKs
// check. The SDK's servers before 2026-07-28 check them as well, see package ask.
func TestFormsAreSettledForClients(t *testing.T) {
	const schema = `{"type":"object","properties":{"who":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`
	h := listen(t, newServer(t, map[string]string{"m": "--dialogs;modern"}), nil)
	for _, revision := range []string{"2025-11-25", ""} {
		c := newClient(t, h.URL, "", "ada", revision)
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "form", Arguments: map[string]any{"schema": json.RawMessage(schema)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Content[0].(*mcp.TextContent).Text; got != `accept {"who":"ada"}` {
			t.Errorf("client of %q: %s", revision, got)
		}
	}
}

// A client is not sent to an address that hides its host, whichever way its server asks.
func TestAddressesAreCheckedForClients(t *testing.T) {
	for _, flags := range []string{"--dialogs;modern", "--dialogs;legacy"} {
		h := listen(t, newServer(t, map[string]string{"m": flags}), nil)
		client := mcp.NewClient(&mcp.Implementation{Name: "ada", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				t.Errorf("%s: the client is asked to open %s", flags, r.Params.URL)
				return &mcp.ElicitResult{Action: "decline"}, nil
			},
		})
		c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp", DisableStandaloneSSE: true, MaxRetries: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "open", Arguments: map[string]any{"url": "https://bank@evil.example/"}}); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
