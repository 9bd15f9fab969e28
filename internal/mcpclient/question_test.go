package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// revisions lists all revisions that the SDK speaks.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// everyWay runs f with the real server with flags on every revision over stdio,
// on the last two over HTTP, and over SSE.
func everyWay(t *testing.T, f func(t *testing.T, server settings.Server), flags ...string) {
	t.Helper()
	for _, revision := range revisions {
		all := append([]string{"--protocol", revision}, flags...)
		t.Run("stdio "+revision, func(t *testing.T) { f(t, stdioServer(t, all...)) })
		if revision >= "2025-11-25" {
			t.Run("http "+revision, func(t *testing.T) { f(t, httpServer(serve(t, nil, all...).URL)) })
		}
	}
	t.Run("sse", func(t *testing.T) {
		web := serve(t, nil, append([]string{"--sse", "--protocol", "2024-11-05"}, flags...)...)
		f(t, settings.Server{Name: "test", URL: web.URL, Type: "sse", Timeout: time.Minute, ConnectTimeout: 20 * time.Second})
	})
}

// heard collects reports of requests that were refused without asking the user.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) add(_, what, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, what+": "+reason)
}

func (h *heard) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

func TestFormsReachTheUser(t *testing.T) {
	everyWay(t, func(t *testing.T, server settings.Server) {
		s := source(t, server, func(o *Options) {
			o.Elicit = func(_ context.Context, e ask.Elicitation) (ask.Answer, error) {
				var names []string
				for _, f := range e.Form.Fields {
					names = append(names, f.Name)
				}
				if e.During != `tool "form"` || e.Message != "hi" || !slices.Equal(names, []string{"z", "b", "a"}) {
					t.Errorf("asked %+v, fields %v", e, names)
				}
				return ask.Answer{Action: "accept", Content: json.RawMessage(`{"z":9007199254740993,"b":["x"]}`)}, nil
			}
		})
		tools, _ := discovered(t, s)
		r := run(t, tools, "form", `{"message":"hi","schema":{"type":"object","properties":{"z":{"type":"integer"},"b":{"type":"array","items":{"type":"string","enum":["x"]}},"a":{"type":"boolean"}}}}`)
		if !strings.HasPrefix(r.Text(), `accept {"b":["x"],"z":9007199254740`) {
			t.Errorf("got %s", r.Text())
		}
	}, "--dialogs")
}

func TestURLsReachTheUser(t *testing.T) {
	everyWay(t, func(t *testing.T, server settings.Server) {
		s := source(t, server, func(o *Options) {
			o.Elicit = func(_ context.Context, e ask.Elicitation) (ask.Answer, error) {
				if e.Mode != "url" || e.URL != "https://example.com/in" || e.Form != nil || e.Done != nil {
					t.Errorf("asked %+v", e)
				}
				return ask.Answer{Action: "accept", Content: json.RawMessage(`{"never":"sent"}`)}, nil
			}
		})
		tools, _ := discovered(t, s)
		if r := run(t, tools, "open", `{"url":"https://example.com/in"}`); r.Text() != "accept null" {
			t.Errorf("got %s", r.Text())
		}
	}, "--dialogs")
}

func TestRootsAreTheWorkspace(t *testing.T) {
	everyWay(t, func(t *testing.T, server settings.Server) {
		s := source(t, server, func(o *Options) { o.Workspace = "/some where/work" })
		tools, _ := discovered(t, s)
		if r := run(t, tools, "roots", `{}`); r.Text() != "file:///some%20where/work" {
			t.Errorf("got %+v", r)
		}
		if used := s.Info().DeprecatedText(); !strings.Contains(used, "roots (deprecated since 2026-07-28)") {
			t.Errorf("deprecated %q", used)
		}
	}, "--dialogs")
}

func TestSampling(t *testing.T) {
	everyWay(t, func(t *testing.T, server settings.Server) {
		s := source(t, server, func(o *Options) {
			o.Sample = func(_ context.Context, q ask.Sampling) (json.RawMessage, error) {
				want := `{"maxTokens":100,"messages":[{"content":{"type":"text","text":"why?"},"role":"user"}],"systemPrompt":"Be brief."}`
				if string(q.Params) != want || q.Server != "test" || q.During != `tool "sample"` {
					t.Errorf("asked %+v: %s", q, q.Params)
				}
				return json.RawMessage(`{"role":"assistant","model":"m1","content":{"type":"text","text":"because"}}`), nil
			}
		})
		tools, _ := discovered(t, s)
		if r := run(t, tools, "sample", `{"prompt":"why?"}`); r.Text() != "m1 says because" {
			t.Errorf("got %+v", r)
		}
		if used := s.Info().DeprecatedText(); !strings.Contains(used, "sampling (deprecated since 2026-07-28)") {
			t.Errorf("deprecated %q", used)
		}
	}, "--dialogs")
}

func TestRefusedSampling(t *testing.T) {
	good := json.RawMessage(`{"role":"assistant","model":"m1","content":{"type":"text","text":"because"}}`)
	tests := []struct {
		name   string
		sample func(context.Context, ask.Sampling) (json.RawMessage, error)
		params string
		want   string
		times  int
	}{
		{"no command", nil, `{"prompt":"x"}`, "-32601", 0},
		{"not allowed", func(context.Context, ask.Sampling) (json.RawMessage, error) { return nil, errors.New("not today") }, `{"prompt":"x"}`, "not today", 1},
		{"not a message", func(context.Context, ask.Sampling) (json.RawMessage, error) { return json.RawMessage(`{"x":1}`), nil }, `{"prompt":"x"}`, "not a message with a role", 1},
		{"broken", func(context.Context, ask.Sampling) (json.RawMessage, error) {
			return json.RawMessage(`{"role":"a","content":{}`), nil
		}, `{"prompt":"x"}`, "not a message with a role", 1},
		{"tools", func(context.Context, ask.Sampling) (json.RawMessage, error) { return good, nil }, `{"prompt":"x","tools":true}`, "", 0},
		{"flood", func(context.Context, ask.Sampling) (json.RawMessage, error) { return good, nil }, `{"prompt":"x","count":14}`, "more than 3 were asked during one request", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			s := source(t, stdioServer(t, "--dialogs", "--protocol", "2025-11-25"), func(o *Options) {
				o.Limits.Samples = 3
				if tt.sample != nil {
					o.Sample = func(ctx context.Context, q ask.Sampling) (json.RawMessage, error) { asked++; return tt.sample(ctx, q) }
				}
			})
			tools, _ := discovered(t, s)
			if r := run(t, tools, "sample", tt.params); !strings.Contains(r.Text(), tt.want) || asked != tt.times {
				t.Errorf("asked %d times, got %s", asked, r.Text())
			}
		})
	}
}

// TestQuestionsHaveALimit checks that a server may ask a limited number of
// questions, and that the rest are refused.
func TestQuestionsHaveALimit(t *testing.T) {
	for _, tt := range []struct {
		revision, params, want string
		asked                  int
	}{
		{"2025-11-25", `{"count":30}`, "accepted 20 of 30", 20},
		{"2026-07-28", `{"count":5}`, "asked 5 times", 5},
		{"2026-07-28", `{"count":6}`, "asked for input more than 5 times", 5},
	} {
		var refused heard
		asked := 0
		s := source(t, stdioServer(t, "--dialogs", "--protocol", tt.revision), func(o *Options) {
			o.Refused = refused.add
			o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
				asked++
				return ask.Answer{Action: "accept"}, nil
			}
		})
		tools, _ := discovered(t, s)
		if r := run(t, tools, "rounds", tt.params); !strings.Contains(r.Text(), tt.want) || asked != tt.asked {
			t.Errorf("%s: asked %d times, got %s", tt.revision, asked, r.Text())
		}
		if tt.asked == 20 && !strings.Contains(refused.text(), `question: more than 20 were asked during tool "rounds"`) {
			t.Errorf("told %s", refused.text())
		}
		if r := run(t, tools, "rounds", `{"count":1}`); strings.Contains(r.Text(), "more than") { // each call begins anew
			t.Errorf("%s: the next call: %s", tt.revision, r.Text())
		}
	}
}

// TestConcurrentQuestions checks that each question is answered or refused.
func TestConcurrentQuestions(t *testing.T) {
	var mu sync.Mutex
	waiting, full := 0, make(chan struct{})
	s := source(t, stdioServer(t, "--dialogs", "--protocol", "2025-11-25"), func(o *Options) {
		o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
			mu.Lock()
			if waiting++; waiting == wire.MaxServerRequests {
				close(full)
			}
			mu.Unlock()
			<-full
			return ask.Answer{Action: "accept"}, nil
		}
	})
	tools, _ := discovered(t, s)
	if r := run(t, tools, "crowd", `{"count":60}`); r.Text() != "60 answers" {
		t.Errorf("got %+v", r)
	}
}

// question returns a request of a scripted server.
func question(params string) string {
	return `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":` + params + `}`
}

const plainQuestion = `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`

// TestQuestionsThatAreNotShown checks questions that cannot be shown or that do
// not belong to a request.
func TestQuestionsThatAreNotShown(t *testing.T) {
	list := listingOf(oneTool)
	early := step{On: "tools/list", Print: append([]string{question(plainQuestion)}, list.Print...)}
	done := answer(`{"content":[]}`).Print[0]
	tests := []struct {
		name  string
		steps []step
		want  string
	}{
		{"during the listing", []step{early, answer(`{"content":[]}`)}, "no request was running"},
		{"after the call", []step{list, {On: "tools/call", Print: []string{done, question(plainQuestion)}}}, "no request was running"},
		{"unknown mode", []step{list, {On: "tools/call", Print: []string{question(`{"mode":"song","message":"?"}`), done}}}, `its mode "song" is not supported`},
		{"no params", []step{list, {On: "tools/call", Print: []string{question(`[]`), done}}}, "it has no params"},
		{"many fields", []step{list, {On: "tools/call", Print: []string{question(`{"message":"?","requestedSchema":{"properties":{` + strings.TrimSuffix(strings.Repeat(`"f":{},`, 10_000), ",") + `}}}`), done}}}, "repeats"},
		{"javascript URL", []step{list, {On: "tools/call", Print: []string{question(`{"mode":"url","message":"?","url":"javascript:alert(1)"}`), done}}}, "not a web address"},
		{"file URL", []step{list, {On: "tools/call", Print: []string{question(`{"mode":"url","message":"?","url":"file:///etc/passwd"}`), done}}}, "not a web address"},
		{"references", []step{list, {On: "tools/call", Print: []string{question(`{"message":"?","requestedSchema":{"$ref":"#"}}`), done}}}, "references"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			told := make(chan string, 10)
			s := source(t, scripted(t, append([]step{refuseProbe, shakeHands}, tt.steps...)...), func(o *Options) {
				o.Refused = func(_, what, reason string) { told <- what + ": " + reason }
				o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
					t.Error("the person was asked")
					return ask.Answer{}, nil
				}
			})
			tools, _ := discovered(t, s)
			run(t, tools, "t", `{}`)
			if got := <-told; !strings.Contains(got, tt.want) {
				t.Errorf("told %q, want %q", got, tt.want)
			}
		})
	}
}

// TestQuestionsThatAreOver checks that the user is not asked a question whose
// answer is no longer needed.
func TestQuestionsThatAreOver(t *testing.T) {
	done := answer(`{"content":[]}`).Print[0]
	tests := []struct {
		name string
		tail []string
		want error
	}{
		{"withdrawn", []string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`}, wire.ErrWithdrawn},
		{"call ended", []string{done}, wire.ErrRequestOver},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			over := make(chan error, 1)
			print := append([]string{question(plainQuestion)}, tt.tail...)
			if tt.want == wire.ErrWithdrawn {
				print = append(print, done)
			}
			s := source(t, legacy(t, step{On: "tools/call", Print: print}), func(o *Options) {
				o.Elicit = func(ctx context.Context, _ ask.Elicitation) (ask.Answer, error) {
					<-ctx.Done()
					over <- context.Cause(ctx)
					return ask.Answer{}, ctx.Err()
				}
			})
			tools, _ := discovered(t, s)
			run(t, tools, "t", `{}`)
			if err := <-over; !errors.Is(err, tt.want) && !errors.Is(err, wire.ErrRequestOver) {
				t.Errorf("ended by %v", err)
			}
		})
	}
}

// TestQuestionEndsWithItsCall checks that canceling a call cancels its question.
func TestQuestionEndsWithItsCall(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	over := make(chan struct{})
	s := source(t, stdioServer(t, "--dialogs", "--protocol", "2025-11-25"), func(o *Options) {
		o.Elicit = func(ctx context.Context, _ ask.Elicitation) (ask.Answer, error) {
			cancel(why)
			<-ctx.Done()
			close(over)
			return ask.Answer{}, ctx.Err()
		}
	})
	tools, _ := discovered(t, s)
	if _, err := tools["form"].Run(ctx, registry.Call{}); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	<-over
}

func TestLongMessagesAreCut(t *testing.T) {
	big := step{On: "tools/call", Big: 1 << 20, Print: []string{question(`{"message":"$BIG","requestedSchema":{"properties":{"a":{"type":"string","title":"$BIG"}}}}`), question(`{"message":"$BIG","requestedSchema":{}}`),
		answer(`{"content":[]}`).Print[0]}}
	asked := make(chan ask.Elicitation, 2)
	var refused heard
	s := source(t, legacy(t, big), func(o *Options) {
		o.Refused = refused.add
		o.Elicit = func(_ context.Context, e ask.Elicitation) (ask.Answer, error) { asked <- e; return ask.Answer{}, nil }
	})
	tools, _ := discovered(t, s)
	run(t, tools, "t", `{}`)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// The first is refused for the size of its schema; the second has the id of
	// the first, which may have been answered already.
	if !strings.Contains(refused.text(), "its schema has") {
		t.Errorf("told %s", refused.text())
	}
	select {
	case e := <-asked:
		if want := fmt.Sprintf("%s…\n(cut at 4096 of %d bytes)", strings.Repeat("x", 4096), 1<<20); e.Message != want {
			t.Errorf("message of %d bytes", len(e.Message))
		}
	default:
	}
}

// TestMirroredParamsOfEveryKind checks that values that a header cannot carry
// are encoded, and that the server, which compares header and params, accepts
// them.
func TestMirroredParamsOfEveryKind(t *testing.T) {
	web := serve(t, nil, "--dialogs", "--protocol", "2026-07-28")
	tools, _ := discovered(t, source(t, httpServer(web.URL)))
	for _, value := range []string{"eu-west", "a\r\nX-Evil: 1", " leading", "trailing\t", "ünïcode", "=?base64?eA==?=", "\x00\x1b", strings.Repeat("long", 4000), "\u202e"} {
		params, err := json.Marshal(map[string]string{"region": value})
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, tools, "mirror", string(params))
		if want := fmt.Sprintf("param %q", value); r.IsError || !strings.HasSuffix(r.Text(), want) {
			t.Errorf("%q: got %.200s", value, r.Text())
		}
	}
	web.mu.Lock()
	defer web.mu.Unlock()
	for _, h := range web.headers {
		if h.Get("X-Evil") != "" {
			t.Error("a header was injected")
		}
	}
}
