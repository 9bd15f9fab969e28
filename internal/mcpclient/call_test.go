package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestCallsOnEveryRevision(t *testing.T) {
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			s := source(t, stdioServer(t, "--protocol", revision))
			tools, _ := discovered(t, s)
			if got := s.Info().ProtocolVersion; got != revision {
				t.Errorf("spoke %s", got)
			}
			if r := run(t, tools, "echo", `{"text":"héllo\n"}`); r.IsError || r.Text() != "héllo\n" || r.Display.Text != "héllo\n" {
				t.Errorf("echo: %+v", r)
			}
			if r := run(t, tools, "add", `{"a":1,"b":2.5}`); string(r.Structured) != `{"sum":3.5}` || r.IsError {
				t.Errorf("add: %+v", r)
			}
			if r := run(t, tools, "fail", `{}`); !r.IsError || r.ErrorCategory != registry.ErrorExecution || r.Text() != "it went wrong" {
				t.Errorf("fail: %+v", r)
			}
		})
	}
}

func TestEveryKindOfContent(t *testing.T) {
	tools, _ := discovered(t, source(t, stdioServer(t, "--protocol", "2025-11-25")))
	r := run(t, tools, "image", "")
	want := []registry.Content{
		{Type: registry.ContentText, Text: "a picture"},
		{Type: registry.ContentImage, Data: []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x00IDATfake"), MIMEType: "image/png"},
		{Type: registry.ContentAudio, Data: []byte("RIFF fake"), MIMEType: "audio/wav"},
		{Type: registry.ContentResource, URI: "test://text", MIMEType: "text/plain", Text: "inside"},
		{Type: registry.ContentResource, URI: "test://blob", MIMEType: "application/octet-stream", Data: []byte{0, 1, 2}},
		{Type: registry.ContentResourceLink, URI: "https://example.com/x", Name: "x", Title: "X", MIMEType: "text/html"},
	}
	if diff := cmp.Diff(want, r.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	if string(r.Meta) != `{"trace":"t1"}` {
		t.Errorf("_meta %s", r.Meta)
	}
	if r.Summary != "image returned 1 text, 1 image, 1 audio, 2 resource, 1 resource_link" {
		t.Errorf("summary %q", r.Summary)
	}
	if !strings.HasPrefix(r.Display.Text, "```json\n[\n  {\n") {
		t.Errorf("display %q", r.Display.Text)
	}
}

func TestOutputThatBreaksItsSchemaIsAnError(t *testing.T) {
	tools, _ := discovered(t, source(t, stdioServer(t)))
	r := run(t, tools, "liar", `{}`)
	if !r.IsError || r.ErrorCategory != registry.ErrorExecution {
		t.Errorf("%+v", r)
	}
	if text := r.Text(); !strings.Contains(text, "outputSchema: /sum: ") || !strings.HasSuffix(text, "\nno sum") {
		t.Errorf("text %q", text)
	}
	if string(r.Structured) != `{"sum":"five"}` {
		t.Errorf("structured %s", r.Structured)
	}
}

// PHP writes an empty object as a list.
func TestOutputOfPHP(t *testing.T) {
	r := registry.NewOutputValidator(json.RawMessage(`{"type":"object"}`)).CheckResult(t.Context(), registry.Result{Structured: json.RawMessage("[]")})
	if r.IsError || string(r.Structured) != "{}" {
		t.Errorf("%+v", r)
	}
}

func TestUnknownToolIsAToolError(t *testing.T) {
	s := source(t, stdioServer(t))
	discovered(t, s)
	r, err := s.requests.call(t.Context(), &registry.Definition{ServerTool: "nope"}, registry.Call{}, nil)
	if err != nil || !r.IsError || r.Text() != `MCP error -32602: unknown tool "nope"` {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestErrorCodeIsShownOnce(t *testing.T) {
	s := source(t, legacy(t, step{On: "tools/call", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"MCP error -32603: broken"}}`}}))
	tools, _ := discovered(t, s)
	if r := run(t, tools, "t", `{}`); !r.IsError || r.Text() != "MCP error -32603: broken" {
		t.Errorf("%+v", r)
	}
}

func TestServerEnvironment(t *testing.T) {
	server := stdioServer(t)
	server.Env = append(server.Env, settings.Pair{Name: "GIVEN", Value: "yes"})
	environ := append(os.Environ(), "STRAY_TOKEN=secret")
	s := source(t, server, func(o *Options) { o.Environ = environ })
	tools, _ := discovered(t, s)
	if got := said(run(t, tools, "env", `{"names":["GIVEN","STRAY_TOKEN"]}`)); got != "GIVEN=yes\nSTRAY_TOKEN is not set" {
		t.Errorf("got %q", got)
	}
	server.InheritEnv = true
	tools, _ = discovered(t, source(t, server, func(o *Options) { o.Environ = environ }))
	if got := said(run(t, tools, "env", `{"names":["STRAY_TOKEN"]}`)); got != "STRAY_TOKEN=secret" {
		t.Errorf("inherited: %q", got)
	}
}

func TestProgressComesBeforeTheResult(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			var logs []LogMessage
			s := source(t, stdioServer(t, "--protocol", revision), func(o *Options) {
				o.LogLevel = "info"
				o.OnLog = func(m LogMessage) { logs = append(logs, m) }
			})
			tools, _ := discovered(t, s)
			var notes []registry.Progress
			var over bool
			tool := tools["progress"]
			_, err := tool.Run(t.Context(), registry.Call{Params: json.RawMessage(`{"steps":100}`), Progress: func(p registry.Progress) {
				if over {
					t.Error("progress after the result")
				}
				notes = append(notes, p)
			}})
			over = true
			if err != nil {
				t.Fatal(err)
			}
			if want := []LogMessage{{Server: "test", Level: "info", Logger: "test", Text: "starting"}}; !cmp.Equal(logs, want) {
				t.Errorf("log messages %+v", logs)
			}
			if len(notes) != 100 || notes[99] != (registry.Progress{Done: 100, Total: 100, Message: "step 100"}) {
				t.Errorf("%d notes, last %+v", len(notes), notes[max(0, len(notes)-1):])
			}
		})
	}
}

func TestBigResult(t *testing.T) {
	const n = 5 << 20
	big := answer(`{"content":[{"type":"text","text":"\n$BIG"}]}`)
	big.Big = n
	tools, _ := discovered(t, source(t, legacy(t, big)))
	r := run(t, tools, "t", `{}`)
	if len(r.Text()) != n+1 || r.IsError {
		t.Errorf("%d bytes of %d", len(r.Text()), n+1)
	}
}

func TestResultOverTheLimitNamesIt(t *testing.T) {
	s := source(t, stdioServer(t), func(o *Options) { o.Limits = Limits{Result: 1 << 20} })
	tools, _ := discovered(t, s)
	_, err := tools["big"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"bytes":3000000}`)})
	var failed *ServerError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "a message larger than the limit of 1 MiB") ||
		!strings.Contains(failed.Advice(), "may have had effects") {
		t.Errorf("error %v", err)
	}
	if r := run(t, tools, "echo", `{"text":"again"}`); r.Text() != "again" {
		t.Errorf("the next call: %+v", r)
	}
}

func TestCancelledCallReachesTheServer(t *testing.T) {
	dir := t.TempDir()
	marker, started := filepath.Join(dir, "marker"), filepath.Join(dir, "started")
	tools, _ := discovered(t, source(t, stdioServer(t)))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	go func() { waitForFile(t, started); cancel(why) }()
	params, _ := json.Marshal(map[string]any{"marker": marker, "started": started})
	_, err := tools["slow"].Run(ctx, registry.Call{Params: params})
	if !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	waitForFile(t, marker)
	if r := run(t, tools, "echo", `{"text":"alive"}`); r.Text() != "alive" {
		t.Errorf("after the cancel: %+v", r)
	}
}

func TestTimeLimitOfACall(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	tools, _ := discovered(t, source(t, stdioServer(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	params, _ := json.Marshal(map[string]any{"marker": marker})
	r, err := tools["slow"].Run(ctx, registry.Call{Params: params})
	if err != nil || !r.IsError || r.ErrorCategory != registry.ErrorTimeout {
		t.Errorf("%+v, %v", r, err)
	}
	if text := r.Text(); !strings.Contains(text, `server "test": tools/call: no answer from tool "slow" within `) {
		t.Errorf("text %q", text)
	}
	waitForFile(t, marker)
}

func TestCallFailsWhenServerCrashes(t *testing.T) {
	s := source(t, stdioServer(t))
	tools, _ := discovered(t, s)
	_, err := tools["crash"].Run(t.Context(), registry.Call{})
	if !errors.Is(err, registry.ErrSourceFailed) {
		t.Fatalf("error %v", err)
	}
	if want := `server "test": tools/call: it exited (exit status 3); its stderr ends "crashing as told"`; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if got := s.Info().State; got != StateDisconnected {
		t.Errorf("state %s", got)
	}
	if r := run(t, tools, "echo", `{"text":"back"}`); r.Text() != "back" {
		t.Errorf("a later call: %+v", r)
	}
}

func TestCloseWhileCalling(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	s := source(t, stdioServer(t))
	tools, _ := discovered(t, s)
	failed := make(chan error, 1)
	go func() {
		params, _ := json.Marshal(map[string]any{"started": started})
		_, err := tools["slow"].Run(t.Context(), registry.Call{Params: params})
		failed <- err
	}()
	waitForFile(t, started)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, registry.ErrSourceFailed) {
		t.Errorf("error %v", err)
	}
	if _, err := tools["echo"].Run(t.Context(), registry.Call{}); !errors.Is(err, registry.ErrSourceFailed) {
		t.Errorf("a call after Close: %v", err)
	}
}

func TestParallelCalls(t *testing.T) {
	tools, _ := discovered(t, source(t, stdioServer(t)))
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			want := fmt.Sprintf("call %d", i)
			r, err := tools["echo"].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"text":"` + want + `"}`)})
			if err != nil || r.Text() != want {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
}
