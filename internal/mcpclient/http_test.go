package mcpclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func pair(name, value string) settings.Pair { return settings.Pair{Name: name, Value: value} }

// served is an HTTP server and the requests it received.
type served struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // "METHOD rpc-method"
	headers  []http.Header
	ended    chan struct{} // gets one for each request that ends a session
}

// serve serves a handler, by default the real server with flags.
func serve(t *testing.T, wrap func(http.Handler) http.Handler, flags ...string) *served {
	t.Helper()
	h, err := mcptest.Handler(flags...)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		h = wrap(h)
	}
	s := &served{ended: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		var m struct{ Method string }
		_ = json.Unmarshal(body, &m)
		s.mu.Lock()
		s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+m.Method))
		s.headers = append(s.headers, r.Header.Clone())
		s.mu.Unlock()
		if r.Method == http.MethodDelete {
			s.ended <- struct{}{}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *served) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// awaitEnd waits for a request that ends a session, whose sender has not waited for long.
func (s *served) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		t.Error("no session was ended within 30 s")
	}
}

func httpServer(url string) settings.Server {
	return settings.Server{Name: "test", HTTPURL: url, Timeout: time.Minute, ConnectTimeout: 20 * time.Second}
}

// oddType writes the media type of answers in another way.
type oddType struct {
	http.ResponseWriter
	way string
}

func (w oddType) WriteHeader(status int) {
	if kind := w.Header().Get("Content-Type"); kind != "" {
		w.Header().Set("Content-Type", fmt.Sprintf(w.way, kind))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w oddType) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w oddType) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// A media type may be in capitals and have malformed or repeated parameters, and a header Host
// of the settings is the host of the requests.
func TestHTTPHeadersAreUnderstood(t *testing.T) {
	for _, way := range []string{"%s; charset=utf-8; charset=utf-8", "%s ;charset", "%s;", " %s; a=b=c"} {
		for _, flags := range [][]string{nil, {"--json-response"}} {
			var hosts sync.Map
			web := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					hosts.Store(r.Host, true)
					h.ServeHTTP(oddType{w, way}, r)
				})
			}, flags...)
			server := httpServer(web.URL)
			server.Headers = []settings.Pair{pair("Host", "127.0.0.1:7")}
			tools, diags := discovered(t, source(t, server, func(*Options) {}))
			if len(diags) > 0 {
				t.Errorf("%s: %v", way, diags)
				continue
			}
			if r := run(t, tools, "add", `{"a":1,"b":2}`); string(r.Structured) != `{"sum":3}` {
				t.Errorf("%s: %+v", way, r)
			}
			if _, own := hosts.Load(strings.TrimPrefix(web.URL, "http://")); own {
				t.Error("a request has another host")
			}
		}
	}
}

func TestHTTP(t *testing.T) {
	tests := []struct {
		name         string
		flags        []string
		known        string
		wantRevision string
		wantAsked    []string
	}{
		{"modern", nil, "", "2026-07-28", []string{"POST server/discover", "POST tools/list", "POST tools/call"}},
		{"modern, JSON", []string{"--json-response"}, "", "2026-07-28", []string{"POST server/discover", "POST tools/list", "POST tools/call"}},
		{
			"legacy", []string{"--protocol", "2025-06-18"}, "", "2025-06-18",
			[]string{"POST server/discover", "POST initialize", "POST notifications/initialized", "POST tools/list", "POST tools/call", "DELETE"},
		},
		{
			"legacy, known", []string{"--protocol", "2025-11-25", "--json-response"}, "legacy", "2025-11-25",
			[]string{"POST initialize", "POST notifications/initialized", "POST tools/list", "POST tools/call", "DELETE"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			web := serve(t, nil, tt.flags...)
			s := source(t, httpServer(web.URL), func(o *Options) { o.Memory = &memory{known: Known{Protocol: tt.known}} })
			tools, diags := discovered(t, s)
			if len(diags) > 0 {
				t.Errorf("diagnostics %v", diags)
			}
			if r := run(t, tools, "add", `{"a":1,"b":2}`); string(r.Structured) != `{"sum":3}` {
				t.Errorf("add: %+v", r)
			}
			if got := string(tools["add"].InputSchema); got != `{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["a","b"]}` {
				t.Errorf("schema %s", got)
			}
			info := s.Info()
			if info.ProtocolVersion != tt.wantRevision || info.Transport != "http" || string(info.ServerInfo) != `{"name":"mcptest","version":"1.2.3"}` {
				t.Errorf("info %+v", info)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if tt.wantRevision != wire.FirstModern {
				web.awaitEnd(t)
			}
			asked := slices.DeleteFunc(web.asked(), func(r string) bool { return r == "GET" }) // may come at any time
			// A list request may overtake notifications/initialized, a call
			// never does.
			if i := slices.Index(asked, "POST notifications/initialized"); i > 0 && asked[i-1] == "POST tools/list" {
				asked[i-1], asked[i] = asked[i], asked[i-1]
			}
			if diff := cmp.Diff(tt.wantAsked, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			web.mu.Lock()
			defer web.mu.Unlock()
			for i, h := range web.headers[1:] {
				if v := h.Get("Mcp-Protocol-Version"); v != tt.wantRevision && !(i == 0 && tt.name == "legacy") {
					t.Errorf("%s told revision %q", web.requests[i+1], v)
				}
			}
		})
	}
}

func TestSSE(t *testing.T) {
	for _, kind := range []string{"type", "fallback", "known"} {
		t.Run(kind, func(t *testing.T) {
			web := serve(t, nil, "--sse", "--protocol", "2024-11-05")
			server := settings.Server{Name: "test", URL: web.URL, ConnectTimeout: 20 * time.Second}
			known := ""
			switch kind {
			case "type":
				server.Type = "sse"
			case "known":
				known = "sse"
			}
			s := source(t, server, func(o *Options) { o.Memory = &memory{known: Known{Protocol: known}} })
			tools, _ := discovered(t, s)
			if r := run(t, tools, "echo", `{"text":"over SSE"}`); r.Text() != "over SSE" {
				t.Errorf("%+v", r)
			}
			if info := s.Info(); info.Transport != "sse" {
				t.Errorf("info %+v", info)
			} else if !strings.HasPrefix(info.DeprecatedText(), "HTTP+SSE (deprecated since 2025-03-26)") {
				t.Errorf("deprecated %q", info.DeprecatedText())
			}
			if asked := web.asked(); kind != "fallback" && asked[0] != "GET" {
				t.Errorf("first request %s", asked[0])
			}
		})
	}
}

func TestTypeHTTPDoesNotFallBack(t *testing.T) {
	web := serve(t, nil, "--sse")
	server := settings.Server{Name: "test", URL: web.URL, Type: "http", ConnectTimeout: 20 * time.Second}
	_, _, err := source(t, server).Discover(t.Context())
	if err == nil {
		t.Error("connected")
	}
	for _, r := range web.asked() {
		if !strings.HasPrefix(r, "POST") {
			t.Errorf("asked %s", r)
		}
	}
}

// TestHTTPRefusals checks that the error contains the status and the first
// line, and no secrets.
func TestHTTPRefusals(t *testing.T) {
	say := func(status int, kind, body string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", kind)
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			})
		}
	}
	tests := []struct {
		name string
		wrap func(http.Handler) http.Handler
		want string
	}{
		{"unauthorized", say(401, "text/plain", "\n token tok-123456\x1b[2J is bad\nmore"), `server "test": 401 Unauthorized: token ***\x1b[2J is bad`},
		{"not found", say(404, "text/html", ""), "404 Not Found"},
		{"unavailable", say(503, "text/plain", "later"), "503 Service Unavailable: later"},
		{"HTML", say(200, "text/html", "<html>hello"), `its answer (200 OK) has the content type "text/html" instead of application/json`},
		{"broken JSON", say(200, "application/json", "{"), "its answer is not a JSON-RPC message: {"},
		{"odd session id", func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Mcp-Session-Id", "a b")
				next.ServeHTTP(w, r)
			})
		}, "its session id contains characters other than visible ASCII"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			web := serve(t, tt.wrap)
			_, _, err := source(t, httpServer(web.URL+"?key=tok-123456"), hides("tok-123456")).Discover(t.Context())
			if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "tok-123456") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	web := httptest.NewServer(nil)
	web.Close()
	_, _, err := source(t, httpServer(web.URL+"?key=tok-123456")).Discover(t.Context())
	if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "tok-") {
		t.Errorf("error %v", err)
	}
}

// TestHeadersStayAtTheirOrigin checks that neither a redirect nor an SSE
// endpoint makes the client send anything to another origin.
func TestHeadersStayAtTheirOrigin(t *testing.T) {
	thief := serve(t, nil)
	redirect := func(http.Handler) http.Handler {
		return http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect)
	}
	endpoint := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/x\n\n", thief.URL)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
	}
	for name, wrap := range map[string]func(http.Handler) http.Handler{"redirect": redirect, "endpoint": endpoint} {
		t.Run(name, func(t *testing.T) {
			server := httpServer(serve(t, wrap).URL)
			if name == "endpoint" {
				server.URL, server.HTTPURL, server.Type = server.HTTPURL, "", "sse"
			}
			server.Headers = []settings.Pair{pair("Authorization", "Bearer tok-123456")}
			_, _, err := source(t, server).Discover(t.Context())
			if err == nil || !strings.Contains(err.Error(), "another origin") {
				t.Errorf("error %v", err)
			}
			if asked := thief.asked(); len(asked) > 0 {
				t.Errorf("the other origin was asked %v", asked)
			}
		})
	}
}

func TestRedirectAtTheSameOrigin(t *testing.T) {
	web := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/moved" {
				http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
				return
			}
			if r.Header.Get("X-Key") != "k" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	server := httpServer(web.URL)
	server.Headers = []settings.Pair{pair("x-key", "k")}
	tools, _ := discovered(t, source(t, server))
	if r := run(t, tools, "echo", `{"text":"moved"}`); r.Text() != "moved" {
		t.Errorf("%+v", r)
	}
}

func TestBadHeadersAreRefusedBeforeAnythingIsSent(t *testing.T) {
	web := serve(t, nil)
	for _, h := range []settings.Pair{pair("X-A", "a\r\nX-B: b"), pair("X A", "a"), pair("", "a")} {
		server := httpServer(web.URL)
		server.Headers = []settings.Pair{h}
		if _, _, err := source(t, server).Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "header") {
			t.Errorf("%v: error %v", h, err)
		}
	}
	if asked := web.asked(); len(asked) > 0 {
		t.Errorf("asked %v", asked)
	}
}

func TestCompressionBombsAreLimited(t *testing.T) {
	web := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			zeros := make([]byte, 64<<10)
			for range 64 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
		})
	})
	s := source(t, httpServer(web.URL), func(o *Options) { o.Limits = Limits{Frame: 1 << 20} })
	_, _, err := s.Discover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a body larger than the limit of 1 MiB") {
		t.Errorf("error %v", err)
	}
}

func TestEndlessEvent(t *testing.T) {
	web := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: ")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
	})
	s := source(t, httpServer(web.URL), func(o *Options) { o.Limits = Limits{Frame: 1 << 20} })
	_, _, err := s.Discover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a message larger than the limit of 1 MiB (limits.frame)") {
		t.Errorf("error %v", err)
	}
}

// hangOn makes requests with an HTTP or RPC method wait for ever.
func hangOn(methods ...string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			for _, m := range methods {
				if r.Method == m || strings.Contains(string(body), `"`+m+`"`) {
					<-r.Context().Done()
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// TestHTTPServersThatHang checks that each hanging server costs its connect
// timeout, and that closing does not wait for the answer to DELETE.
func TestHTTPServersThatHang(t *testing.T) {
	t.Run("always", func(t *testing.T) {
		s := source(t, httpServer(serve(t, hangOn("POST")).URL), func(o *Options) { o.ConnectTimeout = 300 * time.Millisecond })
		_, _, err := s.Discover(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `server "test": no answer within 300ms (connectTimeout)`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("on a call and at the end", func(t *testing.T) {
		s := source(t, httpServer(serve(t, hangOn("tools/call", "DELETE"), "--protocol", "2025-11-25").URL))
		tools, _ := discovered(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		tool := tools["echo"]
		r, err := tool.Run(ctx, registry.Call{Params: json.RawMessage(`{}`)})
		if err != nil || r.ErrorCategory != registry.ErrorTimeout {
			t.Errorf("%+v, %v", r, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("only on the probe", func(t *testing.T) {
		s := source(t, httpServer(serve(t, hangOn("server/discover"), "--protocol", "2025-11-25").URL))
		discovered(t, s)
		if got := generationOf(s); got != "legacy" {
			t.Errorf("protocol %s", got)
		}
	})
}

func TestCancelOverHTTP(t *testing.T) {
	dir := t.TempDir()
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			marker, started := dir+"/marker"+revision, dir+"/started"+revision
			tools, _ := discovered(t, source(t, httpServer(serve(t, nil, "--protocol", revision).URL)))
			ctx, cancel := context.WithCancel(t.Context())
			go func() { waitForFile(t, started); cancel() }()
			params, _ := json.Marshal(map[string]any{"marker": marker, "started": started})
			if _, err := tools["slow"].Run(ctx, registry.Call{Params: params}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			waitForFile(t, marker)
			if r := run(t, tools, "echo", `{"text":"alive"}`); r.Text() != "alive" {
				t.Errorf("after the cancel: %+v", r)
			}
		})
	}
}

// refusal is how a server reports a forgotten session.
type refusal struct {
	status int
	body   string
}

// forgotten lists how servers report a forgotten session. Some do it by JSON-RPC errors, with the
// id of the request or another.
func forgotten() map[string]refusal {
	return map[string]refusal{
		"text":             {404, "session not found"},
		"error":            {404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`},
		"error of its id":  {404, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}`},
		"gone":             {410, ""},
		"bad request":      {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
		"indented":         {400, "{\n  \"error\": {\n    \"message\": \"Invalid or expired session\"\n  }\n}"},
		"uninitialized":    {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`},
		"unavailable":      {503, "Unknown or expired MCP session"},
		"broken":           {500, `{"error":"Session not found"}`},
		"conflict":         {409, "Session 7f3e was terminated"},
		"unauthorized":     {401, "Unauthorized: Session not found"},
		"transport":        {400, "No transport found for sessionId"},
		"answer":           {200, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}`},
		"invalid request":  {200, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"Invalid session ID"}}`},
		"other revisions":  {400, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}`},
		"other revision":   {400, `{"error":"Bad Request: Unsupported protocol version: 2025-11-25"}`},
		"uninitialized ok": {200, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`},
	}
}

// forgetsFirst answers the first request of a method as a server that has forgotten the session, and counts all.
func forgetsFirst(method string, how refusal, asked *atomic.Int32) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(request)))
			if strings.Contains(string(request), `"`+method+`"`) && asked.Add(1) == 1 {
				forgets(w, how, request)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// forgets answers that the session is unknown.
func forgets(w http.ResponseWriter, how refusal, request []byte) {
	if strings.HasPrefix(how.body, "{") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(how.status)
	fmt.Fprintln(w, strings.ReplaceAll(how.body, "$ID", string(jsonx.Get(request, "id"))))
}

// TestLostSessionOfEveryRequest checks that every kind of request in a session that the
// server has forgotten is repeated in a new one.
func TestLostSessionOfEveryRequest(t *testing.T) {
	requests := map[string]func(context.Context, *Source) error{
		"tools/call": func(ctx context.Context, s *Source) error {
			r, err := s.requests.call(ctx, &registry.Definition{ServerTool: "echo"}, registry.Call{Params: json.RawMessage(`{"text":"x"}`)}, nil)
			if err == nil && r.Text() != "x" {
				err = errors.New(r.Text())
			}
			return err
		},
		"prompts/get": func(ctx context.Context, s *Source) error {
			_, err := s.GetPrompt(ctx, "media", nil, nil)
			return err
		},
		"resources/read": func(ctx context.Context, s *Source) error {
			_, err := s.ReadResource(ctx, "test://item/7", nil)
			return err
		},
	}
	for method, request := range requests {
		for name, how := range forgotten() {
			t.Run(method+" "+name, func(t *testing.T) {
				var asked atomic.Int32
				web := serve(t, forgetsFirst(method, how, &asked), "--protocol", "2025-11-25", "--offers")
				if err := request(t.Context(), source(t, httpServer(web.URL))); err != nil || asked.Load() != 2 {
					t.Errorf("%v, asked %d times", err, asked.Load())
				}
			})
		}
	}
}

// TestReplacedServer checks that a request is repeated if the server says that it speaks other revisions, or
// keeps sessions, which it did not when the run connected.
func TestReplacedServer(t *testing.T) {
	for name, tt := range map[string]struct {
		how   refusal
		asked int32
	}{
		"other revisions": {refusal{400, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"no"}}`}, 2},
		"sessions":        {refusal{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required"}}`}, 2},
		"its own session": {refusal{400, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"invalid session"}}`}, 1},
		"no such method":  {refusal{404, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			web := serve(t, forgetsFirst("tools/call", tt.how, &asked))
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			if r := run(t, tools, "echo", `{"text":"x"}`); asked.Load() != tt.asked || r.IsError != (tt.asked == 1) {
				t.Errorf("asked %d times, %+v", asked.Load(), r)
			}
		})
	}
}

// TestLostSessionOverSSE checks the same for the older transport.
func TestLostSessionOverSSE(t *testing.T) {
	for name, how := range forgotten() {
		if how.status == http.StatusOK {
			continue // the answer would have to be in the stream
		}
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			web := serve(t, forgetsFirst("tools/call", how, &asked), "--sse", "--protocol", "2024-11-05")
			tools, _ := discovered(t, source(t, settings.Server{Name: "test", Type: "sse", URL: web.URL, ConnectTimeout: 20 * time.Second}))
			if r := run(t, tools, "echo", `{"text":"x"}`); r.Text() != "x" || asked.Load() != 2 {
				t.Errorf("%+v, asked %d times", r, asked.Load())
			}
		})
	}
}

// TestErrorsThatKeepTheSession checks that a tool's own sessions are no reason to repeat a call.
func TestErrorsThatKeepTheSession(t *testing.T) {
	for _, answer := range []string{
		`{"code":-32602,"message":"Session not found: browser-1"}`, `{"code":-32000,"message":"the session of the browser crashed"}`, `{"code":-32603,"message":"invalid session"}`,
	} {
		var asked atomic.Int32
		web := serve(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(request)))
				if !strings.Contains(string(request), `"tools/call"`) {
					next.ServeHTTP(w, r)
					return
				}
				asked.Add(1)
				forgets(w, refusal{http.StatusOK, `{"jsonrpc":"2.0","id":$ID,"error":` + answer + `}`}, request)
			})
		}, "--protocol", "2025-11-25")
		tools, _ := discovered(t, source(t, httpServer(web.URL)))
		if r := run(t, tools, "echo", `{}`); !r.IsError || asked.Load() != 1 {
			t.Errorf("%s: %+v, asked %d times", answer, r, asked.Load())
		}
	}
}

// TestLostSession checks that a call is repeated in a new session if the server
// forgot the old one, and fails if the server forgets every session.
func TestLostSession(t *testing.T) {
	for _, always := range []bool{false, true} {
		t.Run(fmt.Sprint("always ", always), func(t *testing.T) {
			var mu sync.Mutex
			forgets := 0
			web := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					mu.Lock()
					forget := strings.Contains(string(body), "tools/call") && (always || forgets == 0)
					if forget {
						forgets++
					}
					mu.Unlock()
					if forget {
						http.Error(w, "session not found", http.StatusNotFound)
						return
					}
					next.ServeHTTP(w, r)
				})
			}, "--protocol", "2025-11-25")
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			tool := tools["echo"]
			r, err := tool.Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"x"}`)})
			if always {
				if !errors.Is(err, registry.ErrSourceFailed) || forgets != 2 {
					t.Errorf("%v after %d", err, forgets)
				}
			} else if err != nil || r.Text() != "x" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestSessionLostWhileListing checks that a listing is repeated in a new session
// if the server forgot the old one (revision 2025-11-25, session management), and
// fails if the server forgets every session.
func TestSessionLostWhileListing(t *testing.T) {
	lists := map[string]func(*Source) (int, error){
		"tools/list": func(s *Source) (int, error) {
			tools, _, err := s.Discover(t.Context())
			return len(tools), err
		},
		"prompts/list": func(s *Source) (int, error) {
			prompts, _, err := s.Prompts(t.Context())
			return len(prompts), err
		},
		"resources/list": func(s *Source) (int, error) {
			resources, _, _, err := s.Resources(t.Context())
			return len(resources), err
		},
		"resources/templates/list": func(s *Source) (int, error) {
			_, templates, _, err := s.Resources(t.Context())
			return len(templates), err
		},
	}
	for method, list := range lists {
		for name, forgottenBody := range forgotten() {
			for _, always := range []bool{false, true} {
				t.Run(fmt.Sprint(method, " ", name, " always ", always), func(t *testing.T) {
					var asked atomic.Int32
					web := serve(t, func(next http.Handler) http.Handler {
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							body, _ := io.ReadAll(r.Body)
							r.Body = io.NopCloser(strings.NewReader(string(body)))
							if strings.Contains(string(body), `"`+method+`"`) && (asked.Add(1) == 1 || always) {
								forgets(w, forgottenBody, body)
								return
							}
							next.ServeHTTP(w, r)
						})
					}, "--protocol", "2025-11-25", "--offers")
					n, err := list(source(t, httpServer(web.URL)))
					if always != (err != nil) || always == (n > 0) || asked.Load() != 2 {
						t.Errorf("%d listed, %v, asked %d times", n, err, asked.Load())
					}
				})
			}
		}
	}
}

// TestListBeforeInitialized checks that the list is requested while the server
// is busy with notifications/initialized, and again afterwards if the server
// refused.
func TestListBeforeInitialized(t *testing.T) {
	var lists atomic.Int32
	refused := make(chan struct{})
	web := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			switch m := string(body); {
			case strings.Contains(m, "notifications/initialized"):
				<-refused
			case strings.Contains(m, "tools/list") && lists.Add(1) == 1:
				id := jsonx.Get(body, "id")
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"not initialized"}}`, id)
				close(refused)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-11-25")
	tools, _, err := source(t, httpServer(web.URL)).Discover(t.Context())
	if err != nil || len(tools) == 0 || lists.Load() != 2 {
		t.Errorf("%d tools, %v, asked %d times", len(tools), err, lists.Load())
	}
}

// TestHTTPRefusalDuringACall checks that a refusal is a failure of the source,
// not of the tool.
func TestHTTPRefusalDuringACall(t *testing.T) {
	web := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), "tools/call") {
				http.Error(w, "slow down", http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	tool := tools["echo"]
	_, err := tool.Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"x"}`)})
	if want := `server "test": tools/call: 429 Too Many Requests: slow down`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestMirroredParams(t *testing.T) {
	var mu sync.Mutex
	var got []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		result := map[string]string{
			"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
			"tools/list":      `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`,
			"tools/call":      `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`,
		}[m.Method]
		mu.Lock()
		got = append(got, m.Method+" "+r.Header.Get("Mcp-Param-Region"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	defer web.Close()
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	run(t, tools, "t", `{"region":"eu\r\nX-Evil: 1"}`)
	run(t, tools, "t", `{"region":"eu"}`)
	mu.Lock()
	defer mu.Unlock()
	want := []string{"server/discover ", "tools/list ", "tools/call =?base64?ZXUNClgtRXZpbDogMQ==?=", "tools/call eu"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestRefusalsKeepTheSession checks that a call that is refused for another reason fails in its
// session, which remains usable.
func TestRefusalsKeepTheSession(t *testing.T) {
	for name, how := range map[string]refusal{
		"params":      {400, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"Invalid params"}}`},
		"permissions": {403, "no session of yours"},
		"load":        {429, "too many sessions, unknown session limit"},
		"broken":      {500, "session store not found"},
		"no words":    {400, ""},
		"other words": {400, "the obsession is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, begun atomic.Int32
			web := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					request, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(strings.NewReader(string(request)))
					switch {
					case strings.Contains(string(request), `"initialize"`):
						begun.Add(1)
					case strings.Contains(string(request), `"tools/call"`) && asked.Add(1) == 1:
						forgets(w, how, request)
						return
					}
					next.ServeHTTP(w, r)
				})
			}, "--protocol", "2025-11-25")
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			if r, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"x"}`)}); err == nil && !r.IsError {
				t.Errorf("%+v", r)
			}
			if r := run(t, tools, "echo", `{"text":"y"}`); r.Text() != "y" || begun.Load() != 1 {
				t.Errorf("%+v, %d sessions", r, begun.Load())
			}
		})
	}
}

// TestCookies checks that cookies are returned within a session, beside that of the settings,
// and not to another server at the same host.
func TestCookies(t *testing.T) {
	var mu sync.Mutex
	var got []string
	sticky := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			got = append(got, r.Header.Get("Cookie"))
			mu.Unlock()
			http.SetCookie(w, &http.Cookie{Name: "replica", Value: "a", Path: "/", HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "gone", Value: "x", MaxAge: -1})
			next.ServeHTTP(w, r)
		})
	}
	for name, tt := range map[string]struct {
		headers []settings.Pair
		first   string
		later   string
	}{
		"without one":      {nil, "", "replica=a"},
		"beside our own":   {[]settings.Pair{pair("Cookie", "key=k")}, "key=k", "key=k; replica=a"},
		"beside a header":  {[]settings.Pair{pair("X-Key", "k")}, "", "replica=a"},
		"with two headers": {[]settings.Pair{pair("Cookie", "key=k"), pair("cookie", "b=c")}, "key=k; b=c", "key=k; b=c; replica=a"},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			server := httpServer(serve(t, sticky, "--protocol", "2025-11-25").URL)
			server.Headers = tt.headers
			tools, _ := discovered(t, source(t, server))
			if r := run(t, tools, "echo", `{"text":"x"}`); r.Text() != "x" {
				t.Errorf("%+v", r)
			}
			mu.Lock()
			defer mu.Unlock()
			if got[0] != tt.first || got[len(got)-1] != tt.later {
				t.Errorf("cookies %q", got)
			}
		})
	}
	other := serve(t, nil)
	discovered(t, source(t, httpServer(other.URL)))
	for _, h := range other.headers {
		if h.Get("Cookie") != "" {
			t.Errorf("another origin got %q", h.Get("Cookie"))
		}
	}
}

// balancer sends requests to two replicas: to the one that a cookie names, and without a cookie to
// each in turn. Its channel gets the cookies of requests that begin a session.
func balancer(t *testing.T) (*served, <-chan string) {
	t.Helper()
	var replicas []http.Handler
	for range 2 {
		h, err := mcptest.Handler("--protocol", "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, h)
	}
	var turn atomic.Int32
	begun := make(chan string, 100)
	return serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(request))
			if bytes.Contains(request, []byte(`"initialize"`)) {
				begun <- r.Header.Get("Cookie")
			}
			if bytes.Contains(request, []byte("forget")) {
				http.NotFound(w, r)
				return
			}
			at, err := r.Cookie("replica")
			if err != nil {
				at = &http.Cookie{Name: "replica", Value: strconv.Itoa(int(turn.Add(1) % 2)), Path: "/"}
				http.SetCookie(w, at)
			}
			n, _ := strconv.Atoi(at.Value)
			replicas[n].ServeHTTP(w, r)
		})
	}), begun
}

// TestCookiesOfRun checks that later connections of a run send the cookies that the first one was
// given, and that other credentials, other clients and other entries do not.
func TestCookiesOfRun(t *testing.T) {
	web, begun := balancer(t)
	server := httpServer(web.URL)
	server.Protocol, server.PerClient = "legacy", true
	key := "one"
	s := source(t, server, func(o *Options) {
		o.Expand = func(_ context.Context, server settings.Server) (settings.Server, error) {
			server.Headers = []settings.Pair{pair("X-Key", key)}
			return server, nil
		}
	})
	tools, _ := discovered(t, s)
	first := <-begun
	s.pool.endSessions()
	call := func(ctx context.Context, text string) string {
		t.Helper()
		if r, err := tools["echo"].Run(ctx, registry.Call{Params: json.RawMessage(`{"text":"` + text + `"}`)}); err == nil && r.Text() != text {
			t.Errorf("%+v", r)
		}
		select {
		case cookie := <-begun:
			return cookie
		default:
			return "no new session"
		}
	}
	own := caller.With(t.Context(), &caller.Caller{Owner: "other client"})
	got := []string{first, call(t.Context(), "x"), call(t.Context(), "forget"), call(own, "x")}
	s.pool.endSessions()
	key = "two"
	got = append(got, call(t.Context(), "x"))
	discovered(t, source(t, server))
	got = append(got, <-begun)
	if want := []string{"", "replica=1", "replica=1", "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("cookies %q, want %q", got, want)
	}
}

// TestMoved checks that a redirect that would lose the message is an error with the new address.
func TestMoved(t *testing.T) {
	elsewhere := serve(t, nil)
	for _, tt := range []struct {
		status int
		to     string
		want   string // "" means the tools are listed
	}{
		{301, "/moved", "status 301, which loses the message, to $URL/moved; set that"},
		{302, "/moved", "status 302, which loses the message, to $URL/moved; set that"},
		{303, "/moved?a=secret", "status 303, which loses the message, to $URL/moved; set that"},
		{307, "/moved", ""},
		{308, "/moved", ""},
		{301, elsewhere.URL + "/new", "another origin, " + elsewhere.URL + "/new,"},
	} {
		web := serve(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/moved" {
					http.Redirect(w, r, tt.to, tt.status)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		tools, _, err := source(t, httpServer(web.URL)).Discover(t.Context())
		switch want := strings.ReplaceAll(tt.want, "$URL", web.URL); {
		case want == "" && (err != nil || len(tools) == 0):
			t.Errorf("%d: %v", tt.status, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%d %s: %v, want %q", tt.status, tt.to, err, want)
		}
	}
	if asked := elsewhere.asked(); len(asked) > 0 {
		t.Errorf("the other origin was asked %v", asked)
	}
}

// TestAdvice checks what a model is told when a server is busy, gives no result, or ends during a call.
func TestAdvice(t *testing.T) {
	soon := time.Now().Add(90 * time.Minute).UTC().Format(http.TimeFormat)
	for name, tt := range map[string]struct {
		status      int
		after, want string
	}{
		"seconds":   {429, "7", "The server is busy. Try again in 7s, or continue without the tool."},
		"a date":    {503, soon, "The server is busy. Try again in 1h"},
		"no header": {503, "", "The server is busy. Try again in a minute, or continue without the tool."},
		"nonsense":  {429, "soon", "The server is busy. Try again in a minute, or continue without the tool."},
		"at once":   {429, "0", "The server is busy. Try again in 1s, or continue without the tool."},
		"refused":   {403, "7", ""},
		"broken":    {500, "7", "The server gave no result of the call, which may have had effects"},
		"no result": {200, "", "The server gave no result of the call, which may have had effects"},
		"reset":     {0, "", "The server gave no result of the call, which may have had effects"},
	} {
		t.Run(name, func(t *testing.T) {
			web := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					request, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(strings.NewReader(string(request)))
					if tt.status == 0 && strings.Contains(string(request), `"tools/call"`) {
						conn, _, _ := http.NewResponseController(w).Hijack()
						_ = conn.(*net.TCPConn).SetLinger(0)
						_ = conn.Close()
						return
					}
					if strings.Contains(string(request), `"tools/call"`) {
						w.Header().Set("Retry-After", tt.after)
						http.Error(w, "no", tt.status)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			_, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"x"}`)})
			var failed *ServerError
			if !errors.As(err, &failed) || !strings.HasPrefix(failed.Advice(), tt.want) || tt.want == "" && failed.Advice() != "" {
				t.Errorf("%v, advice %q", err, failed.Advice())
			}
		})
	}
	s := source(t, legacy(t, step{On: "tools/call", Exit: 1}))
	tools, _ := discovered(t, s)
	_, err := tools["t"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{}`)})
	var failed *ServerError
	if !errors.As(err, &failed) || !strings.Contains(failed.Advice(), "The next call connects again.") {
		t.Errorf("after an exit: %v", err)
	}
}
