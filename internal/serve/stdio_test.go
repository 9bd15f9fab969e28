package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// stdioClient is a client without the SDK that writes and reads lines.
type stdioClient struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	ended chan error
}

// newStdioClient serves and returns a client with an initialized session, until ctx is
// done.
func newStdioClient(ctx context.Context, t *testing.T, s *Server) *stdioClient {
	t.Helper()
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	c := &stdioClient{t, requests, bufio.NewReader(answers), make(chan error, 1)}
	go func() {
		c.ended <- s.Stdio(ctx, in, out, time.Hour)
		_ = out.Close()
	}()
	t.Cleanup(func() { _ = requests.Close() })
	c.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":[]},"clientInfo":{"name":"c","version":"1"}}}`)
	c.expect(`"id":"init","result"`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *stdioClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads a line and checks that it contains a text.
func (c *stdioClient) expect(want string) {
	c.t.Helper()
	if line, err := c.out.ReadString('\n'); err != nil || !strings.Contains(line, want) {
		c.t.Fatalf("got %q, %v; want %s", line, err, want)
	}
}

// JSON that is not a valid message is answered with its own id, and no request is
// answered with another id.
func TestStdioIDs(t *testing.T) {
	c := newStdioClient(t.Context(), t, newServer(t, nil))
	for _, id := range []string{`1`, `-7`, `"x"`, `""`, `9007199254740991`} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id))
		c.expect(`"id":` + id + `,"result"`)
	}
	for _, id := range []string{`1.5`, `9007199254740993`, `99999999999999999999`, `1e3`} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id))
		c.expect(`"id":` + id + `,"error":{"code":-32600,`)
	}
	c.send(`{"id":5,"method":"ping"}`)
	c.expect(`"id":5,"error":{"code":-32600,`)
	c.send(`{"jsonrpc":"2.0","id":{},"method":"ping"}`)
	c.expect(`"id":null,"error":{"code":-32600,`)
	for _, twice := range []string{`"method":"ping","method":"tools/call"`, `"method":"ping","params":{"name":"m","name":"n"}`,
		`"method":"ping","params":{"_meta":{"progressToken":1,"progressToken":2}}`, `"method":"ping","\u0069d":8`} {
		c.send(`{"jsonrpc":"2.0","id":7,` + twice + `}`)
		c.expect(`,"error":{"code":-32600,"message":"not a JSON-RPC 2.0 message: it has the member `)
	}
	for _, rest := range []string{`{"jsonrpc":"2.0","id":9,"method":"ping"}`, ` x`, `]`} {
		c.send(`{"jsonrpc":"2.0","id":8,"method":"ping"}` + rest)
		c.expect(`"id":null,"error":{"code":-32700,"message":"not a JSON-RPC 2.0 message: text after the JSON value`)
	}
	c.send(`{"jsonrpc"`)
	c.expect(`"id":null,"error":{"code":-32700,`)
}

// A server that is stopped still answers the calls that are running.
func TestStdioStopsAfterAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	u := newUpstream(t)
	begun, end := u.hold(t)
	s := newServer(t, map[string]string{"m": u.url})
	c := newStdioClient(ctx, t, s)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold"}}`)
	<-begun
	stop()
	<-s.stopping
	end()
	c.expect(`"id":1,"result"`)
	if err := <-c.ended; err != context.Canceled {
		t.Error(err)
	}
}

// A server whose client has closed stdin stops immediately, because no client waits for
// answers.
func TestStdioStopsAfterInput(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := newServer(t, map[string]string{"m": ""})
	c := newStdioClient(ctx, t, s)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":3600}}}`)
	waitFor(t, func() bool { return s.running() == 1 })
	_ = c.in.Close()
	<-s.stopping
	stop()
	if err := <-c.ended; err != context.Canceled {
		t.Error(err)
	}
}

// Clients in PHP send an empty list for an empty object, as newStdioClient does.
func TestEmptyListsForObjects(t *testing.T) {
	c := newStdioClient(t.Context(), t, newServer(t, map[string]string{"m": ""}))
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[]}`)
	c.expect(`"id":2,"result"`)
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"image","arguments":[]}}`)
	c.expect(`"id":3,"result"`)
	c.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"image","arguments":[1]}}`)
	c.expect(`params must be a JSON object, not an array`)
}
