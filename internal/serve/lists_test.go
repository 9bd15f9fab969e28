package serve

import (
	"context"
	"path/filepath"
	"slices"
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

// upstreams returns servers whose tools change, for each transport and revision.
func upstreams(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"stdio legacy": "--changes --offers;legacy", "stdio modern": "--changes --offers;modern"}
	for name, flags := range map[string][]string{"http legacy": {"--protocol", "2025-11-25"}, "http modern": nil} {
		handler, err := mcptest.Handler(append(flags, "--changes", "--offers")...)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = serveUpstream(t, handler) + ";"
	}
	return out
}

// A tool that a server adds while it runs is offered, clients are notified, and the
// servers are not started again.
func TestChangesOfServersAreFollowed(t *testing.T) {
	for name, upstream := range upstreams(t) {
		for _, revision := range []string{"2025-11-25", wire.FirstModern} {
			t.Run(name+", client of "+revision, func(t *testing.T) {
				s := newServer(t, map[string]string{"m": upstream})
				c, changed, updated := newFollower(t, listen(t, s, nil).URL, revision)
				call := func(name string, params any) string {
					t.Helper()
					r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: params})
					if err != nil || r.IsError {
						t.Fatalf("%s: %v, %v", name, textOf(r), err)
					}
					return textOf(r)
				}
				added := "added_" + revision[:4]
				call("grow", map[string]any{"tools": []string{added}})
				await(t, changed)
				list, err := c.ListTools(t.Context(), nil)
				if err != nil || !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == added }) {
					t.Fatalf("%v, %v", list, err)
				}
				if text := call(added, nil); text != "hello" {
					t.Errorf("the new tool says %q", text)
				}
				if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://docs/notes.txt"}); err != nil {
					t.Fatal(err)
				}
				waitFor(t, func() bool { // a modern server answers a subscription by a stream, which may take a moment
					call("touch", map[string]any{"uri": "test://docs/notes.txt"})
					select {
					case uri := <-updated:
						return uri == "test://docs/notes.txt"
					case <-time.After(100 * time.Millisecond):
						return false
					}
				})
			})
		}
	}
}

// newFollower connects a client that is notified of changes of the tools and of
// resources.
func newFollower(t *testing.T, url, revision string) (c *mcp.ClientSession, changed chan struct{}, updated chan string) {
	t.Helper()
	changed, updated = make(chan struct{}, 100), make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "follower", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
	})
	c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, changed, updated
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("no notification within 30 s")
		panic("unreachable")
	}
}

// A restarted server may have other tools. If it cannot list them, it keeps its earlier
// ones.
func TestRestartedServersAreListedAgain(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "starts")
	s := newServer(t, map[string]string{"m": "--changes --marker " + marker + ";legacy"})
	c, changed, _ := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
	call := func(name string, params any) (*mcp.CallToolResult, error) {
		return c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: params})
	}
	if _, err := call("grow", map[string]any{"tools": []string{"added"}}); err != nil {
		t.Fatal(err)
	}
	await(t, changed)
	_, _ = call("crash", nil)
	if r, err := call("echo", map[string]any{"text": "again"}); err != nil || textOf(r) != "again" {
		t.Fatalf("%v, %v", textOf(r), err)
	}
	await(t, changed) // the new process does not have the added tool
	if _, err := call("added", nil); err == nil {
		t.Error("a removed tool is still offered")
	}
}

// Clients on stdio and over HTTP hear of changes, also those that have requested nothing yet.
func TestChangesAreTold(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, *Server) (told func()){
		"stdio": func(t *testing.T, s *Server) func() {
			c := newStdioClient(t.Context(), t, s)
			return func() { c.expect("notifications/tools/list_changed") }
		},
		"HTTP": func(t *testing.T, s *Server) func() {
			_, changed, _ := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
			return func() { await(t, changed) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, nil)
			told := connect(t, s)
			next := newSession(t, map[string]string{"m": ""})
			t.Cleanup(next.Close)
			if err := s.Load(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			told()
		})
	}
}

// Requests wait for the first offer, so clients are notified only of later changes.
func TestFirstOfferIsNotNotified(t *testing.T) {
	var offered []string
	s := New(Options{Whole: offer.Profile{Select: func(ctx context.Context, from *engine.Session) (*registry.Registry, []engine.Found, error) {
		reg, err := from.Tools.All(ctx)
		return reg, engine.FoundIn(reg, slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return !slices.Contains(offered, t.ServerTool) })), err
	}}})
	session := &mcp.ServerSession{}
	s.lists.follow(t.Context(), session, nil) // it listens before there is an offer
	load := func(tools ...string) {
		t.Helper()
		offered = tools
		from := newSession(t, map[string]string{"m": ""})
		t.Cleanup(from.Close)
		if err := s.Load(t.Context(), from); err != nil {
			t.Fatal(err)
		}
	}
	load("echo")
	if s.lists.isNews("notifications/tools/list_changed", session) {
		t.Error("the first offer is news")
	}
	load("echo", "ask")
	if !s.lists.isNews("notifications/tools/list_changed", session) || s.lists.isNews("notifications/prompts/list_changed", session) {
		t.Error("a changed list is not news, or one that is as before")
	}
}

// When the settings change a profile, its clients are told of the lists that they see others of, also if
// all that is in them is offered to somebody else as before. Others are not told.
func TestChangedProfileIsNotified(t *testing.T) {
	upstream := map[string]string{"a": newOffering(t, "a", "own://a") + ";legacy", "b": newOffering(t, "b", "own://b") + ";legacy", "m": ""}
	from := newSession(t, upstream)
	t.Cleanup(from.Close)
	var changed atomic.Bool
	s := serverFrom(t, from, Options{Profiles: func(*engine.Session) offer.Profiles {
		of := func(name string, less bool) offer.Profile {
			shows := func(t *registry.Tool) bool { return !less || t.ServerTool != "echo" }
			return offer.Profile{Name: name, Tools: shows, Servers: func(server string) bool { return !less || server != "b" },
				Select: func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
					reg, err := s.Tools.All(ctx)
					return reg, engine.FoundIn(reg, slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return !shows(t) })), err
				}}
		}
		return offer.Profiles{of("same", false), of("changes", changed.Load())}
	}})
	url := listen(t, s, nil).URL
	told := map[string]chan string{}
	for _, profile := range []string{"", "/same", "/changes"} {
		for _, revision := range []string{"2025-11-25", wire.FirstModern} {
			heard := make(chan string, 100)
			told[profile+" "+revision] = heard
			client := mcp.NewClient(&mcp.Implementation{Name: "follower", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { heard <- "tools" },
				PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { heard <- "prompts" },
				ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { heard <- "resources" },
			})
			c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp" + profile}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if _, err := c.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitFor(t, func() bool {
		s.lists.mu.Lock()
		defer s.lists.mu.Unlock()
		return len(s.lists.bySession) == 6
	})
	reload := func() {
		next := newSession(t, upstream)
		t.Cleanup(next.Close)
		if err := s.Load(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	reload() // nothing is another one
	changed.Store(true)
	reload()
	for _, revision := range []string{"2025-11-25", wire.FirstModern} {
		heard := []string{await(t, told["/changes "+revision]), await(t, told["/changes "+revision]), await(t, told["/changes "+revision])}
		slices.Sort(heard)
		if want := []string{"prompts", "resources", "tools"}; !slices.Equal(heard, want) {
			t.Errorf("%s: told of %q, want %q", revision, heard, want)
		}
	}
	for who, heard := range told {
		select {
		case what := <-heard:
			t.Errorf("%s is told of %s", who, what)
		default:
		}
	}
}

// A tool that a server adds while a client is connected does not take the name of another
// server's tool, even if the server comes first in the settings.
func TestAddedToolTakesNoName(t *testing.T) {
	s := newServer(t, map[string]string{"a": "--changes", "b": "--names create_issue"})
	c, changed, _ := newFollower(t, listen(t, s, nil).URL, wire.FirstModern)
	call := func(name string, params any) string {
		t.Helper()
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: params})
		if err != nil || r.IsError {
			t.Fatalf("%s: %v, %v", name, textOf(r), err)
		}
		return textOf(r)
	}
	call("grow", map[string]any{"tools": []string{"create_issue"}})
	await(t, changed)
	if text := call("create_issue", map[string]any{"text": "to b"}); text != "to b" {
		t.Errorf("the call reached another server: %q", text)
	}
	if text := call("a__create_issue", nil); text != "hello" {
		t.Errorf("the added tool says %q", text)
	}
}
