//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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
	"github.com/toolreg/toolreg/internal/timing"
)

// Options configure a [Server]. Whole is required.
type Options struct {
	// Whole is what clients without a profile are offered. Its name and groups are empty.
	Whole offer.Profile
	// Profiles returns the profiles of a session. It may be nil.
	Profiles func(*engine.Session) offer.Profiles
	// Initial are the profiles before the first [Server.Load].
	Initial offer.Profiles
	// Profile is the profile of the client on stdin; "" means Whole.
	Profile string
	// Version is the version of toolreg that clients are told.
	Version string
	// Limits may be changed later; see [Server.SetLimits].
	Limits Limits
	// Asking limits what clients may be asked. The zero value sets no limit.
	Asking question.Asking
	// Console says that people at the console answer for clients that cannot ask.
	Console bool
	// Questions are options for questions to modern clients.
	Questions question.Options
	// Log receives refusals at level warn. A nil Log discards them.
	Log *slog.Logger
	// Messages receives log messages of the protocol implementation. If nil, they are discarded.
	Messages *slog.Logger
	// Warn reports problems that do not stop the server. It may be nil.
	Warn func(registry.Diagnostic)
}

// Limits are limits for clients and servers. Zero means no limit.
type Limits struct {
	Idle       time.Duration // how long a server may be without calls before its session is closed
	Session    time.Duration // how long a session over HTTP may be unused
	KeepAlive  time.Duration // how often a stream without events gets a comment
	MaxClients int           // sessions over HTTP
	MaxCalls   int           // calls that run with one token
}

// Server offers the tools of a session to MCP clients. It is safe for concurrent
// use.
type Server struct {
	opts     Options
	max      atomic.Pointer[Limits]
	reap     sync.Once     // begins with the first Load
	stopping chan struct{} // closed by stop
	stopOnce sync.Once
	closing  sync.WaitGroup  // sessions and subscriptions that end
	asked    transport.Calls // the questions to people about calls, and of servers

	sessions      transport.Sessions
	ids           transport.SessionIDs
	clients       question.Clients
	subscriptions subscriptions
	offers        *current.Offers
	retries       *current.Retries
	replica       *replica.Replica // nil without a store
	states        *question.Calls
	tasks         *task.Tasks
	logins        logins
	calls         calls
	reads         reads
	sdk           *mcp.Server
	lists         lists
	requests      requests
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
	s.offers = current.New(current.Options{
		Whole: opts.Whole, Profiles: opts.Profiles, Initial: opts.Initial,
		Idle: func() time.Duration { return s.limits().Idle },
		// These parts use the offers and are made below. They are called only after the first Load
		// has begun.
		Subscriptions: &s.subscriptions, LogIn: s.logins.call, Updated: s.subscriptions.changed, Changed: s.lists.announce,
		Log: opts.Log, Warn: opts.Warn,
	})
	s.retries = current.NewRetries(s.offers)
	tasks := task.Options{Store: opts.Questions.Store}
	if tasks.Store != nil {
		s.replica = replica.New(tasks.Store)
		tasks.Holder, tasks.Elsewhere = s.replica.ID, s.replica.AskAboutTask
	}
	s.states, s.tasks = question.NewCalls(opts.Questions, tasks.Holder), task.New(tasks)
	s.logins = logins{offers: s.offers, retries: s.retries, store: tasks.Store, replica: tasks.Holder,
		byID: map[string]login{}}
	s.calls = calls{
		offers: s.offers, states: s.states, tasks: s.tasks, sessions: &s.sessions, logins: &s.logins,
		most: func() int { return s.limits().MaxCalls }, log: opts.Log,
	}
	s.reads = reads{offers: s.offers, states: s.states, log: opts.Log}
	s.sdk = s.newSDKServer()
	s.tasks.AddTo(s.sdk)
	s.lists = lists{offers: s.offers, sdk: s.sdk, bySession: map[*mcp.ServerSession]*listener{}}
	s.subscriptions = subscriptions{
		offers: s.offers, sdk: s.sdk, stopping: s.stopping, ending: &s.closing, log: opts.Log, warn: opts.Warn,
		byURI: map[subscribed]map[*mcp.ServerSession]*caller.Caller{},
	}
	s.requests = requests{
		profile: opts.Profile, offers: s.offers, retries: s.retries, sessions: &s.sessions, clients: &s.clients,
		lists: &s.lists, calls: &s.calls, reads: &s.reads, log: opts.Log, stopping: s.stopping,
	}
	way := []mcp.Middleware{s.requests.guard, spans} // in the order in which requests pass them
	if s.replica != nil {
		way = append(way, s.replica.Remember(s.requests.identify))
	}
	s.sdk.AddReceivingMiddleware(append(way, s.requests.handle)...)
	s.sdk.AddSendingMiddleware(s.lists.dropOldNews, s.subscriptions.dropDenied, question.ReadOnce)
	return s
}

// Load offers the tools of a session; see [current.Offers.Load]. Until the ctx of the first Load is
// done, unused sessions and servers are closed.
func (s *Server) Load(ctx context.Context, from *engine.Session) error {
	defer s.reap.Do(func() { go s.reapUnused(ctx) })
	return s.offers.Load(ctx, from)
}

// Current calls f with the session and the registry whose tools are offered. They stay valid
// until f returns.
func (s *Server) Current(f func(*engine.Session, *registry.Registry) error) error {
	return s.offers.Current(f)
}

// Restart is [current.Retries.Restart].
func (s *Server) Restart(ctx context.Context, name string) error { return s.retries.Restart(ctx, name) }

// Profiles returns the profiles that clients can use now.
func (s *Server) Profiles() offer.Profiles { return s.offers.Profiles() }

// SetLimits replaces the limits. It does not affect what is running.
func (s *Server) SetLimits(l Limits) { s.max.Store(&l) }

func (s *Server) limits() *Limits { return s.max.Load() }

// ChangeStateKey replaces the Key of [question.Options]. Earlier questions can still be answered.
func (s *Server) ChangeStateKey(secret string) { s.states.ChangeKey(secret) }

// reapUnused closes sessions and servers that have not been used for a while, until ctx is
// done.
func (s *Server) reapUnused(ctx context.Context) {
	for timing.Pause(ctx, closeEvery) == nil {
		s.sessions.EndUnused(s.limits().Session)
		s.subscriptions.end(ctx, s.gone)
		s.lists.forget(s.gone)
		s.closeIdle()
	}
}

// closeEvery is how often reapUnused checks.
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

// isBound reports whether a client is limited to a profile, whatever URL it uses.
func (s *Server) isBound(from auth.Identity) bool {
	profile, _ := s.Profiles().For(from.Profile, from.Groups, "")
	return profile != ""
}

// newSDKServer makes the SDK's server for all clients.
func (s *Server) newSDKServer() *mcp.Server {
	extensions := wire.Extensions()
	extensions[wire.AppsExtension] = struct{}{}
	return mcp.NewServer(&mcp.Implementation{Name: "toolreg", Version: s.opts.Version}, &mcp.ServerOptions{
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
		SubscribeHandler:   s.subscriptions.subscribe,
		UnsubscribeHandler: s.subscriptions.unsubscribe,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.CacheScope = offer.CacheScope
		},
	})
}

// Stdio serves the client on a pair of streams until in ends or ctx is done. Calls that
// are running then may take drain to finish, and are answered. If ctx is done after the
// end of in, they are canceled immediately, because their client is gone.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer, drain time.Duration) error {
	// With ctx itself, the SDK would not answer calls that end after ctx is done.
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

// Wait ends the calls that wait for answers, since none can arrive any more, and waits until
// replaced sessions are closed.
func (s *Server) Wait() {
	s.states.EndAll()
	s.tasks.EndOf(func(auth.Identity) bool { return true }, transport.ErrStopped)()
	s.closing.Wait()
	s.offers.Wait()
}
