package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

func id(t *testing.T, v any) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// call makes a request as the SDK does for an exchange.
func call(t *testing.T, c *Conn, x *Exchange, n float64, method, params string) {
	t.Helper()
	r := &jsonrpc.Request{ID: id(t, n), Method: method, Params: json.RawMessage(params)}
	if err := c.Write(x.Context(t.Context()), r); err != nil {
		t.Fatal(err)
	}
}

// received returns what the server gets next, "nothing" where that does not come.
func received(t *testing.T, server mcp.Connection) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := server.Read(ctx)
	switch m := m.(type) {
	case *jsonrpc.Request:
		return fmt.Sprintf("%v %s %s", m.ID.Raw(), m.Method, m.Params)
	case *jsonrpc.Response:
		if m.Error != nil {
			return fmt.Sprintf("%v fails: %v", m.ID.Raw(), m.Error)
		}
		return fmt.Sprintf("%v %s", m.ID.Raw(), m.Result)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "nothing"
	}
	return err.Error()
}

func send(t *testing.T, server mcp.Connection, messages ...jsonrpc.Message) {
	t.Helper()
	for _, m := range messages {
		if err := server.Write(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

func notification(method, params string) jsonrpc.Message {
	return &jsonrpc.Request{Method: method, Params: json.RawMessage(params)}
}

// The raw result is the exchange's; the SDK gets the little it needs, after the
// progress that came before.
func TestExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := pipe(t, Options{})
		var progress []registry.Progress
		x := NewExchange(ask.NewRequest(t.Context(), "tool x"), func(p registry.Progress) { progress = append(progress, p) })
		if token := x.Token("a"); token != "a" || x.Token("b") != "a" {
			t.Errorf("token %q, then %q", token, x.Token("b"))
		}
		x.AddInput(json.RawMessage(`"requestState":1.0`))
		call(t, c, x, 1, "tools/call", `{"name":"x"}`)
		if got, want := received(t, server), `1 tools/call {"name":"x","requestState":1.0}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		const result = `{"structuredContent":{"z":12345678901234567890,"a":1}}`
		send(t, server, notification("notifications/progress", `{"progressToken":"a","progress":1,"total":2,"message":"half"}`),
			notification("notifications/progress", `{"progressToken":"","progress":9}`),
			notification("notifications/progress", `{"progressToken":"other","progress":9}`),
			&jsonrpc.Response{ID: id(t, 1.0), Result: json.RawMessage(result)})
		m, err := c.Read(t.Context())
		r, ok := m.(*jsonrpc.Response)
		if err != nil || !ok || r.Result != nil || r.Error == nil {
			t.Fatalf("the SDK gets %v, %v", m, err)
		}
		if raw, err := x.Outcome(fmt.Errorf("calling: %w", r.Error)); string(raw) != result || err != nil {
			t.Errorf("result %s, %v", raw, err)
		}
		if diff := cmp.Diff([]registry.Progress{{Done: 1, Total: 2, Message: "half"}}, progress); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

func TestAnswersToNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := pipe(t, Options{})
		x := NewExchange(nil, nil)
		call(t, c, x, 1, "tools/call", `{}`)
		received(t, server)
		c.Forget(x)
		send(t, server, &jsonrpc.Response{ID: id(t, 1.0), Result: json.RawMessage(`{}`)})
		synctest.Wait()
		if got, ok := c.UnexpectedAnswer(); ok {
			t.Errorf("the late answer %s is called unexpected", got)
		}
		send(t, server, &jsonrpc.Response{ID: id(t, "mine"), Result: json.RawMessage(`{}`)})
		synctest.Wait()
		if got, ok := c.UnexpectedAnswer(); !ok || got != "mine" {
			t.Errorf("unexpected answer %q, %v", got, ok)
		}
		gone := errors.New("gone")
		if raw, err := x.Outcome(gone); raw != nil || !errors.Is(err, gone) {
			t.Errorf("a forgotten exchange got %s, %v", raw, err)
		}
	})
}

// asking returns a Conn whose questions wait for their end, and tells of each
// end what it was.
func asking(t *testing.T) (*Conn, mcp.Connection, chan error) {
	t.Helper()
	ends := make(chan error, MaxServerRequests)
	c, server := pipe(t, Options{Answer: func(ctx context.Context, during *ask.Request, method string, params json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		ends <- context.Cause(ctx)
		return json.RawMessage(`{"action":"cancel"}`), nil
	}})
	return c, server, ends
}

func question(t *testing.T, n float64) jsonrpc.Message {
	t.Helper()
	return &jsonrpc.Request{ID: id(t, n), Method: "elicitation/create", Params: json.RawMessage(`{}`)}
}

func TestQuestionIsAboutTheOldestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []*ask.Request
		c, server := pipe(t, Options{Answer: func(_ context.Context, during *ask.Request, _ string, _ json.RawMessage) (json.RawMessage, error) {
			got = append(got, during)
			return json.RawMessage(`{}`), nil
		}})
		first, second := ask.NewRequest(t.Context(), "first"), ask.NewRequest(t.Context(), "second")
		x, y := NewExchange(first, nil), NewExchange(second, nil)
		for i, x := range []*Exchange{NewExchange(nil, nil), x, y} {
			call(t, c, x, float64(i+1), "tools/call", `{}`)
			received(t, server)
		}
		ask := func(n float64) {
			send(t, server, question(t, n))
			received(t, server)
		}
		ask(1)
		c.Forget(x)
		ask(2)
		c.Forget(y)
		ask(3)
		if len(got) != 3 || got[0] != first || got[1] != second || got[2] != nil {
			t.Errorf("asked during %v", got)
		}
	})
}

func TestQuestionsEnd(t *testing.T) {
	tests := []struct {
		name   string
		end    func(t *testing.T, c *Conn, x *Exchange, server mcp.Connection)
		cause  error
		answer string
	}{
		{"with the request", func(t *testing.T, c *Conn, x *Exchange, _ mcp.Connection) { c.Forget(x) }, ErrRequestOver, `7 {"action":"cancel"}`},
		{"with its answer", func(t *testing.T, c *Conn, _ *Exchange, server mcp.Connection) {
			send(t, server, &jsonrpc.Response{ID: id(t, 1.0), Result: json.RawMessage(`{}`)})
			if _, err := c.Read(t.Context()); err != nil {
				t.Error(err)
			}
		}, ErrRequestOver, `7 {"action":"cancel"}`},
		{"withdrawn, without an answer", func(t *testing.T, _ *Conn, _ *Exchange, server mcp.Connection) {
			send(t, server, notification("notifications/cancelled", `{"requestId":7}`))
		}, ErrWithdrawn, "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server, ends := asking(t)
				x := NewExchange(ask.NewRequest(t.Context(), "tool x"), nil)
				call(t, c, x, 1, "tools/call", `{}`)
				received(t, server)
				send(t, server, question(t, 7))
				synctest.Wait()
				tt.end(t, c, x, server)
				if got := <-ends; !errors.Is(got, tt.cause) {
					t.Errorf("ended by %v", got)
				}
				if got := received(t, server); got != tt.answer {
					t.Errorf("answered %q, want %q", got, tt.answer)
				}
			})
		})
	}
}

func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, ends := asking(t)
		x := NewExchange(ask.NewRequest(t.Context(), "tool x"), nil)
		call(t, c, x, 1, "tools/call", `{}`)
		received(t, server)
		for n := range MaxServerRequests {
			send(t, server, question(t, float64(n)))
		}
		send(t, server, question(t, 99))
		if got, want := received(t, server), "99 fails: too many requests at once"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		c.Forget(x)
		for range MaxServerRequests {
			<-ends
			received(t, server)
		}
		send(t, server, question(t, 100)) // there is room again
		synctest.Wait()
		if len(ends) != 0 {
			t.Error("a question ended by itself")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := <-ends; !errors.Is(got, errClosed) {
			t.Errorf("ended by %v", got)
		}
	})
}

func TestCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := pipe(t, Options{})
		done, forget := c.Completion("a")
		defer forget()
		never, forgetNever := c.Completion("")
		defer forgetNever()
		send(t, server, notification("notifications/elicitation/complete", `{"elicitationId":"b"}`), notification("notifications/elicitation/complete", `{"elicitationId":""}`))
		synctest.Wait()
		select {
		case <-done:
			t.Error("done by another id")
		case <-never:
			t.Error("done without an id")
		default:
		}
		send(t, server, notification("notifications/elicitation/complete", `{"elicitationId":"a"}`))
		<-done
	})
}
