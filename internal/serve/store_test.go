//go:build unix

//lint:file-ignore SA1019 clients still use features that a later revision deprecates

package serve

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

// sharing is a replica that shares a store with others.
type sharing struct {
	*httptest.Server
	server  *Server
	handler *HTTP
	leave   func()
}

// newSharing starts a replica for each address of the store.
func newSharing(t *testing.T, tokens *auth.Tokens, servers map[string]string, addresses ...string) []*sharing {
	t.Helper()
	out := make([]*sharing, len(addresses))
	for i, address := range addresses {
		out[i] = newSharingReplica(t, HTTPOptions{Tokens: tokens}, servers, address)
	}
	return out
}

func newSharingReplica(t *testing.T, opts HTTPOptions, servers map[string]string, address string) *sharing {
	t.Helper()
	shared, err := store.Open(address, stateKey)
	if err != nil {
		t.Fatal(err)
	}
	shared.Limit = time.Minute // a busy machine may take longer than a use of the store may
	t.Cleanup(shared.Close)
	from := newSession(t, servers)
	t.Cleanup(from.Close)
	if opts.OAuth != nil {
		from.Settings.Serve.OAuth = opts.OAuth.Settings()
	}
	return sharingOf(t, opts, from, shared)
}

func sharingOf(t *testing.T, opts HTTPOptions, from *engine.Session, shared *store.Store) *sharing {
	t.Helper()
	r := &sharing{server: serverWith(t, from, question.Options{Key: stateKey, Store: shared})}
	r.server.SetLimits(Limits{KeepAlive: 50 * time.Millisecond})
	opts.Loopback = true
	r.handler = r.server.HTTP(opts)
	leave, err := r.handler.Join(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	r.leave = sync.OnceFunc(leave)
	t.Cleanup(func() { r.leave() })
	r.Server = httptest.NewServer(r.handler)
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

// sessions returns how many sessions the replica holds.
func (r *sharing) sessions() (n int) {
	for _, of := range r.server.sessions.Counts() {
		n += of
	}
	return n
}

func three(address string) []string { return slices.Repeat([]string{address}, 3) }

// balancer sends each request to the next replica.
type balancer struct {
	mu       sync.Mutex
	replicas []*sharing
	n        int
	url      string
}

func newBalancer(t *testing.T, replicas []*sharing) *balancer {
	t.Helper()
	b := &balancer{replicas: slices.Clone(replicas)}
	proxy := httptest.NewServer(b)
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	b.url = proxy.URL
	return b
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.n++
	to := b.replicas[b.n%len(b.replicas)]
	b.mu.Unlock()
	to.handler.ServeHTTP(w, r)
}

// without sends no more requests to a replica.
func (b *balancer) without(gone *sharing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = slices.DeleteFunc(b.replicas, func(r *sharing) bool { return r == gone })
}

// Clients of old and new revisions make calls with questions, progress and log messages, each
// request at another replica, and receive everything that is theirs, and nothing else.
func TestClientsWithoutAffinity(t *testing.T) {
	tokens := map[string]string{}
	for i := range 10 {
		tokens[clientWord(i)] = fmt.Sprintf("0123456789abcdef-%d", i)
	}
	b := newBalancer(t, newSharing(t, auth.NewTokens(tokens), map[string]string{"m": "--dialogs;modern", "own": "--dialogs;legacy perClient"}, three(storetest.Start(t).URL())...))
	var all sync.WaitGroup
	for i := range 10 {
		revision, server := "2025-11-25", "own__"
		if i%2 == 0 {
			server = "m__"
		}
		if i >= 6 {
			revision = ""
		}
		all.Go(func() {
			c := newClient(t, b.url, tokens[clientWord(i)], clientWord(i), revision)
			for range 2 {
				for n := range 4 {
					c.useDialog(t, server, n)
				}
			}
			waitFor(t, func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return len(c.received) >= 4+6
			})
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.asked != 4 {
				t.Errorf("%s was asked %d times", c.name, c.asked)
			}
			for _, text := range c.received {
				if !strings.Contains(text, c.name) {
					t.Errorf("%s received %q", c.name, text)
				}
			}
		})
	}
	all.Wait()
}

// oldClient is a client with a stream for notifications.
type oldClient struct {
	*mcp.ClientSession
	updated, changed chan string
}

func newOldClient(t *testing.T, url, token string) *oldClient {
	t.Helper()
	c := &oldClient{updated: make(chan string, 100), changed: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "old", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- "tools" }})
	var err error
	c.ClientSession, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: withToken(token)}}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// holder returns the replica that holds the only session.
func holder(t *testing.T, replicas []*sharing) *sharing {
	t.Helper()
	var found *sharing
	waitFor(t, func() bool {
		n := 0
		for _, r := range replicas {
			if r.sessions() > 0 {
				found = r
				n++
			}
		}
		return n == 1
	})
	return found
}

// Subscriptions and notices of changes arrive without affinity, and go on when the replica that
// holds the session has given it up before it ends.
func TestSessionMovesWhenItsReplicaEnds(t *testing.T) {
	u := newUpstream(t, pageURI)
	add := func(name string) {
		u.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	add("old")
	redis := storetest.Start(t)
	replicas := newSharing(t, auth.NewTokens(map[string]string{"alice": aliceToken, "bob": bobToken}), map[string]string{"m": u.url}, three(redis.URL())...)
	b := newBalancer(t, replicas)
	c := newOldClient(t, b.url, aliceToken)
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: pageURI}); err != nil {
		t.Fatal(err)
	}
	<-u.added
	u.touch(t, c.updated)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Accept": "text/event-stream", "Mcp-Session-Id": c.ID(), "Authorization": "Bearer " + bobToken} {
		req.Header.Set(name, value)
	}
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("another client's session: %v %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	for range 2 {
		first := holder(t, replicas)
		b.without(first)
		if left := first.handler.Drain(t.Context()); left != 0 {
			t.Errorf("%d calls are left", left)
		}
		first.server.Wait()
		first.leave()
		if err := c.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		<-u.added
		u.touch(t, c.updated)
	}
	add("new")
	<-c.changed
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return redis.Do("KEYS", "toolreg:session:*") == "" })
}

// While a replica waits for the calls of one session, others take over its other sessions.
func TestIdleSessionsMoveFirst(t *testing.T) {
	u := newUpstream(t)
	begun, end := u.hold(t)
	replicas := newSharing(t, nil, map[string]string{"m": u.url, "n": ""}, three(storetest.Start(t).URL())[:2]...)
	first, second := newBalancer(t, replicas[:1]), newBalancer(t, replicas[1:])
	busy, idle := newClient(t, first.url, "", "<busy>", "2025-11-25"), newClient(t, first.url, "", "<idle>", "2025-11-25")
	done := make(chan *reply)
	go func() { done <- busy.raw(t, replicas[1].URL, "hold", `{}`) }()
	<-begun
	ended := make(chan int, 1)
	go func() { ended <- replicas[0].handler.Drain(t.Context()) }()
	waitFor(t, func() bool { return replicas[0].handler.endpoint.draining.Load() })
	if r := idle.raw(t, second.url, "slow", `{"seconds":0}`); !strings.Contains(r.stream, "slept") {
		t.Errorf("%+v", r)
	}
	if n := replicas[0].sessions(); n != 1 || len(ended) > 0 {
		t.Errorf("%d sessions are left", n)
	}
	end()
	if r := <-done; !strings.Contains(r.stream, "held") {
		t.Errorf("%+v", r)
	}
	if left := <-ended; left != 0 {
		t.Errorf("%d calls are left", left)
	}
	first.mu.Lock()
	first.replicas = replicas[1:] // for the end of the sessions
	first.mu.Unlock()
}

// A replica whose health check fails, but that still accepts requests, takes over a session that
// another one gave up.
func TestLeavingReplicaTakesOver(t *testing.T) {
	replicas := newSharing(t, nil, map[string]string{"m": "--dialogs;modern"}, three(storetest.Start(t).URL())[:2]...)
	b := newBalancer(t, replicas[:1])
	c := newClient(t, b.url, "", "<c>", "2025-11-25")
	if left := replicas[0].handler.Drain(t.Context()); left != 0 {
		t.Errorf("%d calls are left", left)
	}
	replicas[0].server.Wait()
	replicas[1].handler.leaving.Store(true)
	if r := c.raw(t, replicas[1].URL, "slow", `{"seconds":0}`); !strings.Contains(r.stream, "slept") {
		t.Errorf("%+v", r)
	}
	b.mu.Lock()
	b.replicas = replicas[1:] // for the end of the session
	b.mu.Unlock()
}

// A replica that the store does not reach any more keeps its sessions for clients that reach it,
// until another has taken them over.
func TestSessionMovesWhenItsReplicaIsCutOff(t *testing.T) {
	redis := storetest.Start(t)
	link := storetest.NewProxy(t, redis.Address)
	u := newUpstream(t)
	begun, _ := u.hold(t)
	replicas := newSharing(t, nil, map[string]string{"m": "--dialogs;modern", "n": u.url}, link.URL(), redis.URL())
	b := newBalancer(t, replicas[:1])
	c := newClient(t, b.url, "", "<x>", "2025-11-25")
	calling, cancel := context.WithCancel(t.Context())
	running := make(chan error)
	go func() {
		_, err := c.CallTool(calling, &mcp.CallToolParams{Name: "hold"})
		running <- err
	}()
	<-begun
	link.Swallow(true)
	c.useDialog(t, "m__", 0)
	b.mu.Lock()
	b.replicas = replicas[1:]
	b.mu.Unlock()
	c.useDialog(t, "m__", 0) // it is forwarded
	waitFor(t, func() bool {
		at, err := replicas[1].server.replica.Find(t.Context(), replicas[0].server.replica.ID)
		return err == nil && at == cluster.Peer{}
	})
	c.useDialog(t, "m__", 0)
	link.Swallow(false)
	link.Break()
	waitFor(t, func() bool { return replicas[0].server.running() == 0 }) // of the session that is over there
	cancel()
	<-running
	b.mu.Lock()
	b.replicas = replicas
	b.mu.Unlock()
	for range 4 {
		c.useDialog(t, "m__", 0)
	}
}

// While the store is away, sessions go on where they are, and other replicas say so. A call that
// another replica runs goes on, too. A store that comes back empty gets the records again.
func TestSessionsOutliveTheStore(t *testing.T) {
	redis := storetest.Start(t)
	u := newUpstream(t)
	begun, end := u.hold(t)
	replicas := newSharing(t, nil, map[string]string{"m": "--dialogs;modern", "n": u.url}, redis.URL(), redis.URL())
	c := newClient(t, replicas[0].URL, "", "<x>", "2025-11-25")
	running := make(chan *reply)
	go func() { running <- c.raw(t, replicas[1].URL, "hold", `{}`) }()
	<-begun
	redis.Kill()
	c.useDialog(t, "m__", 0)
	if r := c.raw(t, replicas[1].URL, "slow", `{"seconds":0}`); !strings.Contains(r.stream, "cannot be used now") {
		t.Errorf("%+v", r)
	}
	redis.Again()
	waitFor(t, func() bool {
		r := c.raw(t, replicas[1].URL, "slow", `{"seconds":0}`)
		if strings.Contains(r.stream, "not found") {
			t.Error("the session was said to be over")
		}
		return strings.Contains(r.stream, "slept")
	})
	end()
	if r := <-running; !strings.Contains(r.stream, "held") {
		t.Errorf("%+v", r)
	}
}

// raw makes a call of the client's session at a replica.
func (c *testClient) raw(t *testing.T, url, tool, args string) *reply {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, rand.Text(), tool, args)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": c.ID(), "Mcp-Protocol-Version": "2025-11-25"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return &reply{}
	}
	return readReply(t, resp)
}

// A client of a revision without sessions has one process of a server with perClient, at
// whichever replica its calls arrive. A replica that is to end waits for the answer to a question
// that no other one could continue from.
func TestOneProcessOfEachClientAmongReplicas(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "starts")
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken, "bob": bobToken})
	replicas := newSharing(t, tokens, map[string]string{"l": "--dialogs --offers --marker " + marker + ";legacy perClient"}, three(storetest.Start(t).URL())...)
	starts := func() int {
		text, err := os.ReadFile(marker)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	const listed = 3 // by each replica
	b := newBalancer(t, replicas)
	alice, bob := newClient(t, b.url, aliceToken, "alice", ""), newClient(t, b.url, bobToken, "bob", "")
	for range 3 {
		alice.useDialog(t, "l__", 0)
		bob.useDialog(t, "l__", 1)
		if _, err := bob.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "review"}); err != nil {
			t.Error(err)
		}
		if _, err := alice.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://both"}); err != nil {
			t.Error(err)
		}
	}
	if n := starts(); n != listed+2 {
		t.Errorf("%d starts", n)
	}
	question := sent{tool: "l__form", args: `{"message":"m","schema":{"type":"object"}}`}
	asked := send(t, replicas[0].Server, question)
	var first *sharing
	for _, r := range replicas {
		if r.server.states.OnlyHere("") {
			first = r
		}
	}
	ended := make(chan int, 1)
	go func() { ended <- first.handler.Drain(t.Context()) }()
	waitFor(t, func() bool { return first.handler.endpoint.draining.Load() })
	b.without(first)
	for range 2 {
		alice.useDialog(t, "l__", 0)
	}
	if n := starts(); n != listed+3 {
		t.Errorf("%d starts after a replica was to end", n)
	}
	if len(ended) > 0 {
		t.Error("a replica ended before its question was answered")
	}
	question.state, question.answers = asked.state(t), `{"toolreg.question":{"action":"accept","content":{}}}`
	if answer := send(t, b.replicas[0].Server, question); !strings.Contains(answer.stream, "accept") {
		t.Errorf("%+v", answer)
	}
	if left := <-ended; left != 0 {
		t.Errorf("%d calls are left", left)
	}
	if again := send(t, b.replicas[1].Server, question); again.code != -32602 || !strings.Contains(again.message, "already answered") {
		t.Errorf("%+v", again)
	}
}

// A client asks any replica for its task.
func TestTasksAmongReplicas(t *testing.T) {
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken, "bob": bobToken})
	replicas := newSharing(t, tokens, map[string]string{"s": "--tasks"}, three(storetest.Start(t).URL())...)
	about := func(r *sharing, token, method, params string) string {
		t.Helper()
		caps := `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":{"` + mcp.MetaKeyProtocolVersion + `":"2026-07-28","` +
			mcp.MetaKeyClientInfo + `":{"name":"t","version":"1"},"` + mcp.MetaKeyClientCapabilities + `":` + caps + `}}}`
		name := regexp.MustCompile(`"(?:name|taskId)":"([^"]*)"`).FindStringSubmatch(params)[1]
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"},
			"Mcp-Method": {method}, "Mcp-Name": {name}, "Authorization": {"Bearer " + token}}
		answer, _ := answerTo(t, req)
		return answer
	}
	created := about(replicas[0], aliceToken, "tools/call", `"name":"endless","arguments":{}`)
	found := regexp.MustCompile(`"taskId":"([^"]*)"`).FindStringSubmatch(created)
	if found == nil {
		t.Fatal(created)
	}
	task := `"taskId":"` + found[1] + `"`
	for _, r := range replicas {
		if got := about(r, aliceToken, "tasks/get", task); !strings.Contains(got, `"status":"working"`) {
			t.Error(got)
		}
		if got := about(r, bobToken, "tasks/get", task); !strings.Contains(got, "there is no such task") {
			t.Error(got)
		}
	}
	if got := newRawSession(t, replicas[1].Server, aliceToken).post(t, replicas[1].Server, "tasks/get", task); !strings.Contains(got, `"status":"working"`) {
		t.Errorf("in a session: %s", got)
	}
	about(replicas[1], aliceToken, "tasks/cancel", task)
	waitFor(t, func() bool {
		return strings.Contains(about(replicas[2], aliceToken, "tasks/get", task), `"status":"cancelled"`)
	})

	// A replica that is to end waits for its tasks, whose results outlast it.
	idOf := func(created string) string {
		found := regexp.MustCompile(`"taskId":"[^"]*"`).FindString(created)
		if found == "" {
			t.Fatal(created)
		}
		return found
	}
	short := idOf(about(replicas[0], aliceToken, "tools/call", `"name":"slow_compute","arguments":{"seconds":0.5}`))
	endless := idOf(about(replicas[1], aliceToken, "tools/call", `"name":"endless","arguments":{}`))
	within, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if left := replicas[0].handler.Drain(within); left != 0 {
		t.Errorf("%d are left", left)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if left := replicas[1].handler.Drain(over); left != 1 {
		t.Errorf("%d are left", left)
	}
	for _, r := range replicas[:2] {
		r.leave()
		r.server.Wait()
	}
	last := replicas[2]
	for task, want := range map[string]string{short: `"status":"completed".*"result":\{"content":\[\{"type":"text","text":"computed"\}\]\}`, endless: "the server is stopping"} {
		if got := about(last, aliceToken, "tasks/get", task); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("a task of a replica that has ended: %s", got)
		}
		if got := about(last, bobToken, "tasks/get", task); !strings.Contains(got, "there is no such task") {
			t.Error(got)
		}
		if got := about(last, aliceToken, "tasks/cancel", task); !strings.Contains(got, `"resultType":"complete"`) {
			t.Error(got)
		}
	}
}

// start makes a call as a task at a replica, and returns the member that names the task.
func (c *rawSession) start(t *testing.T, r *sharing, params string) string {
	t.Helper()
	created := c.post(t, r.Server, "tools/call", params+`,"task":{}`)
	task := regexp.MustCompile(`"taskId":"[^"]*"`).FindString(created)
	if task == "" {
		t.Fatal(created)
	}
	return task
}

// A session finds the tasks of its token that other replicas have, wherever they were made.
func TestSessionsFindTasksOfOtherReplicas(t *testing.T) {
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken, "bob": bobToken})
	replicas := newSharing(t, tokens, map[string]string{"s": "--tasks"}, three(storetest.Start(t).URL())...)
	here, there := newRawSession(t, replicas[0].Server, aliceToken), newRawSession(t, replicas[1].Server, aliceToken)
	bob := newRawSession(t, replicas[1].Server, bobToken)

	endless := here.start(t, replicas[0], `"name":"endless","arguments":{}`)
	for _, r := range replicas {
		if got := there.post(t, r.Server, "tasks/get", endless); !strings.Contains(got, `"status":"working"`) || !strings.Contains(got, `"ttl":3600000`) {
			t.Errorf("the state: %s", got)
		}
	}
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if got := bob.post(t, replicas[1].Server, method, endless); !strings.Contains(got, "there is no such task") {
			t.Errorf("%s of another token: %s", method, got)
		}
	}
	if got := there.post(t, replicas[1].Server, "tasks/cancel", endless); !strings.Contains(got, `"status":"cancelled"`) {
		t.Errorf("cancel: %s", got)
	}

	slow := here.start(t, replicas[0], `"name":"slow_compute","arguments":{"seconds":0.2}`)
	if got := there.post(t, replicas[2].Server, "tasks/result", slow); !strings.Contains(got, "computed") || !strings.Contains(got, "related-task") {
		t.Errorf("the result: %s", got)
	}

	// What the task asks is sent with the answer to tasks/result, and withdrawn when another session waits for it.
	asking := here.start(t, replicas[0], `"name":"multi_input","arguments":{}`)
	result := `{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{` + asking + `}}`
	question := regexp.MustCompile(`"id":(\d+),"method":"elicitation/create","params":\{.*asks: (One|Two)\?`)
	until := func(lines *bufio.Scanner, what *regexp.Regexp) []string {
		t.Helper()
		for lines.Scan() {
			if found := what.FindStringSubmatch(lines.Text()); found != nil {
				return found
			}
		}
		t.Fatalf("the answer ends without %s", what)
		return nil
	}
	first := bufio.NewScanner(there.send(t, replicas[1].Server, result).Body)
	until(first, question)
	second := newRawSession(t, replicas[2].Server, aliceToken)
	lines := bufio.NewScanner(second.send(t, replicas[2].Server, result).Body)
	for _, name := range []string{"One", "Two"} {
		asked := until(lines, question)
		if asked[2] != name {
			t.Errorf("asked %s", asked[2])
		}
		second.send(t, replicas[0].Server, `{"jsonrpc":"2.0","id":`+asked[1]+`,"result":{"action":"accept","content":{"name":"x"}}}`)
	}
	until(lines, regexp.MustCompile(`"text":"both"`))
	until(first, regexp.MustCompile(`notifications/cancelled`))
	until(first, regexp.MustCompile(`"text":"both"`))
}

// A client of 2025-11-25 finds its task when its session goes on in another replica.
func TestTasksOfTakenOverSessions(t *testing.T) {
	replicas := newSharing(t, auth.NewTokens(map[string]string{"alice": aliceToken}), map[string]string{"s": "--tasks"}, three(storetest.Start(t).URL())...)
	c := newRawSession(t, replicas[0].Server, aliceToken)
	post := func(r *sharing, method, params string) string { t.Helper(); return c.post(t, r.Server, method, params) }
	task := c.start(t, replicas[1], `"name":"slow_compute","arguments":{"seconds":0.2}`)
	if got := post(replicas[2], "tasks/result", task); !strings.Contains(got, "computed") {
		t.Errorf("the result: %s", got)
	}
	within, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if left := replicas[0].handler.Drain(within); left != 0 {
		t.Errorf("%d are left", left)
	}
	replicas[0].leave()
	if got := post(replicas[1], "tasks/result", task); !strings.Contains(got, "computed") {
		t.Errorf("the result after the session was taken over: %s", got)
	}
	if got := post(replicas[2], "tasks/get", task); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("the state: %s", got)
	}
	if got := post(replicas[2], "tasks/update", task); !strings.Contains(got, "-32601") {
		t.Errorf("a method of another revision: %s", got)
	}
	if got := post(replicas[2], "tools/call", `"name":"slow_compute","arguments":{},"task":{}`); !strings.Contains(got, `"task":{"taskId":`) {
		t.Errorf("another task: %s", got)
	}
	post(replicas[2], "ping", `"_meta":{"toolreg/request":{"method":"tools/call"}}`)
	if got := post(replicas[1], "ping", ""); !strings.Contains(got, `"result":{}`) {
		t.Errorf("ping: %s", got)
	}
	for _, r := range replicas[1:] {
		r.handler.Drain(within)
	}
}

// An answer that cannot be recorded, because the store is away, can be given again later.
func TestAnswerWhileTheStoreIsAway(t *testing.T) {
	redis := storetest.Start(t)
	proxy := storetest.NewProxy(t, redis.Address)
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken})
	replica := newSharing(t, tokens, map[string]string{"m": "--dialogs;legacy"}, proxy.URL())[0]
	question := sent{tool: "form", args: `{"message":"m","schema":{"type":"object"}}`}
	question.state = send(t, replica.Server, question).state(t)
	question.answers = `{"toolreg.question":{"action":"accept","content":{}}}`
	proxy.To("127.0.0.1:1")
	if r := send(t, replica.Server, question); r.code != -32603 || !strings.Contains(r.message, "cannot be used now") {
		t.Errorf("%+v", r)
	}
	proxy.To(redis.Address)
	waitFor(t, func() bool {
		r := send(t, replica.Server, question)
		if r.code == -32602 {
			t.Fatalf("%+v", r)
		}
		return strings.Contains(r.stream, "accept")
	})
}

// A replica that is to end leaves a call that waits here to another one that can run it again, and the
// answer does not begin it here.
func TestLeavingReplicaLeavesWaitingCalls(t *testing.T) {
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken})
	replicas := newSharing(t, tokens, map[string]string{"m": "--dialogs;modern"}, three(storetest.Start(t).URL())[:2]...)
	question := sent{tool: "form", args: `{"message":"m"}`}
	question.state = send(t, replicas[0].Server, question).state(t)
	question.answers = filledIn
	if left := replicas[0].handler.Drain(t.Context()); left != 0 {
		t.Errorf("%d calls are left", left)
	}
	if r := send(t, replicas[1].Server, question); !strings.Contains(r.stream, "accept") {
		t.Errorf("%+v", r)
	}
	if got := fmt.Sprint(replicas[0].server.calls.ended, replicas[1].server.calls.ended); got != "map[] map[[alice ok]:1]" {
		t.Errorf("calls have ended: %s", got)
	}
}
