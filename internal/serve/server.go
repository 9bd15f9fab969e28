//lint:file-ignore SA1019 what a later revision deprecates, clients of today still do: logging

package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
)

// instructions describe this server to a client's model.
const instructions = "Tools from several sources behind one policy. Some calls ask the user first; a refused call says which rule refused it."

// Options configure a [Server]. Session and Select are required.
type Options struct {
	// Session has the tools and makes the calls. Its Asker is [Asker].
	Session *session.Session
	// Select returns the tools of the registry to offer, in its order.
	Select func(context.Context, *registry.Registry) ([]*registry.Tool, error)
	// Servers reports whether to offer the prompts and resources of a server.
	// nil: those of all servers.
	Servers func(name string) bool
	// Version is the version of toolreg, for clients.
	Version string
	// Idle is how long a server may be without calls before its session is
	// closed; 0 means forever.
	Idle time.Duration
	// MaxCalls is the maximum number of running calls per client; 0 means no
	// limit.
	MaxCalls int
	// Log receives log messages of the protocol implementation. nil: silent.
	Log *slog.Logger
	// Warn reports problems that do not stop the server. It may be nil.
	Warn func(registry.Diagnostic)
}

// Server offers the tools of a session to MCP clients. It is safe for concurrent
// use.
type Server struct {
	opts  Options
	ready chan struct{}   // closed when offer is set
	life  context.Context // set before ready is closed
	key   []byte          // marks session ids

	mu      sync.Mutex
	offer   *offer
	failed  error                  // why there is no offer
	servers map[string]*mcp.Server // by the name of the client
	calls   map[any]int            // number of running calls, by client
	waiting map[string]*waitingCall
}

// offer is what is offered to clients.
type offer struct {
	registry *registry.Registry
	tools    map[string]*registry.Tool  // by declared name
	raw      map[string]json.RawMessage // declarations, by declared name
	declared []*mcp.Tool
	offers
}

// New returns a server that offers nothing until [Server.Load] has finished.
func New(opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Warn == nil {
		opts.Warn = func(registry.Diagnostic) {}
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &Server{opts: opts, key: key, ready: make(chan struct{}), servers: map[string]*mcp.Server{},
		calls: map[any]int{}, waiting: map[string]*waitingCall{}}
}

// Load runs the sources and offers their tools. Requests that need them wait
// for it. Call it once. The error is about rules that cannot be read, or the
// cause of ctx.
func (s *Server) Load(ctx context.Context) error {
	o, err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life, s.offer, s.failed = ctx, o, err
	if o != nil {
		for _, server := range s.servers {
			s.addTools(server, o)
		}
	}
	close(s.ready)
	if s.opts.Idle > 0 && err == nil {
		go s.closeIdle(ctx)
	}
	return err
}

// closeIdle closes servers without calls, until ctx is done.
func (s *Server) closeIdle(ctx context.Context) {
	tick := time.NewTicker(min(max(s.opts.Idle/10, 10*time.Millisecond), time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		on, _, err := s.opts.Session.Servers()
		if err != nil {
			return
		}
		for _, server := range on {
			server.CloseIdle(s.opts.Idle)
		}
	}
}

func (s *Server) load(ctx context.Context) (*offer, error) {
	reg, err := s.opts.Session.All(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := s.opts.Select(ctx, reg)
	if err != nil {
		return nil, err
	}
	for _, d := range s.opts.Session.Diagnostics(reg) {
		s.opts.Warn(d)
	}
	o, err := s.newOffer(reg, tools)
	if err == nil {
		o.offers = s.loadOffers(ctx)
	}
	return o, err
}

// newOffer declares tools in the format mcp, with the names that they have in
// the whole registry.
func (s *Server) newOffer(reg *registry.Registry, tools []*registry.Tool) (*offer, error) {
	format, err := declare.Lookup("mcp")
	if err != nil {
		return nil, err
	}
	byName := map[string]*registry.Tool{}
	defs := make([]registry.Definition, len(tools))
	for i, t := range tools {
		defs[i] = session.Definition(reg, t)
		byName[defs[i].Name] = t
	}
	out, diags := format.Encode(defs, declare.Options{Registered: session.Names(reg)})
	for _, d := range diags {
		if d.Severity != registry.SeverityInfo {
			s.opts.Warn(d)
		}
	}
	o := &offer{registry: reg, tools: map[string]*registry.Tool{}, raw: map[string]json.RawMessage{}}
	for _, d := range out.Declarations {
		o.tools[d.Name], o.raw[d.Name] = byName[d.Tool], d.Data
		o.declared = append(o.declared, &mcp.Tool{Name: d.Name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return o, nil
}

// addTools registers tools with the SDK, which keeps their order and cursors
// and notifies clients of changes. In listings the SDK's tools are replaced by
// the declarations (see listTools).
func (s *Server) addTools(server *mcp.Server, o *offer) {
	for _, t := range o.declared {
		server.AddTool(t, s.callTool)
	}
	s.addOffers(server, &o.offers)
}

// For returns the SDK's server for clients with a name.
func (s *Server) For(name string) *mcp.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if server := s.servers[name]; server != nil {
		return server
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "toolreg", Version: s.opts.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       s.opts.Log,
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}, Logging: &mcp.LoggingCapabilities{}, Completions: &mcp.CompletionCapabilities{},
		},
		CompletionHandler:  s.complete,
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: s.unsubscribe,
		GetSessionID:       func() string { return s.newSessionID(name) },
	})
	server.AddReceivingMiddleware(s.receive(name))
	if s.offer != nil {
		s.addTools(server, s.offer)
	}
	s.servers[name] = server
	return server
}

// receive handles requests of clients with a name before the SDK does.
func (s *Server) receive(name string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			from, ok := req.(sender)
			session, _ := req.GetSession().(*mcp.ServerSession)
			if !ok || session == nil || !needsOffer(method) {
				return next(ctx, method, req)
			}
			o, err := s.offered(ctx)
			if err != nil {
				return nil, err
			}
			if err := o.resolve(req); err != nil {
				return nil, err
			}
			result, err := next(withClient(ctx, name, session, from), method, req)
			return o.declarations(result), err
		}
	}
}

// needsOffer reports whether a request is about what is offered.
func needsOffer(method string) bool {
	switch strings.SplitN(method, "/", 2)[0] {
	case "tools", "prompts", "resources", "completion":
		return true
	}
	return false
}

// offered waits until the offer is complete.
func (s *Server) offered(ctx context.Context) (*offer, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offer == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the tools could not be loaded: " + s.failed.Error()}
	}
	return s.offer, nil
}

// resolve replaces the name in a request by the offered name: server__tool and
// aliases work as in `toolreg call`. An unknown tool is a protocol error.
func (o *offer) resolve(req mcp.Request) error {
	switch req := req.(type) {
	case *mcp.CallToolRequest:
		return o.resolveTool(req.Params)
	case *mcp.GetPromptRequest:
		if p, ok := o.prompts[req.Params.Name]; ok {
			req.Params.Name = p.declared
		}
	case *mcp.CompleteRequest:
		if ref := req.Params.Ref; ref != nil {
			if p, ok := o.prompts[ref.Name]; ok {
				ref.Name = p.declared
			}
		}
	}
	return nil
}

func (o *offer) resolveTool(params *mcp.CallToolParamsRaw) error {
	name := params.Name
	if _, ok := o.tools[name]; ok {
		return nil
	}
	if t, err := o.registry.Lookup(name); err == nil {
		for declared, offered := range o.tools {
			if offered == t {
				params.Name = declared
				return nil
			}
		}
	}
	names := make([]string, 0, len(o.tools))
	for _, t := range o.declared {
		names = append(names, t.Name)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknownTool(name, registry.Near(name, names), len(names))}
}

// admit counts a call of a client, unless the client has too many running
// calls.
func (s *Server) admit(c any) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.MaxCalls > 0 && s.calls[c] >= s.opts.MaxCalls {
		return nil, errTooMany
	}
	s.calls[c]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls[c]--; s.calls[c] == 0 {
			delete(s.calls, c)
		}
	}, nil
}

var errTooMany = errors.New("too many calls are running for this client (serve.maxCalls); wait for one of them to end")
