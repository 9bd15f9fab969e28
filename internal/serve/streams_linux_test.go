package serve

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

// openStream posts a call of a tool that takes a minute, or opens the stream of a session,
// and returns the response, whose headers have arrived.
func openStream(t *testing.T, c *soaking, method, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {c.revision}}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	} else {
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", "slow")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	return resp
}

const (
	slowCall   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":60}}}`
	modernCall = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":60},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// A stream sends its headers before there is an event, and comments while there is none.
func TestSilentStreamsStayAlive(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	s.SetLimits(Limits{KeepAlive: 10 * time.Millisecond})
	h := serveHandler(t, s.HTTP(HTTPOptions{Loopback: true}))
	for name, stream := range map[string]struct{ revision, method, body string }{
		"call of a session":      {"2025-11-25", http.MethodPost, slowCall},
		"stream of a session":    {"2025-11-25", http.MethodGet, ""},
		"call without a session": {wire.FirstModern, http.MethodPost, modernCall},
	} {
		c := &soaking{url: h.URL + auth.Endpoint, http: h.Client(), revision: stream.revision}
		if err := c.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		resp := openStream(t, c, stream.method, stream.body)
		if got := resp.Header.Get("X-Accel-Buffering"); got != "no" {
			t.Errorf("%s: X-Accel-Buffering is %q", name, got)
		}
		lines := bufio.NewReader(resp.Body)
		for comments := 0; comments < 2; {
			line, err := lines.ReadString('\n')
			if err != nil || line != "\n" && !strings.HasPrefix(line, ":") {
				t.Fatalf("%s: %q, %v", name, line, err)
			}
			if line == ": keep-alive\n" {
				comments++
			}
		}
		_ = resp.Body.Close()
		if err := c.end(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Comments stand between events, never within one.
func TestCommentsDoNotSplitEvents(t *testing.T) {
	s := newServer(t, map[string]string{"m": "--dialogs"})
	s.SetLimits(Limits{KeepAlive: time.Nanosecond})
	h := serveHandler(t, s.HTTP(HTTPOptions{Loopback: true}))
	c := newClient(t, h.URL, "", "c", "2025-11-25")
	for range 20 {
		if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 20, "pause": 0, "message": strings.Repeat("x", 10_000)}, Meta: mcp.Meta{"progressToken": "p"}}); err != nil || r.IsError {
			t.Fatalf("%v, %v", r, err)
		}
	}
}

// openStreams opens two streams of a client with a session and one of a client without, and
// returns the channel that gets the error of the end of each.
func openStreams(t *testing.T, old, modern *soaking) chan error {
	t.Helper()
	ended := make(chan error)
	for _, c := range []struct {
		*soaking
		method, body string
	}{{old, http.MethodPost, slowCall}, {old, http.MethodGet, ""}, {modern, http.MethodPost, modernCall}} {
		resp := openStream(t, c.soaking, c.method, c.body)
		go func() {
			_, err := bufio.NewReader(resp.Body).ReadString(0)
			ended <- err
		}()
	}
	return ended
}

// When a token is removed from its file, its streams, its sessions and its calls end; those
// of other tokens go on.
func TestRemovedTokensEndWhatRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	const alice, bob = "alice alice-0123456789abcdef\n", "bob bob-0123456789abcdef\n"
	write(alice + bob)
	tokens, err := auth.ReadTokens(file, func(string) bool { return true }, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, map[string]string{"m": ""})
	handler := s.HTTP(HTTPOptions{Tokens: tokens, Loopback: true})
	h := serveHandler(t, handler)
	following, stop := context.WithCancel(t.Context())
	defer stop()
	go handler.FollowTokens(following)
	client := func(token, revision string) *soaking {
		c := &soaking{url: h.URL + auth.Endpoint, http: &http.Client{Transport: withToken(token)}, revision: revision}
		if err := c.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	old, modern, other := client("alice-0123456789abcdef", "2025-11-25"), client("alice-0123456789abcdef", wire.FirstModern), client("bob-0123456789abcdef", "2025-11-25")
	ended := openStreams(t, old, modern)
	stays := openStream(t, other, http.MethodPost, slowCall)
	waitFor(t, func() bool { return s.running() == 3 })
	write(bob)
	for range 3 {
		if err := await(t, ended); err == nil {
			t.Error("a stream of a removed token continued")
		}
	}
	waitFor(t, func() bool { return s.running() == 1 && sum(s.sessions.Counts()) == 1 })
	another := client("bob-0123456789abcdef", "2025-11-25")
	if err := another.call(t.Context(), "echo", map[string]any{"text": "hello"}); err != nil {
		t.Errorf("another token: %v", err)
	}
	_ = stays.Body.Close()
	if err := cmp.Or(another.end(t.Context()), other.end(t.Context())); err != nil {
		t.Error(err)
	}
	if err := old.call(t.Context(), "echo", map[string]any{"text": "hello"}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("the removed token: %v", err)
	}
}

// A new session takes the place of the one that was idle for longest, also if that waits for
// notifications. One with a running call is not ended.
func TestUnusedSessionsMakeRoom(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	s.SetLimits(Limits{MaxClients: 2})
	h := serveHandler(t, s.HTTP(HTTPOptions{Loopback: true}))
	client := func() *soaking {
		return &soaking{url: h.URL + auth.Endpoint, http: h.Client(), revision: "2025-11-25"}
	}
	echo := func(c *soaking) error { return c.call(t.Context(), "echo", map[string]any{"text": "hello"}) }
	first, second, third, fourth := client(), client(), client(), client()
	for _, c := range []*soaking{first, second} {
		if err := c.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := echo(first); err != nil { // the second is now unused for longer
		t.Fatal(err)
	}
	if _, err := third.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err == nil || !strings.Contains(err.Error(), "Mcp-Session-Id is missing") {
		t.Errorf("a message that begins no session: %v", err)
	}
	if err := third.begin(t.Context()); err != nil {
		t.Fatalf("no room: %v", err)
	}
	if err := echo(second); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the session that was unused for longest: %v", err)
	}
	for _, c := range []*soaking{first, third} {
		if err := echo(c); err != nil {
			t.Errorf("a session that was used later: %v", err)
		}
	}
	stream := openStream(t, first, http.MethodGet, "")
	openStream(t, third, http.MethodGet, "")
	if err := fourth.begin(t.Context()); err != nil {
		t.Errorf("sessions that wait for notifications: %v", err)
	}
	if err := echo(first); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the session that was idle for longest: %v", err)
	}
	_, _ = io.Copy(io.Discard, stream.Body) // it ends
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []*soaking{third, fourth} {
		running.Go(func() { _ = c.call(ctx, "slow", map[string]any{"seconds": 60}) })
	}
	waitFor(t, func() bool { return s.running() == 2 })
	if err := client().begin(t.Context()); err == nil || !strings.Contains(err.Error(), "503: too many clients, none of which is idle (serve.maxClients); try again later") {
		t.Errorf("all sessions are in use: %v", err)
	}
	cancel()
	running.Wait()
	first = fourth
	if err := cmp.Or(first.end(t.Context()), third.end(t.Context())); err != nil {
		t.Error(err)
	}
}
