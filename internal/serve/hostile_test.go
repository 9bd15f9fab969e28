package serve

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

const (
	hostileToken = "0123456789abcdef"
	ping         = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

// hostileServer listens with the limits of the real server, or shorter ones.
func hostileServer(t *testing.T, headers, body time.Duration) (address string) {
	t.Helper()
	s := newServer(t, nil)
	h := s.HTTP(HTTPOptions{Tokens: auth.NewTokens(map[string]string{"me": hostileToken}), Loopback: true})
	h.endpoint.bodies.Time = body
	hs := h.Server()
	hs.ReadHeaderTimeout = headers
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = hs.Serve(l)
	}()
	t.Cleanup(func() {
		_ = hs.Close()
		<-ended
	})
	return l.Addr().String()
}

// exchange writes text to a new connection and returns the status codes of all responses
// until the server closes the connection or has sent want responses.
func exchange(t *testing.T, address, text string, want int) []int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	var codes []int
	for r := bufio.NewReader(conn); len(codes) < want; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		codes = append(codes, resp.StatusCode)
	}
	return codes
}

// post is a request with a body and further header lines.
func post(target string, body string, lines ...string) string {
	head := []string{"POST " + target + " HTTP/1.1", "Host: localhost", "Authorization: Bearer " + hostileToken,
		"Content-Type: application/json", "Accept: application/json, text/event-stream"}
	return strings.Join(append(head, lines...), "\r\n") + "\r\n\r\n" + body
}

func sized(body string) string { return fmt.Sprintf("Content-Length: %d", len(body)) }

// Requests that are malformed, ambiguous or not addressed to the endpoint are rejected,
// and a request hidden in a body is not answered.
func TestMalformedRequestsAreRejected(t *testing.T) {
	address := hostileServer(t, headerTime, time.Minute)
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(ping), ping)
	fraction := `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`
	hidden := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	other := func(from, to string) string { return strings.Replace(post("/mcp", ping, sized(ping)), from, to, 1) }
	for name, tt := range map[string]struct {
		text string
		want int // the only answer
	}{
		"no token":                    {other("Authorization: Bearer "+hostileToken+"\r\n", ""), 401},
		"wrong token":                 {other(hostileToken, "0123456789abcdeF"), 401},
		"prefix of a token":           {other(hostileToken, hostileToken[:15]), 401},
		"two tokens":                  {post("/mcp", ping, sized(ping), "Authorization: Bearer x"), 401},
		"token in the query":          {strings.Replace(other("Authorization: Bearer "+hostileToken+"\r\n", ""), "/mcp", "/mcp?token="+hostileToken, 1), 401},
		"Basic":                       {other("Bearer", "Basic"), 401},
		"foreign origin":              {post("/mcp", ping, sized(ping), "Origin: https://evil.example"), 403},
		"no origin":                   {post("/mcp", ping, sized(ping), "Origin: null"), 403},
		"origin with the host inside": {post("/mcp", ping, sized(ping), "Origin: http://localhost.evil.example"), 403},
		"rebound host":                {other("Host: localhost", "Host: evil.example"), 403},
		"host with a loopback name":   {other("Host: localhost", "Host: localhost.evil.example"), 403},
		"absolute target":             {post("http://evil.example/mcp", ping, sized(ping)), 403},
		"two hosts":                   {post("/mcp", ping, sized(ping), "Host: localhost"), 400},
		"parent":                      {post("/x/../mcp", ping, sized(ping)), 404},
		"parent of the path":          {post("/mcp/../healthz", ping, sized(ping)), 404},
		"two slashes":                 {post("//mcp", ping, sized(ping)), 404},
		"slash at the end":            {post("/mcp/", ping, sized(ping)), 404},
		"escaped slash":               {post("/mcp%2f", ping, sized(ping)), 404},
		"escaped letter":              {post("/%6dcp", ping, sized(ping)), 404},
		"capitals":                    {post("/MCP", ping, sized(ping)), 404},
		"path parameter":              {post("/mcp;x=1", ping, sized(ping)), 404},
		"NUL":                         {post("/mcp%00", ping, sized(ping)), 404},
		"health by another spelling":  {"GET /%68ealthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		"two lengths":                 {post("/mcp", ping+hidden, sized(ping), "Content-Length: 1"), 400},
		"length with a sign":          {post("/mcp", ping, "Content-Length: +40"), 400},
		"negative length":             {post("/mcp", ping, "Content-Length: -1"), 400},
		"list of lengths":             {post("/mcp", ping, "Content-Length: 40, 41"), 400},
		"unknown coding":              {post("/mcp", chunked, "Transfer-Encoding: xchunked"), 501},
		"chunked twice":               {post("/mcp", chunked, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 501},
		"chunked and identity":        {post("/mcp", chunked, "Transfer-Encoding: chunked, identity"), 501},
		"invalid chunk size":          {post("/mcp", "zz\r\n"+ping+"\r\n0\r\n\r\n"+hidden, "Transfer-Encoding: chunked"), 400},
		"huge chunk size":             {post("/mcp", "ffffffffffffffffff\r\n"+ping, "Transfer-Encoding: chunked"), 400},
		"chunk longer than its size":  {post("/mcp", "5\r\n"+ping+"\r\n0\r\n\r\n"+hidden, "Transfer-Encoding: chunked"), 400},
		"space before a colon":        {post("/mcp", chunked, "Transfer-Encoding : chunked"), 400},
		"folded name":                 {post("/mcp", ping, sized(ping), "X: y\r\n\tAuthorization: Bearer z\r\n\r\n"+hidden), 400},
		"line without a colon":        {post("/mcp", ping, sized(ping), "nonsense"), 400},
		"NUL in a header":             {post("/mcp", ping, sized(ping), "X: a\x00b"), 400},
		"bare CR in a header":         {post("/mcp", ping, sized(ping), "X: a\rb"), 400},
		"two revisions":               {post("/mcp", ping, sized(ping), "Mcp-Protocol-Version: 2025-11-25", "Mcp-Protocol-Version: 2026-07-28"), 400},
		"two sessions":                {post("/mcp", ping, sized(ping), "Mcp-Session-Id: a", "Mcp-Session-Id: b"), 400},
		"foreign session":             {post("/mcp", ping, sized(ping), "Mcp-Session-Id: 0123456789abcdefXYZ"), 404},
		"header too large":            {post("/mcp", ping, sized(ping), "X: "+strings.Repeat("x", 100<<10)), 431},
		"body too large":              {post("/mcp", "", fmt.Sprintf("Content-Length: %d", transport.MaxBody+1)), 413},
		"health check with no host":   {"GET /healthz HTTP/1.0\r\n\r\n", 200},
		"message with no host":        {"POST /mcp HTTP/1.0\r\n\r\n", 403},
		"not HTTP":                    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"id with a fraction":          {post("/mcp", fraction, sized(fraction)), 400},
		"nested too deep":             {post("/mcp", strings.Repeat("[", 1<<20), fmt.Sprintf("Content-Length: %d", 1<<20)), 400},
	} {
		t.Run(name, func(t *testing.T) {
			if codes := exchange(t, address, tt.text, 1); !slices.Equal(codes, []int{tt.want}) {
				t.Errorf("answers %v, want %d", codes, tt.want)
			}
		})
	}
	// If the end of a request is ambiguous, the connection is closed.
	for name, text := range map[string]string{
		"length and chunks":          post("/mcp", chunked+hidden, fmt.Sprintf("Content-Length: %d", len(chunked+hidden)), "Transfer-Encoding: chunked"),
		"chunks, then a request":     post("/mcp", chunked+hidden, "Transfer-Encoding: chunked"),
		"chunk longer than its size": post("/mcp", "5\r\n"+ping+"\r\n0\r\n\r\n"+hidden, "Transfer-Encoding: chunked"),
		"folded coding":              post("/mcp", chunked+hidden, "Transfer-Encoding:\r\n chunked"),
		"chunked, without a token":   strings.Replace(post("/mcp", chunked+hidden, "Transfer-Encoding: chunked"), hostileToken, "no", 1),
	} {
		if codes := exchange(t, address, text, 2); len(codes) != 1 {
			t.Errorf("%s: answers %v", name, codes)
		}
	}
}

// A client that sends its headers or its body too slowly loses its connection and delays
// no other.
func TestSlowRequestsTimeOut(t *testing.T) {
	const short = 200 * time.Millisecond
	headers, body := hostileServer(t, short, time.Minute), hostileServer(t, headerTime, short)
	for name, tt := range map[string]struct {
		address, text string
		want          []int
	}{
		"headers": {headers, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ", nil},
		"nothing": {headers, "", nil},
		"body":    {body, post("/mcp", ping[:10], sized(ping)), []int{408}},
		"chunks":  {body, post("/mcp", "5\r\n12", "Transfer-Encoding: chunked"), []int{408}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if codes := exchange(t, tt.address, tt.text, 2); !slices.Equal(codes, tt.want) {
				t.Errorf("answers %v, want %v", codes, tt.want)
			}
		})
	}
}

// Messages wait for a slot; a health check does not.
func TestMessagesTakeSlots(t *testing.T) {
	h := newServer(t, nil).HTTP(HTTPOptions{})
	h.endpoint.slots.Processors = 0
	answer := func(method, target string) int {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		w.Code = 0
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(ping)))
		return w.Code
	}
	if code := answer(http.MethodGet, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d", code)
	}
	if code := answer(http.MethodPost, auth.Endpoint); code != http.StatusServiceUnavailable {
		t.Errorf("a message was answered with %d although it had no slot", code)
	}
}

// A request without params, or with others than its method has, ends no other request.
func TestOddParams(t *testing.T) {
	methods := []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe", "completion/complete", "logging/setLevel", "tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed", "unknown"}
	for _, revision := range []string{"", "2025-06-18", "2025-11-25", wire.FirstModern} {
		t.Run(revision, func(t *testing.T) {
			h := listen(t, newServer(t, map[string]string{"m": "--offers"}), auth.NewTokens(map[string]string{"me": hostileToken}))
			session, serial := "", 0
			send := func(method, params string) string {
				t.Helper()
				serial++
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, serial, method, params)
				if strings.HasPrefix(method, "notifications/") {
					body = fmt.Sprintf(`{"jsonrpc":"2.0","method":%q%s}`, method, params)
				}
				if method == "tools/list" {
					body = "\ufeff" + body // which is no part of JSON
				}
				verb := http.MethodPost
				if method == "end" {
					verb = http.MethodDelete
				}
				r, err := http.NewRequestWithContext(t.Context(), verb, h.URL+"/mcp", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range map[string]string{"Authorization": "Bearer " + hostileToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"Mcp-Protocol-Version": revision, "Mcp-Method": method, "Mcp-Session-Id": session} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
				answer, header := answerTo(t, r)
				if strings.Contains(answer, "internal error") {
					t.Errorf("%s: %s", body, answer)
				}
				session = cmp.Or(header.Get("Mcp-Session-Id"), session)
				return answer
			}
			meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, wire.FirstModern)
			list := `,"params":{` + meta + `}`
			if revision != "" && revision != wire.FirstModern {
				list = ""
				send("initialize", fmt.Sprintf(`,"params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, revision))
				send("notifications/initialized", "")
			}
			for _, method := range methods {
				for _, params := range []string{"", `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":"x"`, `,"params":{"_meta":null}`, `,"params":{` + meta + `}`, `,"params":{"task":{}}`, `,"params":{"_meta":[],"task":{}}`} {
					send(method, params)
				}
			}
			if got := send("tools/list", list); revision != "" && !strings.Contains(got, `"name":"echo"`) {
				t.Errorf("the tools afterwards: %s", got)
			}
			send("end", "")
		})
	}
}

// A client that does not read the refusal of its request keeps no other from beginning a session.
func TestUnreadRefusalHoldsUpNoSession(t *testing.T) {
	handler := newServer(t, nil).HTTP(HTTPOptions{Loopback: true})
	h := serveHandler(t, handler)
	unread, read := make(chan struct{}), make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, auth.Endpoint, strings.NewReader("{}")) // without Accept
		handler.server.ids.Begin(handler.endpoint.sessions, "x").ServeHTTP(transport.BeforeAnswer{ResponseWriter: httptest.NewRecorder(), Do: sync.OnceFunc(func() { close(unread); <-read })}, req)
	}()
	<-unread
	_ = newRawSession(t, h, "")
	close(read)
	<-over
}
