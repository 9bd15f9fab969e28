package serve

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
	if v := session.InitializeResult().ProtocolVersion; v != firstModern {
		t.Fatalf("revision %s", v)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, news
}

// A client that waits for notifications does not keep the server from stopping.
func TestListenersDoNotDelayTheEnd(t *testing.T) {
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
		waitFor(t, func() bool { return handler.calls.Load() == 1 })
		if left := handler.Drain(t.Context()); left != 0 {
			t.Errorf("%d requests are left", left)
		}
	})
}
