package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
)

// deployed is a server over HTTP that answers only while it is up.
type deployed struct {
	url   string
	up    atomic.Bool
	tries atomic.Int32 // requests while it was not
}

func newDeployed(t *testing.T) *deployed {
	t.Helper()
	handler, err := mcptest.Handler("--protocol", "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	d := &deployed{}
	d.url = serveUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.up.Load() {
			d.tries.Add(1)
			http.Error(w, "being deployed", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	return d
}

// A server that is down at the start is tried again when clients send requests, as often
// as its backoff allows. When it is up, clients are notified.
func TestFailedServersAreTriedAgain(t *testing.T) {
	d := newDeployed(t)
	for _, revision := range []string{"2025-11-25", wire.FirstModern} {
		t.Run(revision, func(t *testing.T) {
			d.up.Store(false)
			d.tries.Store(0)
			start := time.Now()
			s := newServer(t, map[string]string{"down": d.url + ";legacy", "works": ""})
			first := d.tries.Load() // of one attempt to connect
			web := listen(t, s, nil)
			c, changed, _ := newFollower(t, web.URL, revision)
			for range 20 {
				if _, err := c.ListTools(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "down__crash"})
			if err != nil || !r.IsError || !strings.Contains(textOf(r), `server "down": `) || !strings.Contains(textOf(r), "being deployed") ||
				!strings.Contains(textOf(r), "in a row; the first call in ") {
				t.Errorf("a call during the pause: %v, %v", textOf(r), err)
			}
			if r := send(t, web, sent{tool: "down__crash", args: `{}`}); string(r.result["resultType"]) != `"complete"` {
				t.Errorf("a call of a modern client during the pause: %s", r.stream)
			}
			attempts := int32(2) // the second is immediate
			for pause := time.Second; pause < time.Since(start); pause = 2*pause + time.Second {
				attempts++
			}
			if n := d.tries.Load(); n > attempts*first {
				t.Errorf("%d requests reached the server; one attempt makes %d", n, first)
			}
			d.up.Store(true)
			waitFor(t, func() bool {
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "down__echo", Arguments: map[string]any{"text": "here"}})
				return err == nil && !r.IsError && textOf(r) == "here"
			})
			await(t, changed)
		})
	}
}

// A program that is missing, crashes, or cannot list its tools is tried again too.
// Requests that do not concern it do not wait for it.
func TestProgramsAreTriedAgain(t *testing.T) {
	for _, fault := range []string{"missing", "crash"} {
		t.Run(fault, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "program")
			if fault == "crash" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\necho no disk left >&2\nexit 3\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			s := newServer(t, map[string]string{"later": "command:" + program, "works": ""})
			c, changed, _ := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
			_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "nonsense"})
			if err == nil || !strings.Contains(err.Error(), "servers that could not list their tools: later") {
				t.Errorf("an unknown tool: %v", err)
			}
			_ = os.Remove(program)
			if err := os.Symlink(filepath.Join(serverDir, "mcp-testserver"), program); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "works__echo", Arguments: map[string]any{"text": "x"}})
				return err == nil && len(changed) > 0
			})
			list, err := c.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) == 0 {
				t.Fatal(err)
			}
			if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "later__echo", Arguments: map[string]any{"text": "x"}}); err != nil || textOf(r) != "x" {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// call_tool waits for the next attempt to start the server of the tool that it names,
// like a direct call of that tool.
func TestCallToolWaitsForAnotherAttempt(t *testing.T) {
	d := newDeployed(t)
	from := newSession(t, map[string]string{"down": d.url + ";legacy"})
	t.Cleanup(from.Close)
	s := New(Options{Whole: offer.Profile{Select: func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
		reg, err := s.Tools.All(ctx)
		if err != nil {
			return nil, nil, err
		}
		tools, err := s.Offers.Reaching(ctx, reg, func(*registry.Definition) bool { return false })
		return reg, tools, err
	}}})
	t.Cleanup(s.Wait)
	if err := s.Load(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	c, _, _ := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
	d.up.Store(true) // the second attempt is immediate
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{
		"name": "down__echo", "params": map[string]any{"text": "here"}}})
	if err != nil || r.IsError || textOf(r) != "here" {
		t.Errorf("%v, %v", r, err)
	}
}

// If a server over HTTP has lost its session, as after a deployment, the request is
// repeated in a new session, and the client does not notice.
func TestLostSessionIsReplaced(t *testing.T) {
	handler, err := mcptest.Handler("--protocol", "2025-11-25", "--offers")
	if err != nil {
		t.Fatal(err)
	}
	var forgotten, last atomic.Value // session ids
	forgotten.Store("none")
	url := serveUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Mcp-Session-Id")
		if id == forgotten.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)
			return
		}
		if id != "" { // as initialize has it
			last.Store(id)
		}
		handler.ServeHTTP(w, r)
	}))
	c := newClient(t, listen(t, newServer(t, map[string]string{"up": url + ";legacy"}), nil).URL, "", "client", "")
	for name, request := range map[string]func(context.Context) error{
		"tools/call": func(ctx context.Context) error {
			r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "up__echo", Arguments: map[string]string{"text": "x"}})
			if err == nil && (r.IsError || textOf(r) != "x") {
				err = errors.New(textOf(r))
			}
			return err
		},
		"prompts/get": func(ctx context.Context) error {
			_, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "media"})
			return err
		},
		"resources/read": func(ctx context.Context) error {
			_, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://item/7"})
			return err
		},
	} {
		if err := request(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		end := httptest.NewRequest(http.MethodDelete, "/", nil)
		end.Header.Set("Mcp-Session-Id", last.Load().(string))
		handler.ServeHTTP(httptest.NewRecorder(), end)
		forgotten.Store(last.Load())
		if err := request(t.Context()); err != nil {
			t.Errorf("%s in a forgotten session: %v", name, err)
		}
	}
}
