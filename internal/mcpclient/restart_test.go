package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// A server that exits is restarted at once, and after pauses if it keeps exiting. A
// call that may have run is not repeated, and its error says so.
func TestRestartWithPauses(t *testing.T) {
	s := source(t, stdioServer(t))
	tools, _ := discovered(t, s)
	ctx := caller.With(t.Context(), &caller.Caller{Name: "someone"})
	call := func(name, params string) error {
		_, err := tools[name].Run(ctx, registry.Call{Tool: name, Params: json.RawMessage(params)})
		return err
	}
	for range 2 {
		err := call("crash", `{}`)
		var failed *ServerError
		if !errors.As(err, &failed) || !strings.Contains(failed.Advice(), "it was not repeated: check before you repeat it. The next call connects again.") {
			t.Fatalf("a call that ends the server: %v", err)
		}
	}
	s.pool.restarts.mu.Lock()
	s.pool.restarts.failures[nil] = failures{count: 9, next: time.Now()}
	s.pool.restarts.mu.Unlock()
	err := call("echo", `{"text":"x"}`)
	if err == nil || !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "it failed 10 times in a row; the first call in ") {
		t.Errorf("during the pause: %v", err)
	}
	s.pool.restarts.mu.Lock()
	s.pool.restarts.failures[nil] = failures{count: 10, next: time.Now()} // the pause is over
	s.pool.restarts.mu.Unlock()
	if err := call("echo", `{"text":"x"}`); err != nil {
		t.Errorf("after the pause: %v", err)
	}
	if err := call("crash", `{}`); err == nil {
		t.Error("it did not crash")
	}
	if err := call("echo", `{"text":"x"}`); err != nil {
		t.Errorf("after an answered call the first restart is immediate: %v", err)
	}
}

// Pauses double up to a limit, and apply to one owner.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Server: settings.Server{Name: "x"}})
		for _, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30} {
			now := time.Now()
			s.pool.restarts.failed("a", now, nil)
			if got := s.pool.restarts.failures["a"].next.Sub(now); got != want*time.Second {
				t.Errorf("pause %s, want %d s", got, want)
			}
		}
		if s.pool.restarts.paused("a") == nil || s.pool.restarts.paused("b") != nil {
			t.Error("a pause is not that of its owner alone")
		}
		time.Sleep(maxPause)
		if err := s.pool.restarts.paused("a"); err != nil {
			t.Error(err)
		}
	})
}

// A call that waits for the connection of another call can be canceled, and
// calls do not wait for the connection of another owner.
func TestConnectAlone(t *testing.T) {
	s := New(Options{Server: settings.Server{Name: "x"}})
	done, err := s.pool.connectAlone(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.pool.connectAlone(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting: %v", err)
	}
	other, err := s.pool.connectAlone(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	var next sync.WaitGroup
	next.Go(func() {
		done, err := s.pool.connectAlone(t.Context(), "a")
		if err != nil {
			t.Error(err)
			return
		}
		done()
	})
	done()
	next.Wait()
}

// A call whose session ends before it is sent is made over a new session: it cannot have
// run.
func TestCallOfEndedSessionIsMadeOverANewOne(t *testing.T) {
	s := source(t, stdioServer(t))
	discovered(t, s)
	old, err := s.pool.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old.end()
	r := &request{method: "tools/call", name: "echo", params: map[string]any{"name": "echo", "arguments": map[string]any{"text": "hello"}}}
	raw, used, err := s.requests.do(t.Context(), old, r)
	if err != nil || !strings.Contains(string(raw), "hello") || used == old {
		t.Errorf("got %s, %v, over the old session: %t", raw, err, used == old)
	}
}

// Listing the tools again, in a session that replaces a forgotten one, may fail. A call that runs in that
// session is answered nevertheless.
func TestFailedListingEndsNoCall(t *testing.T) {
	var lost atomic.Bool
	listing, fail, calling, answer := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	web := serve(t, func(h http.Handler) http.Handler {
		first := ""
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			id, asks := r.Header.Get("Mcp-Session-Id"), func(method string) bool { return bytes.Contains(body, []byte(`"`+method+`"`)) }
			switch {
			case asks("tools/list") && !lost.Load():
				first = id
			case lost.Load() && id == first:
				http.Error(w, "no such session", http.StatusNotFound)
				return
			case asks("tools/list"):
				close(listing)
				<-fail
				http.Error(w, "overloaded", http.StatusInternalServerError)
				return
			case asks("tools/call"):
				close(calling)
				<-answer
			}
			h.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-11-25", "--json-response")
	s := source(t, httpServer(web.URL))
	tools, _ := discovered(t, s)
	lost.Store(true)
	again := make(chan error, 1)
	go func() { _, _, err := s.Discover(t.Context()); again <- err }()
	<-listing
	called := later(t, tools, "echo", `{"text":"hi"}`, nil)
	<-calling
	close(fail)
	if err := <-again; err == nil || !strings.Contains(err.Error(), "tools/list") {
		t.Errorf("the listing: %v", err)
	}
	close(answer)
	if r := <-called; r.Text() != "hi" {
		t.Errorf("the call: %s", r.Text())
	}
}
