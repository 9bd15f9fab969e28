package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

// A client that does not read its responses does not delay other clients of the same
// server.
func TestClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	s := newServer(t, map[string]string{"m": "--dialogs"})
	h := listen(t, s, nil)
	deaf := (&soaking{revision: "2025-03-26", url: h.URL + auth.Endpoint, http: h.Client()})
	if err := deaf.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{"steps":4000,"pause":0,"message":"` + strings.Repeat("x", 3000) + `"},"_meta":{"progressToken":"p"}}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", deaf.session, len(body), body)
	if _, err := bufio.NewReaderSize(conn, 16).ReadByte(); err != nil { // read the first byte of the progress, and no more
		t.Fatal(err)
	}
	c := newClient(t, h.URL, "", "other", "2025-11-25")
	for range 100 {
		if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}); err != nil || textOf(r) != "hello" {
			t.Fatalf("%v, %v", textOf(r), err)
		}
	}
	_ = conn.Close()
	if err := deaf.end(t.Context()); err != nil {
		t.Error(err)
	}
}

// The number of running calls is limited for each token and for all clients together.
func TestRunningCallsAreLimited(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	s.SetLimits(Limits{MaxCalls: 2})
	h := listen(t, s, auth.NewTokens(map[string]string{"greedy": "0123456789abcdef", "other": "fedcba9876543210"}))
	greedy, same, other := newClient(t, h.URL, "0123456789abcdef", "greedy", "2025-11-25"), newClient(t, h.URL, "0123456789abcdef", "same", ""), newClient(t, h.URL, "fedcba9876543210", "other", "2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, _ = greedy.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 60}})
		})
	}
	waitFor(t, func() bool { return s.running() == 2 })
	echo := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}
	for _, c := range []*testClient{greedy, same} {
		if r, err := c.CallTool(t.Context(), echo); err != nil || !r.IsError || !strings.Contains(textOf(r), "2 calls with this token are running (serve.maxCalls)") {
			t.Errorf("a third call by %s: %q, %v", c.name, textOf(r), err)
		}
	}
	if r, err := other.CallTool(t.Context(), echo); err != nil || textOf(r) != "hello" {
		t.Errorf("another client: %q, %v", textOf(r), err)
	}
	for range 2 * 16 {
		_ = s.calls.running.Add("", 0)
	}
	if r, err := other.CallTool(t.Context(), echo); err != nil || !strings.Contains(textOf(r), "calls of all clients are running") {
		t.Errorf("all clients: %q, %v", textOf(r), err)
	}
	cancel()
	calls.Wait()
}

// Clients without sessions are counted by their connections, of which the one that has been idle for
// longest makes room.
func TestClientsWithoutSessionsAreLimited(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	s.SetLimits(Limits{MaxClients: 2})
	h := httptest.NewUnstartedServer(nil)
	h.Config = s.HTTP(HTTPOptions{Loopback: true}).Server()
	var opened atomic.Int32
	count := h.Config.ConnContext
	h.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context { opened.Add(1); return count(ctx, conn) }
	var closed atomic.Int32
	var busy sync.Map // connections on which the server has not yet ended a request
	changed := h.Config.ConnState
	h.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		changed(conn, state)
		if state == http.StateActive {
			busy.Store(conn, nil)
		} else {
			busy.Delete(conn)
		}
		if state == http.StateClosed {
			closed.Add(1)
		}
	}
	h.Start()
	defer h.Close()
	call := func(ctx context.Context, c *http.Client, tool string, params map[string]any) error {
		return (&soaking{revision: wire.FirstModern, url: h.URL + auth.Endpoint, http: c}).call(ctx, tool, params)
	}
	clients := []*http.Client{{Transport: &http.Transport{}}, {Transport: &http.Transport{}}, {Transport: &http.Transport{}}}
	for i, client := range []int{0, 1, 0, 2, 0, 1} { // the second connection is idle for longest when the third comes
		if i == 5 {
			clients[client].CloseIdleConnections() // it may not have seen yet that its connection was closed
		}
		if err := call(t.Context(), clients[client], "echo", map[string]any{"text": "hello"}); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
		waitFor(t, func() bool {
			idle := true
			busy.Range(func(any, any) bool { idle = false; return false })
			return idle && closed.Load() >= []int32{0, 0, 0, 1, 1, 2}[i]
		})
	}
	clients[2].CloseIdleConnections()
	if n := opened.Load(); n != 4 {
		t.Errorf("%d connections, want those of three clients and another one of the second", n)
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []*http.Client{clients[0], clients[1]} {
		running.Go(func() { _ = call(ctx, c, "slow", map[string]any{"seconds": 60}) })
	}
	waitFor(t, func() bool { return s.running() == 2 })
	if err := call(t.Context(), clients[2], "echo", map[string]any{"text": "hello"}); err == nil || !strings.Contains(err.Error(), "status 503: too many clients, none of which is idle (serve.maxClients)") {
		t.Errorf("a connection beside two that are in use: %v", err)
	}
	cancel()
	running.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
}

// A client that keeps sending bodies that are too large is slowed down. Clients with
// other tokens are not, and large bodies within the limit are accepted.
func TestOversizedBodiesSlowOnlyTheirClient(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	handler := s.HTTP(HTTPOptions{Loopback: true,
		Tokens: auth.NewTokens(map[string]string{"greedy": "0123456789abcdef", "other": "fedcba9876543210"})})
	handler.endpoint.bodies.Max = 1 << 20 // all of the bodies are in memory at once
	h := serveHandler(t, handler)
	send := func(ctx context.Context, token string, size int) (int, error) {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"pad":"` + strings.Repeat("x", size) + `","protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+auth.Endpoint, struct{ io.Reader }{strings.NewReader(body)}) // hides the length, so that it is not sent
		if err != nil {
			return 0, err
		}
		req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		resp, err := h.Client().Do(req)
		if err != nil {
			return 0, err
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			_ = (&soaking{url: h.URL + auth.Endpoint, session: id, http: &http.Client{Transport: withToken(token)}}).end(ctx)
		}
		return resp.StatusCode, resp.Body.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	for range 5 { // one more than are read at the same time
		attack.Go(func() { _, _ = send(ctx, "0123456789abcdef", 1<<20) })
	}
	if status, err := send(t.Context(), "fedcba9876543210", 512<<10); status != http.StatusOK || err != nil {
		t.Errorf("another client: status %d, %v", status, err)
	}
	cancel()
	attack.Wait()
}

// A DELETE request of a revision without sessions does not end a session.
func TestModernDeleteEndsNoSession(t *testing.T) {
	s := newServer(t, nil)
	h := listen(t, s, nil)
	c := &soaking{url: h.URL + auth.Endpoint, revision: "2025-11-25", http: h.Client()}
	if err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, c.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Mcp-Session-Id": {c.session}, "Mcp-Protocol-Version": {wire.FirstModern}}
	resp, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || sum(s.sessions.Counts()) != 1 {
		t.Errorf("status %d, %d sessions", resp.StatusCode, sum(s.sessions.Counts()))
	}
	if err := c.end(t.Context()); err != nil {
		t.Error(err)
	}
}
