//lint:file-ignore SA1019 tests use features that a later revision deprecates, as today's servers do

package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (o *options) serveStdio(stdin io.Reader, stdout io.Writer) (int, error) {
	quit := make(exits, 1)
	server := o.server(quit)
	in := &filter{lines: bufio.NewReaderSize(stdin, 64<<10), options: o, quit: quit}
	transport := &mcp.IOTransport{Reader: io.NopCloser(in), Writer: keepOpen{stdout}, MaxLineLength: -1}
	ended := make(chan error, 1)
	// Run is the main function of a separate process, so no context is passed
	// to it.
	go func() { ended <- server.Run(context.Background(), transport) }()
	select {
	case code := <-quit:
		return code, nil
	case <-ended:
		if o.stubborn {
			select {}
		}
		return 0, nil
	}
}

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// Handler returns the server for flags args as an HTTP handler, for tests that
// need it in their own process.
func Handler(args ...string) (http.Handler, error) {
	o, err := parse(args, io.Discard)
	if err != nil {
		return nil, err
	}
	return o.handler(), nil
}

func (o *options) taskServer() *taskServer {
	return &taskServer{legacy: o.protocol != "" && o.protocol < firstModern, undeclared: o.undeclared, marker: o.marker}
}

func (o *options) handler() http.Handler {
	if o.tasks {
		return o.taskServer()
	}
	server := o.server(make(exits, 1))
	get := func(*http.Request) *mcp.Server { return server }
	if o.sse {
		return mcp.NewSSEHandler(get, nil)
	}
	return mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: o.protocol == "" || o.protocol >= firstModern, JSONResponse: o.jsonResponse,
		PropagateRequestCancellation: true, // how a modern client cancels over HTTP
	})
}

func (o *options) serveHTTP() error {
	l, err := net.Listen("tcp", o.httpAddr)
	if err != nil {
		return err
	}
	if o.addrFile != "" {
		if err := writeWhole(o.addrFile, "http://"+l.Addr().String()+"/mcp"); err != nil {
			return err
		}
	}
	return http.Serve(l, o.handler())
}

// filter drops or handles lines before the SDK sees them.
type filter struct {
	lines   *bufio.Reader
	options *options
	quit    exits
	rest    []byte
}

func (f *filter) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		line, err := f.lines.ReadBytes('\n')
		if f.passes(line) {
			f.rest = line
		}
		if len(f.rest) == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *filter) passes(line []byte) bool {
	var m struct{ Method string }
	if json.Unmarshal(line, &m) != nil || m.Method == "" {
		return true
	}
	if f.options.dieOnProbe && m.Method == "server/discover" {
		f.quit.with(3)
		select {} // nothing more is read
	}
	return !f.options.ignoreUnknown || strings.HasPrefix(m.Method, "notifications/") ||
		slices.Contains([]string{"initialize", "ping", "tools/list", "tools/call",
			"prompts/list", "resources/list", "logging/setLevel"}, m.Method)
}

// server builds the server with its tools and behavior.
func (o *options) server(quit exits) *mcp.Server {
	caps := &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}
	so := &mcp.ServerOptions{Capabilities: caps, PageSize: o.pageSize, Instructions: "A server for tests."}
	if o.changes {
		so.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
		so.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "mcptest", Version: "1.2.3"}, so)
	if !o.noTools {
		o.addTools(s, quit)
	}
	if o.dialogs {
		o.addDialogs(s)
	}
	if o.changes {
		addChanges(s)
	}
	if o.extras {
		addExtras(s)
	}
	if o.offers {
		o.addOffers(s)
	}
	s.AddReceivingMiddleware(o.manners)
	return s
}

// manners is the middleware for behavior that the SDK does not allow.
func (o *options) manners(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		modern := o.protocol >= firstModern
		switch {
		case o.protocol != "" && (modern && method == "initialize" || !modern && method == "server/discover"):
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method}
		case o.noTools && method == "tools/list":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no tools here"}
		}
		switch p := r.GetParams().(type) {
		case *mcp.ListToolsParams:
			if o.listing != "" {
				return replay(o.listing)
			}
			if p != nil && o.loopCursor {
				p.Cursor = ""
			}
		case *mcp.CallToolParamsRaw:
			if o.listing != "" {
				return say(p.Name + " " + string(p.Arguments)), nil
			}
		case *mcp.ListPromptsParams:
			if p != nil && o.loopCursor {
				p.Cursor = ""
			}
		}
		result, err := next(ctx, method, r)
		if err != nil {
			return result, err
		}
		switch result := result.(type) {
		case *mcp.InitializeResult:
			if o.protocol != "" {
				result.ProtocolVersion = o.protocol
			}
		case *mcp.ListPromptsResult:
			if o.loopCursor {
				result.NextCursor = "again"
			}
		case *mcp.ListToolsResult:
			if o.loopCursor {
				result.NextCursor = "again"
			}
			if o.badTools {
				return spoil(result)
			}
		}
		return result, nil
	}
}

// rawResult is a result that is sent unchanged.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// replay returns a listing recorded from another server, byte for byte.
func replay(file string) (mcp.Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var listing struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &listing); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	raw, err := json.Marshal(listing)
	return &rawResult{raw: raw}, err
}

// spoil adds invalid tools to a listing.
func spoil(l *mcp.ListToolsResult) (mcp.Result, error) {
	bad := []any{
		json.RawMessage(`{"name":"ill_typed","description":5,"inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"description":"nameless","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":7,"inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"no_object","inputSchema":"foo"}`),
		json.RawMessage(`null`),
		json.RawMessage(`{"name":"spéciàl näme","description":"a name to be cleaned","inputSchema":null}`),
		json.RawMessage(`{"name":"big_number","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567891,"x-unknown":[1e400]}}}}`),
	}
	for _, t := range l.Tools {
		bad = append(bad, t, t) // each twice
	}
	raw, err := json.Marshal(map[string]any{"tools": bad, "nextCursor": l.NextCursor})
	return &rawResult{raw: raw}, err
}
