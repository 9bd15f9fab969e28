package serve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/uri"
)

// listenMethod is the request of revision 2026-07-28 that is open for as long as
// its client wants notifications.
const listenMethod = "subscriptions/listen"

// listen handles a subscriptions/listen request, which ends only when the client cancels
// it or the server stops.
func (s *Server) listen(ctx context.Context, next mcp.MethodHandler, req mcp.Request,
	session *mcp.ServerSession) (mcp.Result, error) {
	to := s.known.listenerOf(ctx, session)
	s.mu.Lock()
	o := s.offerTo(to.client)
	s.mu.Unlock()
	if o != nil {
		s.noteLists(to, o)
	}
	defer s.known.forget(func(other *mcp.ServerSession) bool { return other == session })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return next(ctx, listenMethod, req)
}

// Stopping returns a channel that is closed when streams are to end.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

// stop ends requests that only wait for notifications. Calls continue.
func (s *Server) stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

func (s *Server) stopped() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// subscriptions are the resources that clients have subscribed to. The zero value has
// none. It is safe for concurrent use.
type subscriptions struct {
	mu    sync.Mutex
	byURI map[subscribed]map[*mcp.ServerSession]*caller.Caller
}

// subscribed is a resource to which clients have subscribed.
type subscribed struct {
	uri    string // as the client spells it
	server string // its name
	client string // with whose login its server is reached, see [offer.Offer.ClientOf]
}

func (s *subscriptions) add(to subscribed, session *mcp.ServerSession, who *caller.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byURI == nil {
		s.byURI = map[subscribed]map[*mcp.ServerSession]*caller.Caller{}
	}
	if s.byURI[to] == nil {
		s.byURI[to] = map[*mcp.ServerSession]*caller.Caller{}
	}
	s.byURI[to][session] = who
}

// subscriber returns the caller that subscribed in a session. It returns nil if none did.
func (s *subscriptions) subscriber(to subscribed, session *mcp.ServerSession) *caller.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byURI[to][session]
}

// ofClient reports whether there are subscriptions to resources of servers that are reached with
// logins of a client.
func (s *subscriptions) ofClient(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for to := range s.byURI {
		if to.client == name {
			return true
		}
	}
	return false
}

// remove ends the subscriptions of sessions that are over, and returns the resources
// without a subscriber.
func (s *subscriptions) remove(over func(to subscribed, session *mcp.ServerSession) bool) (unused []subscribed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for to, sessions := range s.byURI {
		maps.DeleteFunc(sessions, func(session *mcp.ServerSession, _ *caller.Caller) bool { return over(to, session) })
		if len(sessions) == 0 {
			delete(s.byURI, to)
			unused = append(unused, to)
		}
	}
	return unused
}

func (s *subscriptions) all() []subscribed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byURI))
}

func (s *subscriptions) has(to subscribed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byURI[to]) > 0
}

// servers returns the servers of an offer that have such resources, some more than once.
func (s *subscriptions) servers(o *offer.Offer) []*mcpclient.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*mcpclient.Source
	for to := range s.byURI {
		if server := o.ServerOf(to.server, to.client, to.uri); server != nil {
			out = append(out, server)
		}
	}
	return out
}

// renew subscribes to the resources of a new offer that clients have subscribed to before. It is done before
// the offer replaces another, whose servers report changes until then.
func (s *subscriptions) renew(ctx context.Context, o *offer.Offer, warn func(registry.Diagnostic)) {
	ctx, stop := context.WithTimeout(ctx, renewWithin)
	defer stop()
	for _, to := range s.all() {
		server := o.ServerOf(to.server, to.client, to.uri)
		if server == nil {
			continue
		}
		if err := server.Subscribe(ctx, to.uri); err != nil {
			warn(registry.Diagnostic{
				Severity: registry.SeverityWarning, Code: "not_subscribed", Source: server.Name(),
				Message: fmt.Sprintf("changes of resource %q are no longer reported: %v", to.uri, err),
			})
		}
	}
}

// subscribe subscribes to the updates of a resource.
func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	if _, err := s.offered(ctx); err != nil { // the request itself may not have waited for the offer
		return err
	}
	v, done := s.use(ctx)
	defer done()
	r, err := v.Resource(ctx, req.Params.URI)
	if err != nil {
		return s.refuse(ctx, v, "resources/subscribe", err)
	}
	to := subscribed{req.Params.URI, r.Server.Info().Name, v.ClientOf(r.Server)}
	s.subscriptions.add(to, req.Session, caller.From(ctx)) // first, so that a concurrent new offer includes it
	if err := refusal(r.Server.Subscribe(ctx, req.Params.URI)); err != nil {
		s.unsubscribeFrom(ctx, s.subscriptions.remove(func(other subscribed, of *mcp.ServerSession) bool {
			return other == to && of == req.Session
		}))
		return err
	}
	return nil
}

// unsubscribe ends the subscription of one client. The SDK tracks which other clients to
// notify.
func (s *Server) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	s.unsubscribeFrom(ctx, s.subscriptions.remove(func(to subscribed, of *mcp.ServerSession) bool {
		return to.uri == req.Params.URI && of == req.Session
	}))
	return nil
}

// endSubscriptions ends the subscriptions of sessions that have ended.
func (s *Server) endSubscriptions(ctx context.Context) {
	s.unsubscribeFrom(ctx, s.subscriptions.remove(func(_ subscribed, session *mcp.ServerSession) bool {
		return s.gone(session)
	}))
}

// unsubscribeFrom ends the subscriptions to resources at their servers, which may be
// slow.
func (s *Server) unsubscribeFrom(ctx context.Context, from []subscribed) {
	if len(from) == 0 || s.stopped() {
		return
	}
	for _, to := range from {
		v, done := s.use(caller.With(ctx, &caller.Caller{Token: to.client}))
		server := v.ServerOf(to.server, to.client, to.uri)
		if server == nil {
			done()
			continue
		}
		s.closing.Go(func() {
			defer done()
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeWithin)
			defer stop()
			err := server.Unsubscribe(ctx, to.uri)
			if s.subscriptions.has(to) { // a client has subscribed meanwhile
				err = cmp.Or(err, server.Subscribe(ctx, to.uri))
			}
			if err != nil {
				s.opts.Log.Debug("not unsubscribed", "uri", to.uri, "error", err)
			}
		})
	}
}

const (
	// renewWithin limits how long a new offer waits for servers to accept the
	// subscriptions that clients have.
	renewWithin = 5 * time.Second
	// unsubscribeWithin is how long a server may take to end a subscription.
	unsubscribeWithin = 5 * time.Second
)

// resourceChanged notifies the clients that have subscribed to a resource of a server, each under
// the spelling of its URI that it has subscribed to.
func (s *Server) resourceChanged(ctx context.Context, what changedResource) {
	s.reporting.Store(what.server) // until the SDK has notified all
	told := map[string]bool{}
	for _, to := range s.subscriptions.all() {
		if to.server == what.server.Info().Name && !told[to.uri] && uri.Canonical(to.uri) == uri.Canonical(what.uri) {
			told[to.uri] = true
			_ = s.sdk.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: to.uri})
		}
	}
}

// mayHear reports whether a session is to be told of a change of a server's resource.
func (s *Server) mayHear(ctx context.Context, server *mcpclient.Source, uri string, session *mcp.ServerSession) bool {
	for _, o := range s.offers() {
		if !o.Has(server) {
			continue
		}
		if who := s.subscriptions.subscriber(subscribed{uri, server.Info().Name, o.ClientOf(server)}, session); who != nil {
			ctx := caller.With(ctx, who)
			r, err := s.viewOf(ctx, o).Resource(ctx, uri)
			return err == nil && r.Server == server
		}
	}
	return false
}

// dropDeniedUpdates is the middleware that drops notifications about resources that the policy
// has come to deny to the client that subscribed.
func (s *Server) dropDeniedUpdates(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			session, _ := req.GetSession().(*mcp.ServerSession)
			if server := s.reporting.Load(); server != nil && !s.mayHear(ctx, server, p.URI, session) {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}
