//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/replica"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/tracing"
)

// Options configure a [Server]. Whole is required.
type Options struct {
	// Whole is what clients without a profile are offered. It has neither a name nor groups.
	Whole offer.Profile
	// Profiles returns the profiles of a session. A nil Profiles means that there are none.
	Profiles func(*engine.Session) offer.Profiles
	// Initial are the profiles before the first [Server.Load].
	Initial offer.Profiles
	// Profile is the name of the profile of the client on stdin. Without one it is offered Whole.
	Profile string
	// Version is the version of toolreg that clients see.
	Version string
	// Limits may be changed later, see [Server.SetLimits].
	Limits Limits
	// Asking limits what clients may be asked. The zero value sets no limit.
	Asking question.Asking
	// Console says that people at the console answer for clients that cannot ask.
	Console bool
	// Questions are options for questions to modern clients.
	Questions question.Options
	// Log receives refusals at level warn. A nil Log discards them.
	Log *slog.Logger
	// Messages receives what the implementation of the protocol logs. A nil Messages discards it.
	Messages *slog.Logger
	// Warn reports problems that do not stop the server. It may be nil.
	Warn func(registry.Diagnostic)
}

// Limits are limits for clients and servers. Zero means no limit.
type Limits struct {
	Idle       time.Duration // how long a server may be without a call before its session is closed
	Session    time.Duration // how long a session over HTTP may be unused
	KeepAlive  time.Duration // how often a stream without events gets a comment
	MaxClients int           // sessions over HTTP
	MaxCalls   int           // calls that run with one token
}

// Server offers the tools of a session to MCP clients. It is safe for concurrent
// use.
type Server struct {
	opts Options
	max  atomic.Pointer[Limits]
	reap sync.Once // begins with the first Load

	offers        *current.Offers
	lists         lists
	subscriptions subscriptions
	updates       updates
	reads         reads
	calls         calls
	logins        logins

	closing  sync.WaitGroup // sessions and subscriptions that end
	sessions transport.Sessions
	replica  *replica.Replica // nil without a store

	stopping chan struct{} // closed by stop
	stopOnce sync.Once

	asked   transport.Calls // the questions to people about calls, and of servers
	tasks   *task.Tasks
	clients question.Clients
	states  *question.Calls
	ids     transport.SessionIDs
	sdk     *mcp.Server
}

// New returns a server that offers nothing until [Server.Load] has returned.
func New(opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Profiles == nil {
		opts.Profiles = func(*engine.Session) offer.Profiles { return nil }
	}
	if opts.Warn == nil {
		opts.Warn = func(registry.Diagnostic) {}
	}
	s := &Server{opts: opts, stopping: make(chan struct{})}
	s.SetLimits(opts.Limits)
	s.sessions.Close = func(session transport.Session) {
		s.closing.Go(func() { _ = session.Close() }) // waits for calls, which were canceled
	}
	s.clients = question.Clients{Asking: opts.Asking, Console: opts.Console, Open: &s.asked, Stopping: s.stopping}
	s.subscriptions = subscriptions{
		warn: opts.Warn, byURI: map[subscribed]map[*mcp.ServerSession]*caller.Caller{},
	}
	s.offers = current.New(current.Options{
		Whole: opts.Whole, Profiles: opts.Profiles, Initial: opts.Initial,
		Idle:  func() time.Duration { return s.limits().Idle },
		LogIn: s.logins.call, Subscriptions: &s.subscriptions, Updated: s.updates.changed, Changed: s.announce,
		Log: opts.Log, Warn: opts.Warn,
	})
	s.lists = lists{offers: s.offers, bySession: map[*mcp.ServerSession]*listener{}}
	s.logins.offers = s.offers
	holder, tasks := "", task.Options{}
	if opts.Questions.Store != nil {
		s.replica = replica.New(opts.Questions.Store)
		s.logins.store, s.logins.replica = opts.Questions.Store, s.replica.ID
		tasks = task.Options{Holder: s.replica.ID, Store: opts.Questions.Store, Elsewhere: s.replica.AskAboutTask}
		holder = s.replica.ID
	}
	s.states, s.tasks = question.NewCalls(opts.Questions, holder), task.New(tasks)
	s.calls = calls{
		offers: s.offers, states: s.states, tasks: s.tasks, sessions: &s.sessions, logins: &s.logins,
		most: func() int { return s.limits().MaxCalls }, log: opts.Log,
	}
	s.reads = reads{offers: s.offers, states: s.states, log: opts.Log}
	s.updates = updates{
		subscriptions: &s.subscriptions, offers: s.offers, ending: &s.closing, stopping: s.stopping, log: opts.Log,
		send: func(ctx context.Context, uri string) {
			_ = s.sdk.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
		},
	}
	s.sdk = s.newSDKServer()
	for _, kind := range listKinds() {
		s.register(kind)
	}
	return s
}

// Load offers the tools of a session, see [current.Offers.Load]. What is unused is closed until the ctx of the
// first Load is done.
func (s *Server) Load(ctx context.Context, from *engine.Session) error {
	defer s.reap.Do(func() { go s.reapUnused(ctx) })
	return s.offers.Load(ctx, from)
}

// Current calls f with the session and the registry whose tools are offered. They stay valid
// until f returns.
func (s *Server) Current(f func(*engine.Session, *registry.Registry) error) error {
	return s.offers.Current(f)
}

// Restart is [current.Offers.Restart].
func (s *Server) Restart(ctx context.Context, name string) error { return s.offers.Restart(ctx, name) }

// Profiles returns the profiles that clients can use now.
func (s *Server) Profiles() offer.Profiles { return s.offers.Profiles() }

// SetLimits replaces the limits. What is running goes on.
func (s *Server) SetLimits(l Limits) { s.max.Store(&l) }

// limits returns the limits in effect.
func (s *Server) limits() *Limits { return s.max.Load() }

// ChangeStateKey replaces the Key of [question.Options]. Questions that were asked before can
// still be answered.
func (s *Server) ChangeStateKey(secret string) { s.states.ChangeKey(secret) }

// reapUnused closes sessions and servers that have not been used for a while, until ctx is
// done.
func (s *Server) reapUnused(ctx context.Context) {
	tick := time.Tick(closeEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		s.sessions.EndUnused(s.limits().Session)
		s.updates.end(ctx, s.gone)
		s.lists.forget(s.gone)
		s.closeIdle()
	}
}

// closeEvery is how often reapUnused looks for unused sessions and servers.
const closeEvery = 200 * time.Millisecond

func (s *Server) closeIdle() {
	s.offers.CloseUnused(func(owner any) bool {
		session, ok := owner.(*mcp.ServerSession)
		return ok && s.gone(session)
	})
}

// gone reports whether a session over HTTP has ended.
func (s *Server) gone(session *mcp.ServerSession) bool {
	return session.ID() != "" && !s.sessions.Has(session)
}

// isBound reports whether a client is offered only what a profile has, whatever address it uses.
func (s *Server) isBound(from auth.Identity) bool {
	profile, _ := s.Profiles().For(from.Profile, from.Groups, "")
	return profile != ""
}

// newSDKServer makes the SDK's server for all clients. Lists are answered before it, with what each
// is offered, and tools, prompts and resources are looked up there: the SDK knows one of each.
func (s *Server) newSDKServer() *mcp.Server {
	extensions := wire.Extensions()
	extensions[wire.AppsExtension] = struct{}{}
	server := mcp.NewServer(&mcp.Implementation{Name: "toolreg", Version: s.opts.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       s.opts.Messages,
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Logging:   &mcp.LoggingCapabilities{}, Completions: &mcp.CompletionCapabilities{},
			Extensions: extensions,
		},
		GetSessionID:       s.ids.Next,
		CompletionHandler:  s.reads.complete,
		SubscribeHandler:   s.updates.subscribe,
		UnsubscribeHandler: s.updates.unsubscribe,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.CacheScope = offer.CacheScope
		},
	})
	s.tasks.AddTo(server)
	server.AddReceivingMiddleware(s.receive)
	if s.replica != nil {
		server.AddReceivingMiddleware(s.replica.Remember(s.identify))
	}
	server.AddReceivingMiddleware(s.guard, spans)
	server.AddSendingMiddleware(s.dropOldNews, s.updates.dropDenied, question.ReadOnce)
	return server
}

// guard is the outermost middleware for requests of clients. A request whose handling panics ends
// no other one. The SDK leaves params nil that are missing, and methods of those that are not its
// own panic then.
func (s *Server) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.opts.Log.Error("a request failed by a mistake in toolreg",
					"method", method, "panic", p, "stack", string(debug.Stack()))
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		if r, ok := req.(*mcp.ServerRequest[*task.Params]); ok && r.Params == nil {
			r.Params = &task.Params{}
		}
		return next(ctx, method, req)
	}
}

// receive is the middleware for requests of clients: it adds the client to the context and
// resolves names.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if in := transport.InboundOf(req); in != nil {
			in.Stream.Begin() // the SDK has set its headers by now; it stays alive until its first event
		}
		who := s.identify(ctx, req)
		from, ok := req.(question.Sender)
		session, _ := req.GetSession().(*mcp.ServerSession)
		switch {
		case !ok || session == nil:
			return next(ctx, method, req)
		case method == listenMethod:
			return s.lists.listen(s.clients.With(ctx, who, session, from), next, req, session, s.stopping)
		case method == "initialize":
			settleRevision(req)
			result, err := next(ctx, method, req)
			if err == nil && session.ID() != "" {
				s.sessions.Add(who, session)
			}
			if r, ok := result.(*mcp.InitializeResult); ok && err == nil {
				ctx = s.clients.With(ctx, who, session, from)
				s.withInstructions(ctx, r)
				if isLasting(session, req) {
					s.lists.follow(ctx, session, s.offers.For(caller.Token(ctx)))
				}
				return task.Declare(r, who), nil
			}
			return result, err
		case method == "server/discover":
			result, err := next(ctx, method, req)
			if err == nil {
				s.withInstructions(s.clients.With(ctx, who, session, from), result)
			}
			return result, err
		case strings.HasPrefix(method, "tasks/"):
			ctx, done := s.sessions.Call(ctx, session.ID(), transport.InboundOf(req), s.stopping)
			defer done()
			return next(s.clients.With(ctx, who, session, from), method, req)
		case !slices.Contains([]string{"tools", "prompts", "resources", "completion"},
			strings.SplitN(method, "/", 2)[0]):
			return next(ctx, method, req) // what it asks for is not offered
		}
		ctx, done := s.sessions.Call(ctx, session.ID(), transport.InboundOf(req), s.stopping)
		defer done()
		ctx = s.clients.With(ctx, who, session, from)
		defer question.From(ctx).Flush()
		v, err := s.offers.Offered(ctx)
		if err != nil {
			return nil, err
		}
		if v, err = s.offers.WithLogins(ctx, v); err != nil {
			return nil, err
		}
		s.offers.RetryFailed(v.Offer)
		if call, ok := req.(*mcp.CallToolRequest); ok {
			v, err = s.offers.Resolve(ctx, v, call.Params)
			switch {
			case errors.Is(err, registry.ErrSourceFailed), errors.Is(err, registry.ErrNeedsLogin):
				return errorResult(explain(err)), nil
			case err != nil:
				s.opts.Log.Warn("call refused", "tool", call.Params.Name, "caller", who.Name, "reason", err.Error())
				return nil, err
			case v.Tool(call.Params.Name) != nil: // another name is the client's alone
				tracing.Current(ctx).Target("gen_ai.tool.name", call.Params.Name)
			}
		}
		if isLasting(session, req) {
			s.lists.follow(ctx, session, v.Offer)
		}
		if strings.HasSuffix(method, "/list") {
			return v.List(ctx, req)
		}
		if ctx, err = s.reads.ask(ctx, v, method, req); err != nil {
			return nil, err
		}
		return task.Answer(next(ctx, method, req))
	}
}

// isLasting reports whether a session is more than one request: the one on stdio, and those over HTTP that
// have an id. Modern clients over HTTP listen by a request of its own.
func isLasting(session *mcp.ServerSession, req mcp.Request) bool {
	return session.ID() != "" || transport.InboundOf(req) == nil
}

const (
	// instructions tell a client's model what this server is. Those of the servers follow.
	instructions = "Tools from several sources under one policy. Some calls ask the user first; " +
		"the error of a refused call names the rule that refused it."
	// instructionsTime is how long the answer to the first request of a client waits for the
	// servers.
	instructionsTime = 5 * time.Second
)

// withInstructions adds the instructions of the servers that the caller is offered to the result of
// initialize or server/discover.
func (s *Server) withInstructions(ctx context.Context, result mcp.Result) {
	waiting, cancel := context.WithTimeout(ctx, instructionsTime)
	defer cancel()
	v, err := s.offers.Offered(waiting)
	if err != nil { // a later request says why
		return
	}
	more := v.Instructions(ctx)
	switch r := result.(type) {
	case *mcp.InitializeResult:
		r.Instructions += more
	case *mcp.DiscoverResult:
		r.Instructions += more
	}
}

// dropOldNews is the middleware that drops the SDK's change notifications about lists that only others are
// offered.
func (s *Server) dropOldNews(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasSuffix(method, listChanged) {
			session, _ := req.GetSession().(*mcp.ServerSession)
			if !s.lists.isNews(method, session) {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}

// announce lets the SDK tell clients of lists that have changed for them.
func (s *Server) announce(ctx context.Context, first bool) {
	for _, kind := range s.lists.changed(ctx, first) {
		s.register(kind)
	}
}

// register gives the SDK the tool, the prompt or the resource that stands for all. If the SDK has it already,
// it tells clients that such a list has changed.
func (s *Server) register(kind string) {
	switch kind {
	case "tools":
		s.sdk.AddTool(&mcp.Tool{Name: anyTool, InputSchema: json.RawMessage(`{"type":"object"}`)}, s.calls.call)
	case "prompts":
		s.sdk.AddPrompt(&mcp.Prompt{Name: anyPrompt}, s.reads.getPrompt)
	case "resources":
		s.sdk.AddResource(&mcp.Resource{Name: "any", URI: anyResource}, s.reads.readResource)
	}
}

// identify returns who sends a message: the sender of its request over HTTP or, if that has
// been answered, of the request that began the session, or the client on stdin.
func (s *Server) identify(ctx context.Context, req mcp.Request) auth.Identity {
	if in := transport.InboundOf(req); in != nil {
		return in.From
	}
	if from, ok := auth.From(ctx); ok {
		return from
	}
	return auth.Identity{Name: caller.Stdio, Profile: s.opts.Profile}
}

// Stdio serves the client on a pair of streams until in ends or ctx is done. Calls that
// are running then may take drain to finish, and are answered. If ctx is done after the
// end of in, they are canceled immediately, because their client is gone.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer, drain time.Duration) error {
	// With ctx itself, the SDK would answer no call that ends after it is done.
	err := s.sdk.Run(context.WithoutCancel(ctx), &transport.Stdio{
		In: in, Out: out, Drain: drain, Ended: s.stop, Stop: ctx.Done(),
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Stopping returns a channel that is closed when streams are to end.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

// stop ends requests that only wait for notifications. Calls continue.
func (s *Server) stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// Wait ends the calls that wait for answers, because no more can arrive, and waits until the replaced
// sessions are closed.
func (s *Server) Wait() {
	s.states.EndAll()
	s.tasks.EndOf(func(auth.Identity) bool { return true }, transport.ErrStopped)()
	s.closing.Wait()
	s.offers.Wait()
}

// settleRevision replaces the revision with which a client begins a session by the one that the SDK
// agrees to, because the SDK tells with each request of the session what the client began with.
func settleRevision(req mcp.Request) {
	if p, ok := req.GetParams().(*mcp.InitializeParams); ok && p != nil {
		switch p.ProtocolVersion {
		case "2024-11-05", "2025-03-26", "2025-06-18":
		default:
			p.ProtocolVersion = wire.LastLegacy
		}
	}
}
