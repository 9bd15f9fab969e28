package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/settings"
)

// pipes is a listener whose connections are in-memory pipes, which synctest can
// observe.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p <- far
	return near, nil
}

// sessionWith connects to a legacy server over HTTP and declines its questions.
// Every connection except the first is delayed.
func sessionWith(t *testing.T, server http.Handler, dialing time.Duration) *Session {
	t.Helper()
	p := make(pipes, 10)
	web := &http.Server{Handler: server}
	go func() { _ = web.Serve(p) }()
	limit := &CurrentLimit{}
	limit.Store(Limit{Bytes: 1 << 20})
	h, err := NewHTTP(settings.Server{HTTPURL: "http://127.0.0.1/mcp"}, limit, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	var dialed, over atomic.Bool
	h.base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialed.Swap(true) {
			time.Sleep(dialing)
		}
		if over.Load() {
			return nil, net.ErrClosed
		}
		return p.dial(ctx, network, address)
	}
	s := Start(t.Context(), h, Options{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}, Logger: slog.New(slog.DiscardHandler),
		Answer: func(context.Context, *ask.Request, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"decline"}`), nil
		},
	})
	if err := s.Handshake(t.Context(), ModeLegacy, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close(ErrClosed)
		s.Wait()
		h.CloseIdleConnections()
		over.Store(true)
		synctest.Wait() // for connections that are no longer needed
		_ = web.Close()
	})
	return s
}

// sdkAsking returns an SDK server with a tool that asks on the stream of the
// session.
func sdkAsking() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "asking"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		own, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		answer, err := r.Session.Elicit(own, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{StructuredContent: map[string]any{"action": answer.Action}}, nil, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// forgetful returns a server whose calls ask on the stream, or never end if it is
// not open.
func forgetful() http.Handler {
	const question = `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}` + "\n\n"
	stream := make(chan string, 1)
	var open atomic.Bool
	answered := make(chan json.RawMessage, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			open.Store(true)
			_ = http.NewResponseController(w).Flush()
			for {
				select {
				case event := <-stream:
					_, _ = io.WriteString(w, event)
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		result := json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"forgetful","version":"1"}}`)
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "1")
		case "tools/call":
			if open.Load() {
				stream <- question
			}
			select {
			case result = <-answered:
			case <-r.Context().Done():
				return
			}
		default:
			if m.Result != nil {
				answered <- json.RawMessage(`{"content":[],"structuredContent":` + string(m.Result) + `}`)
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	})
}

// slowStream returns a server that opens its own stream only after d.
func slowStream(server http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
				return
			}
		}
		server.ServeHTTP(w, r)
	})
}

// callAsking calls the tool that asks and returns its result and its duration.
func callAsking(t *testing.T, s *Session) (json.RawMessage, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	result, err := s.Do(ctx, &Request{Method: "tools/call", Params: json.RawMessage(`{"name":"ask","arguments":{}}`), Asked: ask.NewRequest(ctx, "tool ask")})
	if err != nil {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
	return result, time.Since(start)
}

// A call waits for the stream on which the server may ask: without the stream,
// the server drops its question and then waits for the answer.
func TestCallsWaitForTheStream(t *testing.T) {
	for name, server := range map[string]func() http.Handler{"SDK": sdkAsking, "forgetful": forgetful} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				session := sessionWith(t, slowStream(server(), 100*time.Millisecond), 0)
				for i, want := range []time.Duration{100 * time.Millisecond, 0} {
					if result, took := callAsking(t, session); jsonText(result) != "decline" || took != want {
						t.Errorf("call %d: %s after %s, want it after %s", i, result, took, want)
					}
				}
			})
		})
	}
}

func jsonText(result json.RawMessage) string {
	var r struct{ StructuredContent struct{ Action string } }
	_ = json.Unmarshal(result, &r)
	return r.StructuredContent.Action
}

// Calls do not wait for a stream that is not opened.
func TestCallsWithoutStream(t *testing.T) {
	echo := mcp.NewServer(&mcp.Implementation{Name: "echo"}, nil)
	mcp.AddTool(echo, &mcp.Tool{Name: "ask"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	server := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return echo }, nil)
	refusing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		server.ServeHTTP(w, r)
	})
	for name, tt := range map[string]struct {
		server http.Handler
		want   []time.Duration // of the calls
	}{
		"refused": {refusing, []time.Duration{0, 0}},
		"silent":  {slowStream(server, time.Hour), []time.Duration{maxStreamWait, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				session := sessionWith(t, tt.server, 0)
				for i, want := range tt.want {
					if _, took := callAsking(t, session); took != want {
						t.Errorf("call %d took %s, want %s", i, took, want)
					}
				}
			})
		})
	}
}

// The stream is open for a server that asks as soon as it receives notifications/initialized,
// even if the connection for the stream took long. Neither costs more time than connecting.
func TestStreamIsOpenBeforeAnyQuestion(t *testing.T) {
	const dialing = 2 * maxStreamWait
	synctest.Test(t, func(t *testing.T) {
		server := forgetful()
		asked := make(chan bool, 1)
		var open atomic.Bool
		s := sessionWith(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			switch {
			case r.Method == http.MethodGet:
				open.Store(true)
			case bytes.Contains(body, []byte(`"notifications/initialized"`)):
				asked <- open.Load()
			case bytes.Contains(body, []byte(`"tools/list"`)):
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, jsonx.Get(body, "id"))
				return
			}
			server.ServeHTTP(w, r)
		}), dialing)
		start := time.Now()
		if _, err := s.Do(t.Context(), &Request{Method: "tools/list"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != dialing {
			t.Errorf("the listing took %s", took)
		}
		if !<-asked {
			t.Error("the stream was not open when the server was told that it may ask")
		}
		if result, _ := callAsking(t, s); jsonText(result) != "decline" {
			t.Errorf("result %s", result)
		}
	})
}

// Balancers end streams on which nothing happens for a while, and servers are away while they start again. Neither ends the
// wait for an answer, or for what the server sends on its own.
func TestIdleStreamsAreOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Minute
		answered := make(chan struct{})
		var call json.RawMessage
		resumed, listened := 0, 0
		s := sessionWith(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stream := func(text string) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(idle):
				case <-r.Context().Done():
				}
			}
			body, _ := io.ReadAll(r.Body)
			method, _ := jsonx.Text(jsonx.Get(body, "method"))
			switch {
			case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "begun":
				if resumed++; resumed < 5 {
					stream("")
					return
				}
				stream(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n\n", call))
			case r.Method == http.MethodGet:
				switch listened++; listened {
				case 3, 4, 5:
					w.WriteHeader(http.StatusBadGateway)
				case 6:
					panic(http.ErrAbortHandler)
				case 12:
					stream(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}` + "\n\n")
				default:
					stream("")
				}
			case method == "initialize":
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set(sessionHeader, "1")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, jsonx.Get(body, "id"))
			case method == "tools/call":
				call = jsonx.Get(body, "id")
				stream("id: begun\ndata:\n\n")
			case jsonx.Get(body, "result") != nil:
				close(answered)
				fallthrough
			default:
				w.WriteHeader(http.StatusAccepted)
			}
		}), 0)
		if _, err := s.Do(t.Context(), &Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)}); err != nil {
			t.Error(err)
		}
		select {
		case <-answered:
		case <-time.After(time.Hour):
			t.Error("the server's question was not answered")
		}
	})
}

// What changes while the stream of a modern server is away is never told, so all that was subscribed to counts as
// changed when it is back, unless the server closes it all the time.
func TestChangesWhileTheStreamIsAway(t *testing.T) {
	for _, open := range []time.Duration{time.Minute, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			listened := 0
			s := sessionWith(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !bytes.Contains(body, []byte(methodListen)) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`, jsonx.Get(body, "id"))
					return
				}
				if listened++; listened == 2 {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`+"\n\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(open):
				case <-r.Context().Done():
				}
			}), 0)
			changes := make(chan Change, 10)
			s.opts.Changed = func(c Change) { changes <- c }
			stop := s.Listen(t.Context(), mcp.NotificationSubscriptions{ToolsListChanged: true, ResourceSubscriptions: []string{"x:/a"}})
			time.Sleep(open + 7*time.Second/2)
			stop()
			synctest.Wait() // no change comes later
			close(changes)
			var got []Change
			for c := range changes {
				got = append(got, c)
			}
			want := []Change{{List: "tools"}, {URI: "x:/a"}}
			if open < lasting {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("open for %s: changes %v, want %v", open, got, want)
			}
		})
	}
}

// On the session's own stream a server may send one message or, up to revision 2025-03-26, a list of
// them. Answers are invalid there, and what is malformed costs nothing else.
func TestMessagesOfTheOwnStream(t *testing.T) {
	var got []string
	s, server := connected(t, Options{Changed: func(c Change) { got = append(got, c.List) }})
	waiting := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := s.Do(ctx, &Request{Method: "ping"})
		waiting <- err
	}()
	<-server.sent
	for _, data := range []string{
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		`[{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"},5,{"jsonrpc":"2.0","id":1,"result":{}},` +
			`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}]`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{`,
	} {
		s.receiveUnasked(t.Context(), []byte(data))
	}
	if want := []string{"tools", "prompts", "resources"}; !slices.Equal(got, want) {
		t.Errorf("changes of %q, want %q", got, want)
	}
	cancel()
	<-server.sent // notifications/cancelled
	if err := <-waiting; err == nil {
		t.Error("an answer on the stream was accepted")
	}
}
