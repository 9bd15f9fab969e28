package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/uri"
)

// subscriptions tracks the resources that clients have subscribed to, here and at the servers. It
// is safe for concurrent use.
type subscriptions struct {
	offers   *current.Offers
	sdk      *mcp.Server
	stopping <-chan struct{} // closed when subscriptions need not be ended any more
	ending   *sync.WaitGroup
	log      *slog.Logger
	warn     func(registry.Diagnostic)
	// reporting is the server that reported the change about which clients are being notified.
	reporting atomic.Pointer[mcpclient.Source]

	mu    sync.Mutex
	byURI map[subscribed]map[*mcp.ServerSession]*caller.Caller
}

type subscribed struct {
	uri    string // in the client's spelling
	server string // its name
	client string // whose login reaches the server; see [offer.Offer.ClientOf]
}

func (s *subscriptions) add(to subscribed, session *mcp.ServerSession, who *caller.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byURI[to] == nil {
		s.byURI[to] = map[*mcp.ServerSession]*caller.Caller{}
	}
	s.byURI[to][session] = who
}

// callerOf returns the caller that subscribed in a session; nil if none did.
func (s *subscriptions) callerOf(to subscribed, session *mcp.ServerSession) *caller.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byURI[to][session]
}

// OfClient implements current.Subscriptions.
func (s *subscriptions) OfClient(name string) bool {
	return slices.ContainsFunc(s.all(), func(to subscribed) bool { return to.client == name })
}

// remove removes the subscriptions of sessions that are over, and returns the resources that have
// no subscriber left.
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

// Servers implements current.Subscriptions.
func (s *subscriptions) Servers(o *offer.Offer) []*mcpclient.Source {
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

// Renew implements current.Subscriptions.
func (s *subscriptions) Renew(ctx context.Context, o *offer.Offer) {
	ctx, stop := context.WithTimeout(ctx, renewWithin)
	defer stop()
	for _, to := range s.all() {
		server := o.ServerOf(to.server, to.client, to.uri)
		if server == nil {
			continue
		}
		if err := server.Subscribe(ctx, to.uri); err != nil {
			s.warn(registry.Warning("not_subscribed", server.Name(),
				fmt.Sprintf("changes of resource %q are no longer reported: %v", to.uri, err), ""))
		}
	}
}

// subscribe subscribes to updates of a resource.
func (s *subscriptions) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	if _, err := s.offers.Offered(ctx); err != nil { // the request itself may not have waited for the offer
		return err
	}
	v, done := s.offers.Use(ctx)
	defer done()
	r, err := v.Resource(ctx, req.Params.URI)
	if err != nil {
		return notOffered(ctx, s.log, v, "resources/subscribe", err)
	}
	to := subscribed{req.Params.URI, r.Server.Info().Name, v.ClientOf(r.Server)}
	s.add(to, req.Session, caller.From(ctx)) // first, so that a concurrent new offer includes it
	if err := refusal(r.Server.Subscribe(ctx, req.Params.URI)); err != nil {
		s.unsubscribeFrom(ctx, s.remove(func(other subscribed, of *mcp.ServerSession) bool {
			return other == to && of == req.Session
		}))
		return err
	}
	return nil
}

// unsubscribe ends one client's subscription. The SDK tracks which other clients to notify.
func (s *subscriptions) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	s.unsubscribeFrom(ctx, s.remove(func(to subscribed, of *mcp.ServerSession) bool {
		return to.uri == req.Params.URI && of == req.Session
	}))
	return nil
}

// end removes the subscriptions of sessions that have ended.
func (s *subscriptions) end(ctx context.Context, gone func(*mcp.ServerSession) bool) {
	s.unsubscribeFrom(ctx, s.remove(func(_ subscribed, session *mcp.ServerSession) bool {
		return gone(session)
	}))
}

// unsubscribeFrom ends the subscriptions at servers, which may be slow.
func (s *subscriptions) unsubscribeFrom(ctx context.Context, from []subscribed) {
	select {
	case <-s.stopping:
		return
	default:
	}
	for _, to := range from {
		v, done := s.offers.Use(caller.With(ctx, &caller.Caller{Token: to.client}))
		server := v.ServerOf(to.server, to.client, to.uri)
		if server == nil {
			done()
			continue
		}
		s.ending.Go(func() {
			defer done()
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeWithin)
			defer stop()
			err := server.Unsubscribe(ctx, to.uri)
			if slices.Contains(s.all(), to) { // a client has subscribed again meanwhile
				err = cmp.Or(err, server.Subscribe(ctx, to.uri))
			}
			if err != nil {
				s.log.Debug("not unsubscribed", "uri", to.uri, "error", err)
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

// changed notifies the clients that have subscribed to a resource of a server, each with the URI in
// the spelling that it used. The SDK notifies them; [subscriptions.dropDenied] filters.
func (s *subscriptions) changed(ctx context.Context, server *mcpclient.Source, changed string) {
	s.reporting.Store(server) // until the SDK has notified all
	told := map[string]bool{}
	for _, to := range s.all() {
		if to.server == server.Info().Name && !told[to.uri] && uri.Canonical(to.uri) == uri.Canonical(changed) {
			told[to.uri] = true
			_ = s.sdk.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: to.uri})
		}
	}
}

// mayReceive reports whether a session may be notified of a change to a server's resource.
func (s *subscriptions) mayReceive(ctx context.Context, server *mcpclient.Source, uri string,
	session *mcp.ServerSession) bool {
	for _, o := range s.offers.All() {
		if !o.Has(server) {
			continue
		}
		if who := s.callerOf(subscribed{uri, server.Info().Name, o.ClientOf(server)}, session); who != nil {
			ctx := caller.With(ctx, who)
			r, err := s.offers.ViewOf(ctx, o).Resource(ctx, uri)
			return err == nil && r.Server == server
		}
	}
	return false
}

// dropDenied is middleware that drops notifications about resources that the policy now denies to
// the client that subscribed.
func (s *subscriptions) dropDenied(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			session, _ := req.GetSession().(*mcp.ServerSession)
			if server := s.reporting.Load(); server != nil && !s.mayReceive(ctx, server, p.URI, session) {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}
