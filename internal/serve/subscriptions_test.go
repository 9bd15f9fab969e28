package serve

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// newListener connects a client of the newest revision that waits for changes.
func newListener(t *testing.T, transport mcp.Transport) (_ *mcp.ClientSession, changed <-chan struct{}) {
	t.Helper()
	news := make(chan struct{}, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "listener", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { news <- struct{}{} }})
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := session.InitializeResult().ProtocolVersion; v != wire.FirstModern {
		t.Fatalf("revision %s", v)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, news
}

// A client that waits for notifications does not delay the server's shutdown.
func TestListenersDoNotDelayShutdown(t *testing.T) {
	s := newServer(t, map[string]string{"m": ""})
	t.Run("stdio", func(t *testing.T) {
		in, requests := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.Stdio(t.Context(), in, out, time.Hour) }()
		newListener(t, &mcp.IOTransport{Reader: answers, Writer: requests})
		_ = requests.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		s := newServer(t, map[string]string{"m": ""})
		handler := s.HTTP(HTTPOptions{Loopback: true})
		h := serveHandler(t, handler)
		newListener(t, &mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp"})
		waitFor(t, func() bool { return handler.endpoint.calls.Load() == 1 })
		if left := handler.Drain(t.Context()); left != 0 {
			t.Errorf("%d requests are left", left)
		}
	})
}

// upstream is a server with a resource that changes, over HTTP. It counts the
// subscriptions to it.
type upstream struct {
	*mcp.Server
	url     string
	uri     string      // of the resource
	added   chan string // URIs that were subscribed to
	removed chan string
}

const pageURI = "test://page"

// endSessions ends, when the test is over, the sessions whose client has not waited until they were ended.
func endSessions(t testing.TB, server *mcp.Server) {
	t.Cleanup(func() {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
}

func newUpstream(t *testing.T, uris ...string) *upstream {
	t.Helper()
	u := &upstream{uri: pageURI, added: make(chan string, 100), removed: make(chan string, 100)}
	u.Server = mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(_ context.Context, r *mcp.SubscribeRequest) error { u.added <- r.Params.URI; return nil },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { u.removed <- r.Params.URI; return nil },
	})
	for _, uri := range uris {
		u.AddResource(&mcp.Resource{URI: uri, Name: "page"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	}
	endSessions(t, u.Server)
	legacy := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.Server }, nil)
	modern := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.Server }, &mcp.StreamableHTTPOptions{Stateless: true})
	u.url = serveUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= wire.FirstModern {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	}))
	return u
}

// hold adds the tool hold. begun tells of each call of it that the server has, which goes on until end is called.
func (u *upstream) hold(t *testing.T) (begun <-chan struct{}, end func()) {
	calls, over := make(chan struct{}, 10), make(chan struct{})
	end = sync.OnceFunc(func() { close(over) })
	t.Cleanup(end) // the SDK's server waits for its calls
	u.AddTool(&mcp.Tool{Name: "hold", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls <- struct{}{}
			select {
			case <-over:
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "held"}}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	return calls, end
}

// touch reports that the resource has changed until its client is notified.
func (u *upstream) touch(t *testing.T, updated <-chan string) {
	t.Helper()
	waitFor(t, func() bool { // the stream of the answer may take a moment to open
		_ = u.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: u.uri})
		select {
		case <-updated:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
}

// Subscriptions survive a change of the settings, even if a server is down for a while,
// and end at the server with the last client.
func TestSubscriptionsOutliveSettings(t *testing.T) {
	for _, protocol := range []string{"legacy", "modern"} {
		for _, revision := range []string{"2025-11-25", wire.FirstModern} {
			t.Run(protocol+" server, client of "+revision, func(t *testing.T) {
				first, second, without := newUpstream(t, pageURI), newUpstream(t, pageURI), newUpstream(t)
				s := newServer(t, map[string]string{"m": first.url + ";" + protocol})
				load := func(u *upstream) {
					t.Helper()
					from := newSession(t, map[string]string{"m": u.url + ";" + protocol})
					t.Cleanup(from.Close)
					if err := s.Load(t.Context(), from); err != nil {
						t.Fatal(err)
					}
				}
				url := listen(t, s, nil).URL
				c, _, updated := newFollower(t, url, revision)
				if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: pageURI}); err != nil {
					t.Fatal(err)
				}
				first.touch(t, updated)
				load(second)
				second.touch(t, updated)
				load(without)
				load(first)
				first.touch(t, updated)
				await(t, first.added)
				await(t, first.added)
				if len(first.added) > 0 {
					t.Error("the server was asked twice by one process")
				}
				_ = c.Close()
				waitFor(t, func() bool {
					s.subscriptions.end(t.Context(), s.gone)
					return len(s.subscriptions.all()) == 0
				})
			})
		}
	}
}

// A client can subscribe to the page of a tool, which its server need not list.
func TestSubscriptionsToPagesOfTools(t *testing.T) {
	u := newUpstream(t, pageURI)
	u.uri = "ui://m/page"
	u.AddTool(&mcp.Tool{
		Name: "show", InputSchema: map[string]any{"type": "object"},
		Meta: mcp.Meta{"ui": map[string]any{"resourceUri": u.uri}},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	s := newServer(t, map[string]string{"m": u.url + ";legacy"})
	c, _, updated := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: u.uri}); err != nil {
		t.Fatal(err)
	}
	u.touch(t, updated)
	if err := c.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: u.uri}); err != nil {
		t.Fatal(err)
	}
	if uri := await(t, u.removed); uri != u.uri {
		t.Errorf("the server is asked to end the subscription to %q", uri)
	}
}

// The subscriptions of a client that disconnects without unsubscribing end.
func TestSubscriptionsEndWithTheirClient(t *testing.T) {
	u := newUpstream(t, pageURI)
	s := newServer(t, map[string]string{"m": u.url + ";legacy"})
	url := listen(t, s, nil).URL
	c, _, _ := newFollower(t, url, "2025-11-25")
	other, _, updated := newFollower(t, url, "2025-11-25")
	for _, c := range []*mcp.ClientSession{c, other} {
		if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: pageURI}); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	s.subscriptions.end(t.Context(), s.gone)
	u.touch(t, updated)
	if len(u.removed) > 0 {
		t.Error("the subscription of the other client was ended too")
	}
	_ = other.Close()
	if uri := await(t, u.removed); uri != pageURI {
		t.Errorf("%q", uri)
	}
}

// A restarted server is subscribed to again, and a server with a subscriber is not idle.
func TestSubscriptionsOutliveProcesses(t *testing.T) {
	const notes = "test://docs/notes.txt"
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			s := newServer(t, map[string]string{"m": "--changes --offers;" + protocol})
			s.SetLimits(Limits{Idle: time.Nanosecond})
			c, _, updated := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
			if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: notes}); err != nil {
				t.Fatal(err)
			}
			touched := func() {
				t.Helper()
				waitFor(t, func() bool {
					_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "touch", Arguments: map[string]any{"uri": notes}})
					select {
					case <-updated:
						return true
					case <-time.After(100 * time.Millisecond):
						return false
					}
				})
			}
			touched()
			s.closeIdle()
			touched()
			_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "crash"})
			touched()
			_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "crash"})
			waitFor(t, func() bool { // any request, of any client, starts it again
				_, err := c.ListTools(t.Context(), nil)
				servers, _, _ := s.offers.Common().Servers.Named()
				return err == nil && !servers[0].Lost()
			})
		})
	}
}
