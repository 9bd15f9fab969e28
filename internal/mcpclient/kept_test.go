package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// keeperRole is the argument with which the test binary runs KeepServer.
const keeperRole = "keep-server"

// keepers returns a function that makes sources share a server, as runs in one project do.
// The server ends with the test.
func keepers(t *testing.T, server settings.Server) func(change ...func(*Options)) *Source {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "kept") // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	sockets, root := filepath.Join(dir, "s"), filepath.Join(dir, "p")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		names, _ := keep.Names(sockets)
		for _, name := range names {
			if _, err := keep.Stop(context.WithoutCancel(t.Context()), sockets, name); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return func(change ...func(*Options)) *Source {
		return source(t, server, append([]func(*Options){func(o *Options) {
			o.ProjectRoot, o.Workspace = root, root
			o.Keep = &Keep{For: time.Minute, Command: []string{exe, keeperRole}, Use: MustKeep, Origin: func() keep.Origin { return keep.Origin{Root: root, File: "f", Server: server.Name} },
				Folder: func(ctx context.Context) (*keep.Folder, error) {
					return keep.Open(ctx, &state.Dir{Path: sockets}, root)
				}}
		}}, change...)...)
	}
}

// later runs a tool in the background.
func later(t *testing.T, tools map[string]registry.Tool, name, params string, progress func(registry.Progress)) <-chan registry.Result {
	t.Helper()
	out := make(chan registry.Result, 1)
	go func() {
		r, err := tools[name].Run(t.Context(), registry.Call{Tool: name, Params: json.RawMessage(params), Progress: progress})
		if err != nil {
			t.Errorf("calling %s: %v", name, err)
		}
		out <- r
	}()
	return out
}

func TestKeptServerAnswersEachRunApart(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			run := keepers(t, stdioServer(t, "--dialogs", "--protocol", revision))
			marker := filepath.Join(t.TempDir(), "marker")
			answer := func(name string) func(*Options) {
				return func(o *Options) {
					o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
						return ask.Answer{Action: "accept", Content: json.RawMessage(`{"name":"` + name + `"}`)}, nil
					}
				}
			}
			one, _ := discovered(t, run(answer("Ann")))
			second := run(answer("Bob"))
			two, _ := discovered(t, second)
			if r := <-later(t, one, "ask", `{}`, nil); !strings.Contains(r.Text(), "Ann") {
				t.Errorf("the first run: %s", r.Text())
			}
			if r := <-later(t, two, "ask", `{}`, nil); !strings.Contains(r.Text(), "Bob") {
				t.Errorf("the second run: %s", r.Text())
			}
			var mu sync.Mutex
			steps := map[string]int{}
			count := func(name string) func(registry.Progress) {
				return func(p registry.Progress) {
					mu.Lock()
					defer mu.Unlock()
					steps[name] = int(p.Total)
				}
			}
			a, b := later(t, one, "work", `{"steps":2,"pause":1}`, count("one")), later(t, two, "work", `{"steps":3,"pause":1}`, count("two"))
			<-a
			<-b
			if steps["one"] != 2 || steps["two"] != 3 {
				t.Errorf("progress %v", steps)
			}
			ctx, cancel := context.WithCancel(t.Context())
			started := filepath.Join(t.TempDir(), "started")
			canceled := make(chan error, 1)
			go func() {
				_, err := one["slow"].Run(ctx, registry.Call{Tool: "slow", Params: json.RawMessage(`{"seconds":60,"marker":"` + marker + `","started":"` + started + `"}`)})
				canceled <- err
			}()
			waitForFile(t, started)
			cancel()
			if err := <-canceled; !errors.Is(err, context.Canceled) {
				t.Errorf("the canceled call: %v", err)
			}
			waitForFile(t, marker)
			if r := <-later(t, two, "echo", `{"text":"alive"}`, nil); r.Text() != "alive" {
				t.Errorf("the other run: %s", r.Text())
			}
			// A run that ends cancels what it has asked.
			if err := os.Remove(marker); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(started); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = two["slow"].Run(context.WithoutCancel(t.Context()), registry.Call{Tool: "slow", Params: json.RawMessage(`{"seconds":60,"marker":"` + marker + `","started":"` + started + `"}`)})
			}()
			waitForFile(t, started)
			if err := second.Close(); err != nil {
				t.Error(err)
			}
			waitForFile(t, marker)
		})
	}
}

// While calls of two runs are in progress, it is unknown which of them a question of an
// older server is about.
func TestQuestionDuringCallsOfTwoRunsIsDeclined(t *testing.T) {
	run := keepers(t, stdioServer(t, "--dialogs", "--protocol", "2025-11-25"))
	accept := func(o *Options) {
		o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
			return ask.Answer{Action: "accept", Content: json.RawMessage(`{"name":"Ann"}`)}, nil
		}
	}
	one, _ := discovered(t, run(accept))
	two, _ := discovered(t, run(accept))
	started := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = one["slow"].Run(ctx, registry.Call{Tool: "slow", Params: json.RawMessage(`{"seconds":60,"started":"` + started + `"}`)})
	}()
	defer cancel()
	waitForFile(t, started)
	r := <-later(t, two, "ask", `{}`, nil)
	if strings.Contains(r.Text(), "Ann") || !strings.Contains(r.Text(), "With --fresh a run has its own process") {
		t.Errorf("got %s", r.Text())
	}
}

// Each run gets the log messages that its own calls cause, from the level that it wants.
func TestLogMessagesOfAKeptServer(t *testing.T) {
	run := keepers(t, stdioServer(t, "--dialogs", "--protocol", "2025-11-25"))
	var mu sync.Mutex
	var heard []string
	listen := func(name, level string) func(*Options) {
		return func(o *Options) {
			o.LogLevel = level
			o.OnLog = func(m LogMessage) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, name+" "+m.Level+" "+m.Text)
			}
		}
	}
	one, _ := discovered(t, run(listen("one", "debug")))
	two, _ := discovered(t, run(listen("two", "warning")))
	for _, call := range []struct {
		tools  map[string]registry.Tool
		params string
	}{{one, `{"level":"debug","text":"a"}`}, {two, `{"level":"debug","text":"b"}`}, {two, `{"level":"error","text":"c"}`}, {one, `{"level":"info","text":"d"}`}} {
		<-later(t, call.tools, "log", call.params, nil)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(heard, ", "); got != "one debug a, two error c, one info d" {
		t.Errorf("heard %s", got)
	}
}

// The changes of a list that a call causes reach all runs, and later runs see the new list.
func TestChangedListOfAKeptServer(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			run := keepers(t, stdioServer(t, "--changes", "--protocol", revision))
			changed := make(chan Change, 10)
			first := run()
			first.Follow(func(c Change) { changed <- c })
			discovered(t, first)
			two, _ := discovered(t, run())
			if r := <-later(t, two, "grow", `{"tools":["new"]}`, nil); r.Text() != "grown" {
				t.Fatalf("got %s", r.Text())
			}
			if c := <-changed; c.List != "tools" {
				t.Errorf("change %+v", c)
			}
			if three, _ := discovered(t, run()); three["new"].Name == "" {
				t.Error("a later run does not see the new tool")
			}
		})
	}
}

// The session with an HTTP server outlasts a run: the next one begins with its call, and
// starts anew, once, if the server has forgotten the session.
func TestKeptSessionOfAnHTTPServer(t *testing.T) {
	var forgets atomic.Bool
	web := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" && forgets.CompareAndSwap(true, false) {
				http.Error(w, "no such session", http.StatusNotFound)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-11-25", "--json-response")
	run := keepers(t, httpServer(web.URL))
	since := func(before int) []string { // the order of those that are left out is not certain
		return slices.DeleteFunc(web.asked()[before:], func(r string) bool { return r == "GET" || r == "POST notifications/initialized" })
	}
	call := func(change ...func(*Options)) []string {
		t.Helper()
		before := len(web.asked())
		s := run(change...)
		tools, _ := discovered(t, s)
		if r := <-later(t, tools, "echo", `{"text":"hi"}`, nil); r.Text() != "hi" {
			t.Errorf("got %s", r.Text())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return since(before)
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("the first run", call(), "POST server/discover", "POST initialize", "POST tools/list", "POST tools/call")
	expect("the second run", call(), "POST tools/call")
	expect("a run that lists", call(func(o *Options) { o.Keep.Lists = true }), "POST tools/list", "POST tools/call")
	forgets.Store(true)
	expect("a forgotten session", call(), "POST tools/call", "POST initialize", "POST tools/call")
	expect("after it, with the list of the new session", call(), "POST tools/list", "POST tools/call")
	expect("another header", call(func(o *Options) { o.Server.Headers = []settings.Pair{{Name: "X", Value: "1"}} })[:2], "POST server/discover", "POST initialize")
	late := call(func(o *Options) { o.Keep.For = time.Nanosecond })
	web.awaitEnd(t) // it may come after the next request
	late = slices.DeleteFunc(late, func(r string) bool { return r == "DELETE" })
	expect("when its time is up", late[:1], "POST server/discover")
	folder := filepath.Join(t.TempDir(), "s")
	elsewhere := func(o *Options) {
		o.Keep.Folder = func(ctx context.Context) (*keep.Folder, error) {
			return keep.Open(ctx, &state.Dir{Path: folder}, "")
		}
	}
	call(elsewhere)
	_, sessions := keep.Names(folder)
	for _, name := range sessions {
		file := filepath.Join(folder, name+".session")
		if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in the way"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	before := len(web.asked())
	call(elsewhere)
	web.awaitEnd(t)
	unstored := since(before)
	expect("a session that cannot be stored", unstored[len(unstored)-2:], "POST tools/call", "DELETE")
	before = len(web.asked())
	for _, want := range []bool{true, false} {
		if was, err := run().EndKept(t.Context()); was != want || err != nil {
			t.Errorf("a session was ended: %v, %v", was, err)
		}
	}
	web.awaitEnd(t)
	expect("its end", since(before), "DELETE")
}

// A run that continues a session gets the questions that the server asks outside the responses to
// its requests.
func TestQuestionInAKeptHTTPSession(t *testing.T) {
	web := serve(t, nil, "--dialogs", "--protocol", "2025-11-25", "--json-response")
	run := keepers(t, httpServer(web.URL))
	for _, name := range []string{"Ann", "Bob"} {
		s := run(func(o *Options) {
			o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) {
				return ask.Answer{Action: "accept", Content: json.RawMessage(`{"name":"` + name + `"}`)}, nil
			}
		})
		tools, _ := discovered(t, s)
		if r := <-later(t, tools, "ask", `{}`, nil); !strings.Contains(r.Text(), name) {
			t.Errorf("got %s, want the answer of %s", r.Text(), name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(slices.DeleteFunc(web.asked(), func(r string) bool { return r != "POST initialize" })); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A server that has said that it has no stream of the session's own is not asked for one by
// later runs.
func TestServerWithoutStreamIsNotAskedAgain(t *testing.T) {
	web := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.Error(w, "no stream", http.StatusMethodNotAllowed)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-11-25", "--json-response")
	run := keepers(t, httpServer(web.URL))
	asks := func() bool {
		before := len(web.asked())
		s := run()
		tools, _ := discovered(t, s)
		<-later(t, tools, "echo", `{"text":"hi"}`, nil)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return slices.Contains(web.asked()[before:], "GET")
	}
	first := asks()
	for range 20 { // a run does not wait long for the answer
		if !asks() {
			if !first {
				t.Error("the first run did not ask")
			}
			return
		}
	}
	t.Error("each run asks")
}

// Of the sessions that runs begin at the same time, one outlasts them. The others end with
// their run.
func TestOneOfManyHTTPSessionsIsKept(t *testing.T) {
	const runs = 3
	var begun sync.WaitGroup
	begun.Add(runs)
	web := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && r.Header.Get("Mcp-Method") == "" { // initialize
				begun.Done()
				begun.Wait()
			}
			h.ServeHTTP(w, r)
		})
	}, "--protocol", "2025-11-25", "--json-response")
	run := keepers(t, httpServer(web.URL))
	var all sync.WaitGroup
	for range runs {
		s := run()
		all.Go(func() {
			if _, _, err := s.Discover(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for range runs - 1 {
		web.awaitEnd(t)
	}
	count := func() (n int) {
		for _, request := range web.asked() {
			if request == "DELETE" {
				n++
			}
		}
		return n
	}
	if n := count(); n != runs-1 {
		t.Errorf("%d sessions of %d were ended", n, runs)
	}
	was, err := run().EndKept(t.Context())
	web.awaitEnd(t)
	if !was || err != nil || count() != runs {
		t.Errorf("the last session: %v %v, %d were ended", was, err, count())
	}
}
