package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// onCall handles calls of tools whose params contain a word, and passes on everything else.
func onCall(word string, answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), `"tools/call"`) && strings.Contains(string(body), word) {
				answer(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// streaming answers with an event stream and closes it.
func streaming(events string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, events)
	}
}

// TestRefusedCallsFailAlone checks that a bad answer to one call neither ends other calls,
// which may belong to other clients, nor appears in their errors.
func TestRefusedCallsFailAlone(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"400", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "private reason", http.StatusBadRequest) }, "400 Bad Request: private reason"},
		{"401", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "private reason", http.StatusUnauthorized) }, "401 Unauthorized: private reason"},
		{"403", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "private reason", http.StatusForbidden) }, "403 Forbidden: private reason"},
		{"500", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "private reason", http.StatusInternalServerError)
		}, "500 Internal Server Error: private reason"},
		{"503", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "private reason", http.StatusServiceUnavailable)
		}, "503 Service Unavailable: private reason"},
		{"not a message", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"private":`)
		}, `its answer is not a JSON-RPC message: {"private":`},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<p>private`)
		}, `its answer (200 OK) has the content type "text/html" instead of application/json`},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, "its answer (202 Accepted) is empty"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc":`)
		}, "it closed the connection in the middle of an exchange"},
		{"a long body that is not a message", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"private":%q}`, strings.Repeat("x", 2<<20))
		}, `its answer is not a JSON-RPC message: {"private":`},
		{"the answer to another request", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":7777,"result":{}}`)
		}, `its answer is not for this request: {"jsonrpc":"2.0","id":7777`},
		{"an event that is not a message", streaming("data: private\n\n"), "its answer is not a JSON-RPC message: private"},
		{"an event for an error", streaming("event: error\ndata: {\"message\":\"private\"}\n\n"), `its answer is not a JSON-RPC message: {"message":"private"}`},
		{"a stream cut off in an event", streaming(`data: {"jsonrpc":`), "the response ended without a result"},
		{"a stream that cannot be resumed", streaming("id: private\nretry: 1\ndata:\n\n"), "tools/call: 40"},
	}
	for _, tt := range tests {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(tt.name+" "+revision, func(t *testing.T) {
				reached, refused := make(chan struct{}), make(chan struct{})
				web := serve(t, func(next http.Handler) http.Handler {
					waiting := onCall("wait", func(w http.ResponseWriter, r *http.Request) {
						close(reached)
						<-refused
						next.ServeHTTP(w, r)
					})
					return waiting(onCall("refuse", tt.answer)(next))
				}, "--protocol", revision)
				tools, _ := discovered(t, source(t, httpServer(web.URL)))
				other := make(chan registry.Result, 1)
				go func() {
					r, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"wait"}`)})
					if err != nil {
						r = registry.TextResult(err.Error())
					}
					other <- r
				}()
				<-reached
				_, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"refuse"}`)})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				close(refused)
				if got := said(<-other); got != "wait" {
					t.Errorf("the other call: %s", got)
				}
			})
		}
	}
}

// TestOddAnswersOverHTTP checks that an answer is used although it lacks what its place says already: a label of
// JSON, or the id of the only request that an error can be about.
func TestOddAnswersOverHTTP(t *testing.T) {
	const failed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"out of paper"}}`
	say := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{kind}
			fmt.Fprint(w, body)
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"an error without an id", say("application/json", failed)},
		{"an error without an id, as an event", say("text/event-stream", "data: "+failed+"\n\n")},
		{"labelled as text", say("text/plain; charset=utf-8", failed)},
		{"without a label", say("", failed)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			web := serve(t, onCall("odd", tt.answer))
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			if r := run(t, tools, "echo", `{"text":"odd"}`); !r.IsError || said(r) != "MCP error -32603: out of paper" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestResumedStreams checks that a stream is resumed after its last event, even if
// nothing arrives at first; a server that never continues fails only that call.
func TestResumedStreams(t *testing.T) {
	const begun, answer = "id: begun\nretry: 1\ndata:\n\n", `data: {"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"resumed"}]}}` + "\n\n"
	tests := []struct {
		name    string
		streams []string // of the resumptions
		want    string
	}{
		{"at once", []string{answer}, "resumed"},
		{"after silence", []string{"", answer}, "resumed"},
		{"after the same event", []string{begun, answer}, "resumed"},
		{"after a lost connection", []string{"lost", answer}, "resumed"},
		{"after other events", []string{"id: 2\ndata:\n\n", "", "id: 3\ndata:\n\n", "id: 3\ndata:\n\n", answer}, "resumed"},
		{"never, silent", []string{"", "", "", ""}, "the response ended without a result"},
		{"never, the same event", []string{begun, begun, begun, begun}, "the response ended without a result"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex // the handler of a lost connection may still be returning
			var id string
			var resumed []string
			web := serve(t, func(next http.Handler) http.Handler {
				calling := onCall("begin", func(w http.ResponseWriter, r *http.Request) {
					var m struct{ ID json.RawMessage }
					_ = json.NewDecoder(r.Body).Decode(&m)
					id = string(m.ID)
					streaming(begun)(w, r)
				})(next)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					last := r.Header.Get("Last-Event-ID")
					if last == "" {
						calling.ServeHTTP(w, r)
						return
					}
					mu.Lock()
					resumed = append(resumed, last)
					stream := strings.ReplaceAll(tt.streams[len(resumed)-1], "$ID", id)
					mu.Unlock()
					if stream == "lost" {
						panic(http.ErrAbortHandler)
					}
					streaming(stream)(w, r)
				})
			}, "--protocol", "2025-11-25")
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			r, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"begin"}`)})
			if got := fmt.Sprint(r.Text(), err); !strings.Contains(got, tt.want) {
				t.Errorf("got %s after %q", got, resumed)
			}
			if got := said(run(t, tools, "echo", `{"text":"next"}`)); got != "next" {
				t.Errorf("the next call: %q", got)
			}
			if n := strings.Count(strings.Join(web.asked(), "\n"), "initialize"); n != 2 { // and notifications/initialized
				t.Errorf("the next call needed a new session: %q", web.asked())
			}
		})
	}
}

// TestUnusualAnswersAreRead checks forms that the event stream format and older revisions
// allow, and some that other clients accept.
func TestUnusualAnswersAreRead(t *testing.T) {
	tests := []struct{ name, kind, body string }{
		{"byte order mark", "text/event-stream", "\xEF\xBB\xBFdata: $ANSWER\n\n"},
		{"CR", "text/event-stream", ": hello\r\revent: message\rdata: $ANSWER\r\r"},
		{"CR LF", "text/event-stream", ": hello\r\n\r\ndata: $ANSWER\r\n\r\n"},
		{"a line without a colon", "text/event-stream", "hello\ndata\n\ndata: $ANSWER\n\n"},
		{"an event that is not a message", "text/event-stream", "data: hello\n\ndata: $ANSWER\n\n"},
		{"an id that no header can carry", "text/event-stream", "id: \x01\ndata: $ANSWER\n\n"},
		{"a list of messages", "text/event-stream", `data: [{"jsonrpc":"2.0","method":"notifications/x"},$ANSWER]` + "\n\n"},
		{"a list as a body", "application/json", `[{"jsonrpc":"2.0","method":"notifications/x"},` + "\r\n" + `$ANSWER]`},
		{"a body with a byte order mark", "application/json", "\xEF\xBB\xBF$ANSWER"},
		{"the id as a string", "application/json", `{"jsonrpc":"2.0","id":"$ID","result":{"content":[{"type":"text","text":"hi"}]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			web := serve(t, onCall("hi", func(w http.ResponseWriter, r *http.Request) {
				var m struct{ ID json.RawMessage }
				_ = json.NewDecoder(r.Body).Decode(&m)
				w.Header().Set("Content-Type", tt.kind)
				answer := strings.ReplaceAll(tt.body, "$ANSWER", `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hi"}]}}`)
				fmt.Fprint(w, strings.ReplaceAll(answer, "$ID", string(m.ID)))
			}), "--protocol", "2025-03-26")
			tools, _ := discovered(t, source(t, httpServer(web.URL)))
			if got := said(run(t, tools, "echo", `{"text":"hi"}`)); got != "hi" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestUnusualEventsOverSSE checks that the older transport reads the same forms, and reports
// that the server ended the stream.
func TestUnusualEventsOverSSE(t *testing.T) {
	var target http.Handler
	web := serve(t, func(next http.Handler) http.Handler {
		target = next
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				target.ServeHTTP(w, r)
				return
			}
			ctx, end := context.WithCancel(r.Context())
			target = onCall("end", func(http.ResponseWriter, *http.Request) { end() })(next)
			target = onCall("odd", func(http.ResponseWriter, *http.Request) {
				fmt.Fprint(w, "data: {\"result\":NaN}\n\n")
				_ = http.NewResponseController(w).Flush()
			})(target)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\nevent: hello\ndata: hello\n\nhello\n\n")
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}, "--sse", "--protocol", "2024-11-05")
	server := httpServer(web.URL)
	server.URL, server.HTTPURL, server.Type = server.HTTPURL, "", "sse"
	tools, _ := discovered(t, source(t, server))
	if got := said(run(t, tools, "echo", `{"text":"hi"}`)); got != "hi" {
		t.Errorf("%q", got)
	}
	for _, tt := range []struct{ text, want string }{{"odd", "malformed message: invalid JSON"}, {"end", "it closed the connection"}} {
		_, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"` + tt.text + `"}`)})
		if err == nil || !strings.Contains(err.Error(), "tools/call: "+tt.want) {
			t.Errorf("error %v", err)
		}
	}
}

// TestRefusalExplainsNoLaterCall checks that an error only mentions its own
// reason.
func TestRefusalExplainsNoLaterCall(t *testing.T) {
	web := serve(t, func(next http.Handler) http.Handler {
		refusing := onCall("refuse", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "private reason", http.StatusServiceUnavailable)
		})
		return refusing(onCall("silent", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream") // and nothing in it
		})(next))
	}, "--protocol", "2025-11-25")
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	for _, tt := range []struct{ text, want string }{{"refuse", "private reason"}, {"silent", "the response ended without a result"}} {
		_, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"` + tt.text + `"}`)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// TestCallThatMayHaveRunIsNotRepeated checks a server that forgets the session after it
// began to answer.
func TestCallThatMayHaveRunIsNotRepeated(t *testing.T) {
	var calls atomic.Int32
	web := serve(t, func(next http.Handler) http.Handler {
		calling := onCall("echo", func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 1\nid: begun\ndata:\n\n")
		})(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Last-Event-ID") == "begun" {
				http.Error(w, "session not found", http.StatusNotFound)
				return
			}
			calling.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-11-25")
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	_, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"x"}`)})
	if err == nil || !strings.Contains(err.Error(), "the server ended the session; the call may have run, so it was not repeated") {
		t.Errorf("error %v", err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestRunningCallGetsItsAnswer checks a server that forgets the session while it carries out a
// call: other calls go on in a new session, and the running one gets its answer.
func TestRunningCallGetsItsAnswer(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	var forgotten atomic.Value
	forgotten.Store("none")
	web := serve(t, func(next http.Handler) http.Handler {
		return onCall("slow", func(w http.ResponseWriter, r *http.Request) {
			forgotten.Store(r.Header.Get("Mcp-Session-Id"))
			close(started)
			<-release
			next.ServeHTTP(w, r)
		})(onCall("quick", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Session-Id") == forgotten.Load() {
				http.Error(w, "session not found", http.StatusNotFound)
				return
			}
			next.ServeHTTP(w, r)
		})(next))
	}, "--protocol", "2025-11-25")
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	answer := make(chan string, 1)
	go func() {
		r, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"slow"}`)})
		answer <- fmt.Sprint(said(r), err)
	}()
	<-started
	if got := said(run(t, tools, "echo", `{"text":"quick"}`)); got != "quick" {
		t.Errorf("%q", got)
	}
	close(release)
	if got := <-answer; got != "slow<nil>" {
		t.Errorf("the running call: %s", got)
	}
}

// TestRefusedNotification checks that a server that refuses notifications can
// still be used.
func TestRefusedNotification(t *testing.T) {
	web := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), `"notifications/initialized"`) {
				next.ServeHTTP(httptest.NewRecorder(), r)
				http.Error(w, "no notifications", http.StatusBadRequest)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-06-18")
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	if got := said(run(t, tools, "echo", `{"text":"hi"}`)); got != "hi" {
		t.Errorf("%q", got)
	}
}

// TestServerWithoutKnownTransport checks that the error is that of streamable HTTP,
// which was tried first.
func TestServerWithoutKnownTransport(t *testing.T) {
	web := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.Error(w, "no", http.StatusMethodNotAllowed)
				return
			}
			http.Error(w, "no API key", http.StatusBadRequest)
		})
	})
	server := httpServer(web.URL)
	server.URL, server.HTTPURL = server.HTTPURL, ""
	_, _, err := source(t, server).Discover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "400 Bad Request: no API key") {
		t.Errorf("error %v", err)
	}
}

// TestHeadersThatExpire checks that headers from a file or a command are read again when the server refuses them, and
// that others are not.
func TestHeadersThatExpire(t *testing.T) {
	for _, tt := range []struct {
		name, value, token, want string
		reads                    int // after the connection
	}{
		{"a command with another token", "cmd:print-token", "Bearer new", "hi", 1},
		{"a file with another token", "file:token", "Bearer new", "hi", 1},
		{"a command with the same token", "cmd:print-token", "Bearer old", "401 Unauthorized", 1},
		{"a command that fails", "cmd:print-token", "", "401 Unauthorized, and its credentials cannot be read again: not logged in", 1},
		{"a variable", "Bearer ${TOKEN}", "Bearer new", "401 Unauthorized", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			good, token, reads := "Bearer old", "Bearer old", -1
			web := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					ok := r.Header.Get("Authorization") == good
					mu.Unlock()
					if !ok {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			server := httpServer(web.URL)
			server.Headers = []settings.Pair{{Name: "Authorization", Value: tt.value}}
			tools, _ := discovered(t, source(t, server, func(o *Options) {
				o.Expand = func(_ context.Context, s settings.Server) (settings.Server, error) {
					mu.Lock()
					defer mu.Unlock()
					if reads++; token == "" {
						return s, errors.New("not logged in")
					}
					s.Headers = []settings.Pair{{Name: "Authorization", Value: token}}
					return s, nil
				}
			}))
			mu.Lock()
			good, token = "Bearer new", tt.token
			mu.Unlock()
			r, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"hi"}`)})
			if got := fmt.Sprint(r.Text(), err); !strings.Contains(got, tt.want) {
				t.Errorf("got %s", got)
			}
			mu.Lock()
			defer mu.Unlock()
			if reads != tt.reads {
				t.Errorf("read %d times", reads)
			}
		})
	}
}
