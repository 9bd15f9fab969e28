package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/tracing"
)

// pipe is a link whose other end is the test.
type pipe struct {
	sent     chan jsonrpc.Message
	received chan string
}

func (p *pipe) run(ctx context.Context, to *Session) error {
	for {
		select {
		case data := <-p.received:
			if err := to.receiveAll(ctx, json.RawMessage(data)); err != nil {
				to.receiveMalformed(err)
			}
		case <-ctx.Done():
			return io.EOF
		}
	}
}

func (p *pipe) send(ctx context.Context, _ *Session, m message) error {
	select {
	case p.sent <- m.Message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connected returns a session and the server's end of its link.
func connected(t *testing.T, o Options) (*Session, *pipe) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	o.Capabilities = &mcp.ClientCapabilities{}
	server := &pipe{sent: make(chan jsonrpc.Message), received: make(chan string)}
	s := Start(t.Context(), server, o)
	t.Cleanup(func() {
		s.Close(ErrClosed)
		s.Wait()
	})
	return s, server
}

// gets returns the messages that the server receives next, or "nothing".
func (p *pipe) gets() string {
	select {
	case <-time.After(time.Minute):
		return "nothing"
	case m := <-p.sent:
		switch m := m.(type) {
		case *jsonrpc.Request:
			return fmt.Sprintf("%v %s %s", m.ID.Raw(), m.Method, m.Params)
		case *jsonrpc.Response:
			if m.Error != nil {
				return fmt.Sprintf("%v fails: %v", m.ID.Raw(), m.Error)
			}
			return fmt.Sprintf("%v %s", m.ID.Raw(), m.Result)
		}
	}
	return "neither a request nor an answer"
}

// says makes the server send messages.
func (p *pipe) says(messages ...string) {
	for _, m := range messages {
		p.received <- `{"jsonrpc":"2.0",` + m + "}"
	}
}

// outcome is the outcome of a request.
type outcome struct {
	result string
	err    error
}

// call makes a request until stop is called.
func call(t *testing.T, s *Session, r *Request) (result <-chan outcome, stop context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	out := make(chan outcome, 1)
	go func() {
		raw, err := s.Do(ctx, r)
		out <- outcome{string(raw), err}
	}()
	return out, stop
}

// tool returns a request during which the server may ask.
func tool(asked *ask.Request) *Request {
	return &Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`), Asked: asked}
}

// A server gets the trace of the call.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{})
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		ctx := tracing.Extract(t.Context(), func(name string) string {
			return map[string]string{"traceparent": parent, "baggage": "k=v"}[name]
		})
		go func() { _, _ = s.Do(ctx, tool(nil)) }()
		if got, want := server.gets(), `1 tools/call {"_meta":{"baggage":"k=v","traceparent":"`+parent+`"},"name":"x"}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		server.says(`"id":1,"result":{}`)
	})
}

// The result is passed on unchanged, after the progress that preceded it.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{})
		var progress []registry.Progress
		r := tool(ask.NewRequest(t.Context(), "tool x"))
		r.Params = json.RawMessage(` {"name":"x","requestState":1.0}`)
		r.Progress = func(p registry.Progress) { progress = append(progress, p) }
		got, _ := call(t, s, r)
		if got, want := server.gets(), `1 tools/call {"_meta":{"progressToken":"toolreg-1"},"name":"x","requestState":1.0}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		const result = `{"structuredContent":{"z":12345678901234567890,"a":1}}`
		server.says(`"method":"notifications/progress","params":{"progressToken":"toolreg-1","progress":1,"total":2,"message":"half"}`,
			`"method":"notifications/progress","params":{"progressToken":"","progress":9}`,
			`"method":"notifications/progress","params":{"progressToken":"other","progress":9}`,
			`"id":1,"result":`+result,
			`"method":"notifications/progress","params":{"progressToken":"toolreg-1","progress":2}`)
		if got := <-got; got.result != result || got.err != nil {
			t.Errorf("result %s, %v", got.result, got.err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]registry.Progress{{Done: 1, Total: 2, Message: "half"}}, progress); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

// The server is told when the answer to a request is no longer needed.
func TestCancelledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{})
		got, stop := call(t, s, tool(nil))
		server.gets()
		stop()
		if got, want := server.gets(), `<nil> notifications/cancelled {"reason":"context canceled","requestId":1}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		if got := <-got; !errors.Is(got.err, context.Canceled) {
			t.Errorf("error %v", got.err)
		}
	})
}

func TestClosedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{})
		got, _ := call(t, s, tool(nil))
		server.gets()
		why := errors.New("no longer needed")
		s.Close(why)
		if got := <-got; !errors.Is(got.err, why) || s.Alive() {
			t.Errorf("error %v, alive %v", got.err, s.Alive())
		}
		if _, err := s.Do(t.Context(), tool(nil)); !errors.Is(err, ErrClosed) {
			t.Errorf("the next request: %v", err)
		}
	})
}

func TestAnswersToNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{})
		_, stop := call(t, s, tool(nil))
		server.gets()
		stop()
		server.gets() // notifications/cancelled
		server.says(`"id":1,"result":{}`)
		synctest.Wait()
		if got, ok := s.UnexpectedAnswer(); ok {
			t.Errorf("the late answer %s is called unexpected", got)
		}
		server.says(`"id":"mine","result":{}`)
		synctest.Wait()
		if got, ok := s.UnexpectedAnswer(); !ok || got != "mine" {
			t.Errorf("unexpected answer %q, %v", got, ok)
		}
	})
}

// asking returns a session whose questions wait until they are canceled, and a channel of
// the causes.
func asking(t *testing.T) (*Session, *pipe, chan error) {
	t.Helper()
	ends := make(chan error, MaxServerRequests)
	s, server := connected(t, Options{Answer: func(ctx context.Context, during *ask.Request, method string, params json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		ends <- context.Cause(ctx)
		return json.RawMessage(`{"action":"cancel"}`), nil
	}})
	return s, server, ends
}

func question(n int) string {
	return fmt.Sprintf(`"id":%d,"method":"elicitation/create","params":{}`, n)
}

func TestQuestionBelongsToTheOldestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []*ask.Request
		s, server := connected(t, Options{Answer: func(_ context.Context, during *ask.Request, _ string, _ json.RawMessage) (json.RawMessage, error) {
			got = append(got, during)
			return json.RawMessage(`{}`), nil
		}})
		first, second := ask.NewRequest(t.Context(), "first"), ask.NewRequest(t.Context(), "second")
		var stops []context.CancelFunc
		for _, asked := range []*ask.Request{nil, first, second} {
			_, stop := call(t, s, tool(asked))
			stops = append(stops, stop)
			server.gets()
		}
		ask := func(n int) {
			server.says(question(n))
			server.gets()
		}
		end := func(n int) {
			stops[n]()
			server.gets()
			synctest.Wait() // until the request is forgotten
		}
		ask(1)
		end(1)
		ask(2)
		end(2)
		ask(3)
		if len(got) != 3 || got[0] != first || got[1] != second || got[2] != nil {
			t.Errorf("asked during %v", got)
		}
		end(0)
	})
}

func TestQuestionsEnd(t *testing.T) {
	tests := []struct {
		name  string
		end   func(server *pipe, stop context.CancelFunc)
		cause error
		then  []string // messages that the server receives
	}{
		{"with the request", func(_ *pipe, stop context.CancelFunc) { stop() }, ErrRequestOver,
			[]string{`7 {"action":"cancel"}`, `<nil> notifications/cancelled {"reason":"context canceled","requestId":1}`}},
		{"with its answer", func(server *pipe, _ context.CancelFunc) { server.says(`"id":1,"result":{}`) }, ErrRequestOver, []string{`7 {"action":"cancel"}`}},
		{"withdrawn, without an answer", func(server *pipe, _ context.CancelFunc) {
			server.says(`"method":"notifications/cancelled","params":{"requestId":7}`)
		}, ErrWithdrawn, []string{"nothing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, server, ends := asking(t)
				_, stop := call(t, s, tool(ask.NewRequest(t.Context(), "tool x")))
				server.gets()
				server.says(question(7))
				synctest.Wait()
				tt.end(server, stop)
				if got := <-ends; !errors.Is(got, tt.cause) {
					t.Errorf("ended by %v", got)
				}
				var got []string
				for range tt.then {
					got = append(got, server.gets())
				}
				slices.Sort(got)
				slices.Sort(tt.then)
				if diff := cmp.Diff(tt.then, got); diff != "" {
					t.Errorf("the server got (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server, ends := asking(t)
		_, stop := call(t, s, tool(ask.NewRequest(t.Context(), "tool x")))
		server.gets()
		for n := range MaxServerRequests {
			server.says(question(n))
		}
		server.says(question(99))
		if got, want := server.gets(), "99 fails: too many requests at once"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		stop()
		for range MaxServerRequests {
			<-ends
			server.gets()
		}
		server.gets()              // notifications/cancelled
		server.says(question(100)) // there is room again
		synctest.Wait()
		if len(ends) != 0 {
			t.Error("a question ended by itself")
		}
		s.Close(ErrClosed)
		if got := <-ends; !errors.Is(got, ErrClosed) {
			t.Errorf("ended by %v", got)
		}
	})
}

// Clients answer some requests without the user, and refuse unknown ones.
func TestRequestsFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := connected(t, Options{})
		server.says(`"id":"a","method":"ping"`)
		if got, want := server.gets(), `a {}`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		server.says(`"id":"b","method":"tools/list"`)
		if got, want := server.gets(), `b fails: not a request that clients answer: "tools/list"`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{})
		done, forget := s.Completion("a")
		defer forget()
		never, forgetNever := s.Completion("")
		defer forgetNever()
		server.says(`"method":"notifications/elicitation/complete","params":{"elicitationId":"b"}`, `"method":"notifications/elicitation/complete","params":{"elicitationId":""}`)
		synctest.Wait()
		select {
		case <-done:
			t.Error("done by another id")
		case <-never:
			t.Error("done without an id")
		default:
		}
		server.says(`"method":"notifications/elicitation/complete","params":{"elicitationId":"a"}`)
		<-done
	})
}

// ended is a link that can no longer send, and ends a moment later.
type ended struct{ reason error }

func (l ended) run(ctx context.Context, _ *Session) error {
	select {
	case <-time.After(time.Second):
		return l.reason
	case <-ctx.Done():
		return io.EOF
	}
}

func (ended) send(context.Context, *Session, message) error { return io.ErrClosedPipe }

// A request that can no longer be sent fails for the reason for which the session ended.
func TestRequestsFailForTheReasonOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("a message that is too large")
		s := Start(t.Context(), ended{reason}, Options{Logger: slog.New(slog.DiscardHandler)})
		if _, err := s.Do(t.Context(), tool(nil)); !errors.Is(err, reason) {
			t.Errorf("it failed with: %v", err)
		}
		s.Close(ErrClosed)
		s.Wait()
	})
}

// A server behind a proxy that ends TLS redirects to http. The address to set is never one that is not encrypted.
func TestRedirectToHTTP(t *testing.T) {
	h, err := NewHTTP(settings.Server{HTTPURL: "https://h.example/mcp"}, &CurrentLimit{}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := func(address string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for to, want := range map[string]string{
		"http://h.example/mcp/":      "try https://h.example/mcp/ as the server's URL",
		"http://H.example:8080/mcp/": "try https://h.example/mcp/ as the server's URL",
		"http://other.example/mcp/":  "another origin",
		"https://h.example/mcp/":     "",
	} {
		err := h.checkRedirect(request(to), []*http.Request{request("https://h.example/mcp")})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
}
