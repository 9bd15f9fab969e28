package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// TestMalformedAnswersFailTheCall checks that every malformed answer ends the call at once, and that
// the session remains usable. Without a result or an error of the server, a model is told that the call
// may have had effects, which begins with noResult.
func TestMalformedAnswersFailTheCall(t *testing.T) {
	const noResult = "The server gave no result of the call, which may have had effects, so it was not repeated: check before you repeat it, or continue without the tool. server \"test\": tools/call: "
	tests := []struct{ name, line, want string }{
		{"neither result nor error", `{"jsonrpc":"2.0","id":$ID}`, noResult + "the answer has neither a result nor an error"},
		{"result null", `{"jsonrpc":"2.0","id":$ID,"result":null}`, "not a result object"},
		{"result not an object", `{"jsonrpc":"2.0","id":$ID,"result":[1]}`, "not a result object"},
		{"error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`, "MCP error -32700: parse error"},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error"}}`, "MCP error -32700: parse error"},
		{"error of the wrong type", `{"jsonrpc":"2.0","id":$ID,"error":"no"}`, noResult + `malformed message: its error has the wrong form: "no"`},
		{"result and error", `{"jsonrpc":"2.0","id":$ID,"result":{"content":[]},"error":{"code":-5,"message":"both"}}`, "MCP error -5: both"},
		{"code with a fraction", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603.0,"message":"out of ink"}}`, "MCP error -32603: out of ink"},
		{"code as text", `{"jsonrpc":"2.0","id":$ID,"error":{"code":"-32603","message":"out of ink"}}`, "MCP error -32603: out of ink"},
		{"data", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"Internal error","data":{"tray":2}}}`, `MCP error -32603: Internal error: {"tray":2}`},
		{"data alone", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"","data":"tray 2"}}`, "MCP error -32603: tray 2"},
		{"no version", `{"id":$ID,"result":{"content":[]}}`, noResult + `malformed message: its "jsonrpc" is not "2.0"`},
		{"broken JSON", `{"jsonrpc":"2.0","id":$ID,"result":{"content":[}`, noResult + "malformed message: invalid JSON"},
		{"too deep", `{"jsonrpc":"2.0","id":$ID,"result":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, noResult + "malformed message: invalid JSON"},
		{"task", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"task","task":{"taskId":"1"}}}`, "with a task"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := legacy(t, step{On: "tools/call", Print: []string{tt.line}})
			tools, _ := discovered(t, source(t, server))
			for range 2 {
				r, err := tools["t"].Run(t.Context(), registry.Call{Tool: "t", Params: json.RawMessage(`{}`)})
				got := r.Text()
				if failed, ok := errors.AsType[*ServerError](err); ok {
					got = failed.Advice() + " " + failed.Error()
				}
				if err == nil && r.ErrorCategory != registry.ErrorExecution || !strings.Contains(got, tt.want) {
					t.Errorf("got %+v, %v\nwant %s", r, err, tt.want)
				}
			}
		})
	}
}

// TestStrayMessagesAreIgnored checks that answers to no request are dropped,
// and that the real answer after them is used.
func TestStrayMessagesAreIgnored(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
	}{
		{"another id", []string{`{"jsonrpc":"2.0","id":77777,"result":{"content":[{"type":"text","text":"forged"}]}}`}},
		{"another id as a string", []string{`{"jsonrpc":"2.0","id":"77777","result":{"content":[{"type":"text","text":"forged"}]}}`, `{"jsonrpc":"2.0","id":"x$ID","result":{}}`}},
		{"the id with a fraction", []string{`{"jsonrpc":"2.0","id":$ID.5,"result":{"content":[{"type":"text","text":"forged"}]}}`}},
		{"a list as id", []string{`{"jsonrpc":"2.0","id":[],"method":"ping"}`}},
		{"unknown notifications", []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/zzz","params":[1]}`, `{"jsonrpc":"2.0","method":""}`}},
		{"progress of no request", []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":"x"}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":null}`}},
		{"requests", []string{`{"jsonrpc":"2.0","id":"s1","method":"ping"}`, `{"jsonrpc":"2.0","id":"s2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}`, `{"jsonrpc":"2.0","id":"s3","method":"nonsense"}`, `{"jsonrpc":"2.0","id":"s1","method":"ping"}`}},
		{"a result of no request", []string{`{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","result":{}}`, `{"jsonrpc":"2.0","id":null,"result":null}`}},
		{"a refusal of a notification", []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Unexpected notification notifications/initialized"}}`}},
		{"a batch", []string{`[{"jsonrpc":"2.0","id":4242,"result":{}},{"jsonrpc":"2.0","method":"notifications/x"},5]`, `[]`}},
		{"text", []string{"", "   ", "hello", "\x00\xff\xfe", "nul"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good := `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"true"}]}}`
			server := legacy(t, step{On: "tools/call", Print: append(tt.lines, good, good)})
			tools, _ := discovered(t, source(t, server))
			for range 2 {
				if r := run(t, tools, "t", `{}`); r.Text() != "true" || r.IsError {
					t.Errorf("got %+v", r)
				}
			}
		})
	}
}

func TestFloods(t *testing.T) {
	tests := []struct{ name, line string }{
		{"notifications", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
		{"progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"toolreg-2","progress":1}}`},
		{"requests", `{"jsonrpc":"2.0","id":"x","method":"roots/list"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flood := step{On: "tools/call", Print: []string{tt.line}, Times: 5_000}
			tools, _ := discovered(t, source(t, legacy(t, flood, answer(`{"content":[{"type":"text","text":"through"}]}`))))
			if r := run(t, tools, "t", `{}`); r.Text() != "through" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestEndlessNoiseOnStdout(t *testing.T) {
	server := scripted(t, step{On: "start", Print: []string{"$BIG"}, Big: 1000, Times: 3000})
	_, _, err := source(t, server).Discover(t.Context())
	if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "more than 1 MiB of text on stdout") {
		t.Errorf("error %v", err)
	}
	tools, _ := discovered(t, source(t, legacy(t, step{On: "tools/call", Print: []string{"$BIG"}, Big: 1000, Times: 3000})))
	_, err = tools["t"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{}`)})
	var failed *ServerError
	if !errors.As(err, &failed) || !strings.Contains(failed.Advice(), "may have had effects") {
		t.Errorf("during a call: %v", err)
	}
}

func TestEndlessLine(t *testing.T) {
	server := scripted(t, step{On: "start", Print: []string{`{"jsonrpc":"2.0","x":"$BIG"}`}, Big: 2 << 20})
	s := source(t, server, func(o *Options) { o.Limits = Limits{Frame: 1 << 20} })
	_, _, err := s.Discover(t.Context())
	if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "a message larger than the limit of 1 MiB") {
		t.Errorf("error %v", err)
	}
}

func TestSchemaOverTheLimit(t *testing.T) {
	big := `{"name":"big","inputSchema":{"type":"object","description":"` + strings.Repeat("x", 2000) + `"}}`
	server := scripted(t, refuseProbe, shakeHands, listingOf(oneTool+","+big))
	tools, diags := discovered(t, source(t, server, func(o *Options) { o.Limits = Limits{Schema: 1000} }))
	if tools["big"].Quarantine == nil || len(tools) != 2 || len(diags) != 1 || !strings.Contains(diags[0].Message, "its inputSchema has 2034 bytes, but the limit is 1000") {
		t.Errorf("%d tools, %v", len(tools), diags)
	}
}

// TestServerThatStopsReading checks that a call that does not fit into the pipe
// ends at its time limit, and that the server is stopped.
func TestServerThatStopsReading(t *testing.T) {
	deaf := listingOf(oneTool)
	deaf.Deaf = true
	s := source(t, scripted(t, refuseProbe, shakeHands, deaf))
	tools, _ := discovered(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	params, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 4<<20)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := tools["t"].Run(ctx, registry.Call{Params: params})
	if err != nil || r.ErrorCategory != registry.ErrorTimeout {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRawServerInfo(t *testing.T) {
	s := source(t, legacy(t))
	discovered(t, s)
	if got := string(s.Info().ServerInfo); got != `{"version":"0.1","name":"script","x":12345678901234567891}` {
		t.Errorf("serverInfo %s", got)
	}
}

func TestQuestions(t *testing.T) {
	tests := []struct {
		name     string
		revision string
		elicit   func(context.Context, ask.Elicitation) (ask.Answer, error)
		want     string
	}{
		{"nobody there", "2025-11-25", nil, "decline <nil>"},
		{"nobody there", "2026-07-28", nil, "decline <nil>"},
		{"accepted", "2025-11-25", accept(`{"name":"Ada"}`), "accept Ada"},
		{"accepted", "2026-07-28", accept(`{"name":"Ada"}`), "accept Ada"},
		{"failed", "2025-11-25", func(context.Context, ask.Elicitation) (ask.Answer, error) {
			return ask.Answer{Action: "accept"}, errors.New("no tty")
		}, "cancel <nil>"},
		{"nonsense", "2025-11-25", func(context.Context, ask.Elicitation) (ask.Answer, error) { return ask.Answer{Action: "maybe"}, nil }, "decline <nil>"},
		{"answer is not an object", "2025-11-25", accept(`[1]`), "cancel <nil>"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.revision, func(t *testing.T) {
			s := source(t, stdioServer(t, "--protocol", tt.revision), func(o *Options) { o.Elicit = tt.elicit })
			tools, _ := discovered(t, s)
			if r := run(t, tools, "ask", `{}`); r.Text() != tt.want {
				t.Errorf("got %+v, want %s", r, tt.want)
			}
		})
	}
}

func accept(content string) func(context.Context, ask.Elicitation) (ask.Answer, error) {
	return func(_ context.Context, e ask.Elicitation) (ask.Answer, error) {
		if e.Server != "test" || e.Mode != "form" || e.Message != "What is your name?" || !strings.Contains(string(e.Schema), `"name"`) {
			return ask.Answer{}, fmt.Errorf("odd question %+v", e)
		}
		return ask.Answer{Action: "accept", Content: json.RawMessage(content)}, nil
	}
}

// TestSelfReferentialSchemas checks that such schemas are refused: validating
// an answer against one would crash the process with a stack overflow.
func TestSelfReferentialSchemas(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","$ref":"#"}`,
		`{"type":"object","allOf":[{"$ref":"#"}]}`,
		`{"type":"object","properties":{"a":{"type":"string","$ref":"#"}}}`,
		`{"type":"object","$dynamicRef":"#"}`,
		`{"type":"object","properties":{"a":` + strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40) + `}}`,
	} {
		question := step{On: "tools/call", Print: []string{`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":` + schema + `}}`}}
		s := source(t, legacy(t, question, answer(`{"content":[]}`)), func(o *Options) {
			o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
				t.Error("the person was asked")
				return ask.Answer{Action: "accept", Content: json.RawMessage(`{"a":"x"}`)}, nil
			}
		})
		tools, _ := discovered(t, s)
		run(t, tools, "t", `{}`)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseDuringAQuestion checks that Close does not wait for an answer.
func TestCloseDuringAQuestion(t *testing.T) {
	asked := make(chan struct{})
	s := source(t, stdioServer(t, "--protocol", "2025-11-25"), func(o *Options) {
		o.Elicit = func(ctx context.Context, _ ask.Elicitation) (ask.Answer, error) {
			close(asked)
			<-ctx.Done()
			return ask.Answer{}, ctx.Err()
		}
	})
	tools, _ := discovered(t, s)
	failed := make(chan error, 1)
	go func() {
		_, err := tools["ask"].Run(t.Context(), registry.Call{})
		failed <- err
	}()
	<-asked
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, registry.ErrSourceFailed) {
		t.Errorf("error %v", err)
	}
}

// modernScript is a scripted server of revision 2026-07-28.
func modernScript(t *testing.T, call step) *Source {
	t.Helper()
	return source(t, scripted(t,
		sayModern,
		step{On: "tools/list", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[` + oneTool + `]}}`}},
		call))
}

func TestEndlessInputRequests(t *testing.T) {
	asks := answer(`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"again?","requestedSchema":{"type":"object"}}}},"requestState":"s"}`)
	s := modernScript(t, asks)
	tools, _ := discovered(t, s)
	r := run(t, tools, "t", `{}`)
	if !r.IsError || !strings.Contains(r.Text(), "asked for input more than 5 times") {
		t.Errorf("got %+v", r)
	}
}

func TestURLsToOpenBeforeACall(t *testing.T) {
	refusal := step{On: "tools/call", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32042,"message":"sign in first","data":{"elicitations":[{"mode":"url","message":"Sign in","url":"https://example.com/in","elicitationId":"e1"}]}}}`}}
	for _, action := range []string{"accept", "decline"} {
		asked := 0
		s := source(t, legacy(t, refusal), func(o *Options) {
			o.Elicit = func(_ context.Context, e ask.Elicitation) (ask.Answer, error) {
				asked++
				if e.Mode != "url" || e.URL != "https://example.com/in" || e.ID != "e1" {
					t.Errorf("asked %+v", e)
				}
				return ask.Answer{Action: action}, nil
			}
		})
		tools, _ := discovered(t, s)
		r := run(t, tools, "t", `{}`)
		want, times := "MCP error -32042: sign in first", 1
		if action == "accept" {
			want, times = "asked for input more than 5 times", 5
		}
		if !r.IsError || !strings.Contains(r.Text(), want) || asked != times {
			t.Errorf("%s: asked %d times, got %s", action, asked, r.Text())
		}
	}
}

// TestLogging checks that stderr is logged by line, with the secrets of the
// settings masked.
func TestLogging(t *testing.T) {
	server := stdioServer(t, "--stderr", `using s3cret-value\nready`)
	var log syncBuffer
	s := source(t, server, hides("s3cret-value"), func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	discovered(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	text := log.String()
	if !strings.Contains(text, `server=test line="using ***"`) || !strings.Contains(text, `line=ready`) || strings.Contains(text, "s3cret") {
		t.Errorf("log:\n%s", text)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
