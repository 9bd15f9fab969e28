package mcpclient

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

// Questions that a server asks outside of any request arrive over every
// transport.
func TestQuestionsOutsideOfRequests(t *testing.T) {
	for _, transport := range []string{"stdio", "http", "sse"} {
		t.Run(transport, func(t *testing.T) {
			server := stdioServer(t, "--roots", "--protocol", "2025-11-25")
			switch transport {
			case "http":
				server = httpServer(serve(t, nil, "--roots", "--protocol", "2025-11-25").URL)
			case "sse":
				server = httpServer(serve(t, nil, "--roots", "--sse", "--protocol", "2024-11-05").URL)
				server.URL, server.HTTPURL, server.Type = server.HTTPURL, "", "sse"
			}
			s := source(t, server)
			tools, _ := discovered(t, s)
			if r := run(t, tools, "roots", `{}`); r.IsError || r.Text() != "file://"+s.opts.Workspace {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A server without a stream of its own, or with a bad one, works as well.
func TestBadStreams(t *testing.T) {
	streams := map[string]http.HandlerFunc{
		"none":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusMethodNotAllowed) },
		"broken":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusInternalServerError) },
		"moved":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"HTML":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"silence":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"garbage":  events("data: {\n\n", "data: [1]\n\ndata: nonsense\n\n", ": ping\n\n"),
		"answers":  events(`data: {"jsonrpc":"2.0","id":3,"result":5}`+"\n\n", `data: {"jsonrpc":"2.0","id":"x","error":{}}`+"\n\n"),
		"one line": events("data: " + strings.Repeat("x", 2<<20)),
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			gets := make(chan struct{}, 100)
			web := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet {
						gets <- struct{}{}
						stream(w, r)
						return
					}
					h.ServeHTTP(w, r)
				})
			}, "--protocol", "2025-11-25")
			s := source(t, httpServer(web.URL), func(o *Options) { o.Limits.Frame = 1 << 20 })
			tools, diags := discovered(t, s)
			<-gets
			if r := run(t, tools, "echo", `{"text":"hi"}`); r.Text() != "hi" || len(diags) > 0 {
				t.Errorf("%+v, diagnostics %v", r, diags)
			}
			start := time.Now()
			if err := s.Close(); err != nil || time.Since(start) > time.Second {
				t.Errorf("Close: %v after %s", err, time.Since(start))
			}
		})
	}
}

func events(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunks {
			fmt.Fprint(w, c)
		}
	}
}

// The failure of the stream is not reported as the reason of another failure.
func TestFailedStreamIsNotTheReasonOfOtherFailures(t *testing.T) {
	var broken atomic.Bool
	heard := make(chan struct{})
	web := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				http.Error(w, "the stream is not to be had", http.StatusForbidden)
				close(heard)
			case broken.Load():
				panic(http.ErrAbortHandler)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}, "--protocol", "2025-11-25")
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	<-heard
	broken.Store(true)
	_, err := tools["echo"].Run(t.Context(), registry.Call{Tool: "echo", Params: []byte(`{"text":"x"}`)})
	if got := errorString(err); got == "" || strings.Contains(got, "stream") {
		t.Errorf("got %q", got)
	}
}
